"""The messages of `wandb.errors.term`, under its name."""

from runvitals.sdk.integrations.wandb import termerror, termlog, termwarn

__all__ = ["termerror", "termlog", "termwarn"]
