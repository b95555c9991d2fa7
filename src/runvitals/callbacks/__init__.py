"""Callbacks for training frameworks that log rows and mark epochs, validations and checkpoints.

    from runvitals.callbacks import LightningCallback, TransformersCallback, KerasCallback

They do not import their framework. When a callback is created, the framework's base class is looked up among
the modules that the program has already imported. A callback starts a run (`runvitals.init`) if none is open.
The run is finished by the program, or when it exits.
"""

from runvitals.sdk.integrations.keras import KerasCallback
from runvitals.sdk.integrations.lightning import LightningCallback
from runvitals.sdk.integrations.transformers import TransformersCallback

__all__ = ["KerasCallback", "LightningCallback", "TransformersCallback"]
