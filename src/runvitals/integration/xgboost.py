"""The callback for XGBoost, with the names of `wandb.xgboost`."""

from runvitals.sdk.integrations.xgboost import XGBoostCallback
from runvitals.sdk.integrations.xgboost import XGBoostCallback as WandbCallback
from runvitals.sdk.integrations.xgboost import XGBoostCallback as wandb_callback  # noqa: N813

__all__ = ["WandbCallback", "XGBoostCallback", "wandb_callback"]
