"""Callbacks for Ultralytics, with the names of `wandb.integration.ultralytics`."""

from runvitals.sdk.integrations.ultralytics import add_callbacks
from runvitals.sdk.integrations.ultralytics import add_callbacks as add_wandb_callback

__all__ = ["add_callbacks", "add_wandb_callback"]
