"""For `fit()`, `evaluate()` and `predict()` of Keras (`keras`, `tf_keras`, `tensorflow.keras`).

https://keras.io/guides/writing_your_own_callbacks/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runvitals.sdk.integrations.callback_run import CallbackRun, derive_class

BASES = (("keras.callbacks", "Callback"), ("tf_keras.callbacks", "Callback"))


class KerasCallback:
    """Marks epochs and evaluations, and logs a row every second and at the end of each epoch.

    All rows have `epoch` and `step`; those at the end of an epoch also have what `fit()` reports (`loss`,
    `val_loss`, …).

    Args:
        every_s: seconds between two rows.
        settings: arguments for `runvitals.init` if no run is open.

    Raises:
        RuntimeError: Keras has not been imported.

    Example:
        >>> model.fit(x, y, epochs=3, callbacks=[KerasCallback(project="digits")])
    """

    def __new__(cls, *args: Any, **settings: Any) -> KerasCallback:
        """Create the callback with Keras's base class."""
        callback: KerasCallback = object.__new__(derive_class(cls, "Keras", *BASES))
        return callback

    def __init__(self, every_s: float = 1.0, **settings: Any) -> None:
        super().__init__()  # Keras keeps the model and its own parameters in the object
        self._callback = CallbackRun(every_s, settings)
        self._epoch, self._step = 0, 0

    def __reduce__(self) -> tuple[Any, ...]:  # the derived class is not importable by name
        return KerasCallback, (self._callback.every_s,), {"_callback": self._callback}

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Open the run, with the parameters of `fit()` as config."""
        params: Mapping[str, Any] = getattr(self, "params", None) or {}
        self._callback.run({key: value for key, value in params.items() if key != "verbose"})

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Mark the epoch."""
        self._epoch = epoch
        self._callback.run().mark(f"epoch {epoch} begins", epoch=epoch, step=self._step)

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Log a row if the interval is over."""
        self._step += 1
        if self._callback.due():
            self._row({})

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Log a row with the metrics of the epoch."""
        self._row(logs or {})

    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Mark the start of the evaluation."""
        self._callback.run().mark("evaluation begins", epoch=self._epoch, step=self._step)

    def on_test_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Mark the end of the evaluation."""
        self._callback.run().mark("evaluation ends", epoch=self._epoch, step=self._step)

    def _row(self, values: Mapping[str, Any]) -> None:
        where = {"epoch": self._epoch, "step": self._step}
        self._callback.run().log({**values, **where}, step=self._step)
