"""The callback for LightGBM, with the names of `wandb.lightgbm`."""

from runvitals.sdk.integrations.lightgbm import LightGBMCallback, log_summary
from runvitals.sdk.integrations.lightgbm import LightGBMCallback as wandb_callback  # noqa: N813

__all__ = ["LightGBMCallback", "log_summary", "wandb_callback"]
