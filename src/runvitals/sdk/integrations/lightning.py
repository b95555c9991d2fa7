"""For Lightning's Trainer (`lightning`, `pytorch_lightning`).

https://lightning.ai/docs/pytorch/stable/extensions/callbacks.html
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from runvitals.sdk.integrations.callback_run import CallbackRun, derive_class
from runvitals.sdk.run import Run

_BASES = (("lightning.pytorch", "Callback"), ("pytorch_lightning", "Callback"))
_LOGGERS = (
    ("lightning.pytorch.loggers", "Logger"), ("pytorch_lightning.loggers", "Logger"),
    ("lightning.fabric.loggers", "Logger"), ("lightning_fabric.loggers", "Logger"),
)  # fmt: skip


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


class LightningLogger:
    """Logs what modules log, and their hyper-parameters. All ranks belong to the run; only rank 0 logs.

    Args:
        log_model: True: log the best checkpoints as artifacts when the training ends; `all`: each when it is
            saved.
        settings: arguments for `runvitals.init` if no run is open.

    Raises:
        RuntimeError: Lightning has not been imported.

    Example:
        >>> trainer = lightning.Trainer(logger=LightningLogger(project="digits"))
    """

    def __new__(cls, *args: Any, **settings: Any) -> LightningLogger:
        """Create the logger with Lightning's base class."""
        logger: LightningLogger = object.__new__(derive_class(cls, "Lightning", *_LOGGERS))
        return logger

    def __init__(self, log_model: bool | str = False, **settings: Any) -> None:
        super().__init__()
        self._callback = CallbackRun(0, settings)
        self._log_model = log_model
        self._checkpoints: Any = None
        self._logged: dict[str, float | None] = {}

    def __reduce__(self) -> tuple[Any, ...]:  # the derived class is not importable by name
        return LightningLogger, (self._log_model,), {"_callback": self._callback}

    @property
    def experiment(self) -> Run:
        """The run."""
        return self._callback.run()

    @property
    def name(self) -> str:
        """The project."""
        return self.experiment.project

    @property
    def version(self) -> str:
        """The id of the run."""
        return self.experiment.id

    def log_hyperparams(self, params: Any, *arguments: Any, **others: Any) -> None:
        """Add hyper-parameters to the run's configuration."""
        run = self.experiment
        if _is_first():
            run.config.update(vars(params) if isinstance(params, Namespace) else params or {})

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Log a row, at the Trainer's step."""
        run = self.experiment
        if _is_first():
            where = {} if step is None else {"trainer/global_step": step}
            run.log({**metrics, **where}, step=step)

    def log_image(self, key: str, images: list[Any], step: int | None = None, caption: Any = None) -> None:
        """Log images under a name, with a list of captions if there are some."""
        from runvitals.sdk.media.values import Image

        captions = caption or [None] * len(images)
        if _is_first():
            media = [Image(image, text) for image, text in zip(images, captions, strict=True)]
            self.experiment.log({key: media}, step=step)

    def log_table(
        self, key: str, columns: Any = None, data: Any = None, dataframe: Any = None, step: int | None = None
    ) -> None:
        """Log a table under a name."""
        from runvitals.sdk.media.table import Table

        if _is_first():
            self.experiment.log({key: Table(columns, data or (), dataframe)}, step=step)

    def watch(self, model: Any, log: str | None = "gradients", log_freq: int = 100, **others: Any) -> None:
        """Log histograms of gradients and parameters; see `Run.watch`."""
        if _is_first():
            self.experiment.watch(model, log=log, log_freq=log_freq)

    def after_save_checkpoint(self, checkpoint_callback: Any) -> None:
        """Log the checkpoints, if each is to be logged."""
        self._checkpoints = checkpoint_callback
        if self._log_model == "all":
            self._log_checkpoints()

    def finalize(self, status: str) -> None:
        """Log the checkpoints, if they are to be logged. The run ends with the program."""
        if self._log_model:
            self._log_checkpoints()

    def _log_checkpoints(self) -> None:
        if self._checkpoints is None or not _is_first():
            return
        saved = {**getattr(self._checkpoints, "best_k_models", {}), self._checkpoints.best_model_path: None}
        for path, score in saved.items():
            if path and path not in self._logged:
                self._logged[path] = score
                best = ["best"] if path == self._checkpoints.best_model_path else []
                self.experiment.log_model(path, name=f"model-{self.version}", aliases=best or None)


def _is_first() -> bool:
    """Return whether this process is rank 0, as Lightning counts."""
    module = sys.modules.get("lightning_utilities.core.rank_zero")
    return not getattr(getattr(module, "rank_zero_only", None), "rank", 0)
