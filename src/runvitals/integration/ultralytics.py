"""Callbacks for Ultralytics, with the names of `wandb.integration.ultralytics`."""

from typing import Any

from runvitals.sdk.integrations.ultralytics import add_callbacks


def add_wandb_callback(model: Any, enable_model_checkpointing: bool = False, **others: Any) -> Any:
    """Call `add_callbacks`; W&B's other arguments, which choose tables of pictures, have no effect here."""
    return add_callbacks(model, log_model=enable_model_checkpointing)


__all__ = ["add_callbacks", "add_wandb_callback"]
