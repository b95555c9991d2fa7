"""The logger for Lightning's Fabric, with the name of W&B's."""

from runvitals.sdk.integrations.lightning import LightningLogger
from runvitals.sdk.integrations.lightning import LightningLogger as WandbLogger

__all__ = ["LightningLogger", "WandbLogger"]
