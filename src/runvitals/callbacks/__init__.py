"""Callbacks for training frameworks that log rows and mark epochs, validations and checkpoints.

    from runvitals.callbacks import LightningCallback, TransformersCallback, KerasCallback

They do not import their framework. When a callback is created, the framework's base class is looked up among
the modules that the program has already imported. A callback starts a run (`runvitals.init`) if none is open.
The run is finished by the program, or when it exits.
"""

from runvitals.sdk.integrations.accelerate import AccelerateTracker
from runvitals.sdk.integrations.catboost import CatBoostCallback
from runvitals.sdk.integrations.fastai import FastaiCallback
from runvitals.sdk.integrations.keras import KerasCallback
from runvitals.sdk.integrations.lightgbm import LightGBMCallback
from runvitals.sdk.integrations.lightning import LightningCallback, LightningLogger
from runvitals.sdk.integrations.transformers import TransformersCallback
from runvitals.sdk.integrations.xgboost import XGBoostCallback

__all__ = [
    "AccelerateTracker",
    "CatBoostCallback",
    "FastaiCallback",
    "KerasCallback",
    "LightGBMCallback",
    "LightningCallback",
    "LightningLogger",
    "TransformersCallback",
    "XGBoostCallback",
]
