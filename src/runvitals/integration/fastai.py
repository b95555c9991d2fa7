"""The callback for fastai, with the name that its own package gives W&B's."""

from runvitals.sdk.integrations.fastai import FastaiCallback
from runvitals.sdk.integrations.fastai import FastaiCallback as WandbCallback

__all__ = ["FastaiCallback", "WandbCallback"]
