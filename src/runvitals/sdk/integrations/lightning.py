"""For Lightning's Trainer (`lightning`, `pytorch_lightning`).

https://lightning.ai/docs/pytorch/stable/extensions/callbacks.html
"""

from __future__ import annotations

from typing import Any

from runvitals.sdk.integrations.callback_run import CallbackRun, derive_class

_BASES = (("lightning.pytorch", "Callback"), ("pytorch_lightning", "Callback"))


class LightningCallback:
    """Marks epochs, validations and checkpoints, and logs a row every second.

    A row has `epoch`, `trainer/global_step` and the module's last logged values (`trainer.logged_metrics`).
    All ranks belong to the run; only rank 0 logs.

    Args:
        every_s: seconds between two rows.
        settings: arguments for `runvitals.init` if no run is open.

    Raises:
        RuntimeError: Lightning has not been imported.

    Example:
        >>> trainer = lightning.Trainer(callbacks=[LightningCallback(project="digits")])
    """

    def __new__(cls, *args: Any, **settings: Any) -> LightningCallback:
        """Create the callback with Lightning's base class."""
        callback: LightningCallback = object.__new__(derive_class(cls, "Lightning", *_BASES))
        return callback

    def __init__(self, every_s: float = 1.0, **settings: Any) -> None:
        self._callback = CallbackRun(every_s, settings)

    def __reduce__(self) -> tuple[Any, ...]:  # the derived class is not importable by name
        return LightningCallback, (self._callback.every_s,), {"_callback": self._callback}

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Open the run, with the module's hyper-parameters as config on rank 0."""
        hparams = getattr(pl_module, "hparams", None)
        self._callback.run(dict(hparams) if hparams and trainer.is_global_zero else None)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Mark the epoch."""
        self._mark(trainer, f"epoch {trainer.current_epoch} begins")

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log a row."""
        self._row(trainer)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log a row if the interval is over."""
        if trainer.is_global_zero and self._callback.due():
            self._row(trainer)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Mark the start of the validation."""
        self._mark(trainer, "validation begins")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Log a row, except after the sanity check, and mark the end of the validation."""
        if not trainer.sanity_checking:
            self._row(trainer)
        self._mark(trainer, "validation ends")

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        """Mark the start of the test."""
        self._mark(trainer, "test begins")

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        """Log a row, and mark the end of the test."""
        self._row(trainer)
        self._mark(trainer, "test ends")

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """Mark the checkpoint."""
        self._mark(trainer, "checkpoint")

    def _row(self, trainer: Any) -> None:
        if trainer.is_global_zero:
            where = {"epoch": trainer.current_epoch, "trainer/global_step": trainer.global_step}
            self._callback.run().log({**trainer.logged_metrics, **where}, step=trainer.global_step)

    def _mark(self, trainer: Any, text: str) -> None:
        if trainer.is_global_zero:
            run = self._callback.run()
            run.mark(text, epoch=trainer.current_epoch, step=trainer.global_step)
