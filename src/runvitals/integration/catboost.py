"""The callback for CatBoost, with the names of `wandb.catboost`."""

from runvitals.sdk.integrations.catboost import CatBoostCallback, log_summary
from runvitals.sdk.integrations.catboost import CatBoostCallback as WandbCallback

__all__ = ["CatBoostCallback", "WandbCallback", "log_summary"]
