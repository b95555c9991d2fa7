"""Callbacks for training frameworks: rows and marks of steps, epochs, validations and checkpoints.

    from runvitals.callbacks import LightningCallback, TransformersCallback, KerasCallback

None of them imports its framework: what the framework wants its callbacks to be derived from is taken from
what the program has loaded by itself, when a callback is made. Each opens a run (`runvitals.init`) if there
is none, and leaves its end to the program's own.
"""

from runvitals.integrations.keras import KerasCallback
from runvitals.integrations.lightning import LightningCallback
from runvitals.integrations.transformers import TransformersCallback

__all__ = ["KerasCallback", "LightningCallback", "TransformersCallback"]
