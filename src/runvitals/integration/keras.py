"""Callbacks for Keras, with the names of `wandb.keras`."""

from runvitals.sdk.integrations.keras import KerasCallback
from runvitals.sdk.integrations.wandb_keras import (
    WandbCallback,
    WandbEvalCallback,
    WandbMetricsLogger,
    WandbModelCheckpoint,
)

__all__ = [
    "KerasCallback",
    "WandbCallback",
    "WandbEvalCallback",
    "WandbMetricsLogger",
    "WandbModelCheckpoint",
]
