"""Logs what pipelines of Diffusers make, with the name of `wandb.integration.diffusers`."""

from runvitals.sdk.integrations.diffusers import autolog

__all__ = ["autolog"]
