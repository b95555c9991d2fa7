"""The callback and the logger for Lightning and Fabric, with the name that Lightning gives W&B's."""

from runvitals.sdk.integrations.lightning import LightningCallback, LightningLogger
from runvitals.sdk.integrations.lightning import LightningLogger as WandbLogger

__all__ = ["LightningCallback", "LightningLogger", "WandbLogger"]
