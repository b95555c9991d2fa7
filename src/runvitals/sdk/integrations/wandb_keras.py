"""The callbacks of `wandb.keras`, under their names; `KerasCallback` is ours."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from runvitals.monitoring.settings.messages import notify
from runvitals.sdk.integrations.callback_run import CallbackRun, derive_class, log_model_file
from runvitals.sdk.integrations.keras import BASES, KerasCallback
from runvitals.sdk.media.table import Table
from runvitals.sdk.media.values import Histogram

_CHECKPOINTS = (("keras.callbacks", "ModelCheckpoint"), ("tf_keras.callbacks", "ModelCheckpoint"))


class WandbCallback(KerasCallback):
    """Logs the metrics of each epoch, the best value in the summary and, if asked, models and weights.

    Args:
        monitor: the metric that decides which epoch is the best.
        mode: `min`, `max`, or `auto`: `max` for accuracies, else `min`.
        save_model: log the model as an artifact whenever the metric is better.
        save_weights_only: only its weights.
        log_weights: log a histogram of each weight after each epoch.
        log_batch_frequency: log a row every so many batches; default: one a second.
        others: further arguments of W&B's class, which have no effect here.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        verbose: int = 0,
        mode: str = "auto",
        save_weights_only: bool = False,
        log_weights: bool = False,
        log_gradients: bool = False,
        save_model: bool = True,
        log_batch_frequency: int | None = None,
        **others: Any,
    ) -> None:
        super().__init__()
        self._monitor, self._save_model = monitor, save_model
        self._highest = mode == "max" or (mode == "auto" and ("acc" in monitor or "auc" in monitor))
        self._weights_only, self._log_weights = save_weights_only, log_weights
        self._batches = log_batch_frequency
        self._best: float | None = None
        ignored = sorted(name for name, value in {**others, "log_gradients": log_gradients}.items() if value)
        if ignored:
            notify(f"these arguments of WandbCallback have no effect here: {', '.join(ignored)}")

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Log a row if it is time."""
        if self._batches is None:
            super().on_train_batch_end(batch, logs)
        else:
            self._step += 1
            if self._step % self._batches == 0:
                self._row(logs or {})

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Log a row, and the model if it is the best so far."""
        super().on_epoch_end(epoch, logs)
        run, model = self._callback.run(), self.model  # type: ignore[attr-defined]
        if self._log_weights:
            for layer in model.layers:
                names = [f"parameters/{layer.name}.{weight.name}" for weight in layer.weights]
                values = zip(names, layer.get_weights(), strict=True)
                run.log({name: Histogram(value.ravel()) for name, value in values}, commit=False)
        value = (logs or {}).get(self._monitor)
        if value is None or (self._best is not None and (value > self._best) != self._highest):
            return
        self._best = float(value)
        run.summary.update({f"best_{self._monitor}": self._best, "best_epoch": epoch})
        if self._save_model:
            save = model.save_weights if self._weights_only else model.save
            log_model_file(run, "model.weights.h5" if self._weights_only else "model.keras", save, ["best"])


class WandbMetricsLogger:
    """Logs what `fit()` reports: under `epoch/…` for each epoch, and `batch/…` if asked.

    Args:
        log_freq: `epoch`; `batch`, or a number of batches, for rows of batches too.
        initial_global_step: the first batch's number.
    """

    def __new__(cls, *args: Any, **settings: Any) -> WandbMetricsLogger:
        """Create the callback with Keras's base class."""
        callback: WandbMetricsLogger = object.__new__(derive_class(cls, "Keras", *BASES))
        return callback

    def __init__(self, log_freq: str | int = "epoch", initial_global_step: int = 0, **settings: Any) -> None:
        super().__init__()
        self._callback = CallbackRun(0, settings)
        self._every = None if log_freq == "epoch" else 1 if log_freq == "batch" else int(log_freq)
        self._step = initial_global_step

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Open the run; its charts have the epoch, or the batch, as their x-axis."""
        run = self._callback.run()
        run.define_metric("epoch/*", x="epoch/epoch")
        run.define_metric("batch/*", x="batch/batch_step")

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Log a row of a batch, if it is due."""
        if self._every is not None and self._step % self._every == 0:
            row = {f"batch/{name}": value for name, value in (logs or {}).items()}
            self._callback.run().log({**row, "batch/batch_step": self._step, **self._rate("batch")})
        self._step += 1

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Log a row of the epoch."""
        row = {f"epoch/{name}": value for name, value in (logs or {}).items()}
        self._callback.run().log({**row, "epoch/epoch": epoch, **self._rate("epoch")})

    def _rate(self, prefix: str) -> dict[str, float]:
        optimizer = getattr(self.model, "optimizer", None)  # type: ignore[attr-defined]
        rate = getattr(optimizer, "learning_rate", None)
        try:
            return {} if rate is None else {f"{prefix}/learning_rate": float(rate)}
        except (TypeError, ValueError):
            return {}  # a schedule of a version whose optimizer does not say its current rate


class WandbModelCheckpoint:
    """Keras's `ModelCheckpoint`, whose files are logged as versions of a model.

    Args:
        filepath: where the model is saved; as in Keras, with `{epoch}` and metrics in braces.
        arguments, others: those of `ModelCheckpoint`.
    """

    def __new__(cls, *args: Any, **settings: Any) -> WandbModelCheckpoint:
        """Create the callback with Keras's `ModelCheckpoint` as base."""
        callback: WandbModelCheckpoint = object.__new__(derive_class(cls, "Keras", *_CHECKPOINTS))
        return callback

    def __init__(self, filepath: str | os.PathLike[str], *arguments: Any, **others: Any) -> None:
        super().__init__(os.fspath(filepath), *arguments, **others)  # type: ignore[call-arg]
        self._pattern = re.sub(r"\{[^}]*\}", "*", glob.escape(os.fspath(filepath)))
        self._logged_files = self._saved()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Save as Keras does, and log what was saved."""
        super().on_train_batch_end(batch, logs)  # type: ignore[misc]
        if getattr(self, "save_freq", "epoch") != "epoch":
            self._log_saved([])

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Save as Keras does, and log what was saved."""
        super().on_epoch_end(epoch, logs)  # type: ignore[misc]
        self._log_saved([f"epoch_{epoch}"])

    def _saved(self) -> dict[str, int]:
        return {path: os.stat(path).st_mtime_ns for path in glob.glob(self._pattern)}

    def _log_saved(self, aliases: list[str]) -> None:
        saved = self._saved()
        run = CallbackRun(0, {}).run()
        for path, changed_ns in saved.items():
            if self._logged_files.get(path) != changed_ns:
                run.log_model(path, name=f"run_{run.id}_model", aliases=aliases or None)
        self._logged_files = saved


class WandbEvalCallback:
    """The base of callbacks that log a table of samples once, and a table of predictions for each epoch.

    A subclass defines `add_ground_truth(logs)`, which fills `data_table`, and `add_model_predictions(epoch,
    logs)`, which fills `pred_table`.

    Args:
        data_table_columns, pred_table_columns: the columns of the tables.
    """

    def __new__(cls, *args: Any, **settings: Any) -> WandbEvalCallback:
        """Create the callback with Keras's base class."""
        callback: WandbEvalCallback = object.__new__(derive_class(cls, "Keras", *BASES))
        return callback

    def __init__(
        self, data_table_columns: Sequence[str], pred_table_columns: Sequence[str], **others: Any
    ) -> None:
        super().__init__()
        self.data_table_columns = list(data_table_columns)
        self.pred_table_columns = list(pred_table_columns)
        self.init_data_table(self.data_table_columns)

    def add_ground_truth(self, logs: Mapping[str, Any] | None = None) -> None:
        """Fill `data_table`; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} does not define add_ground_truth()")

    def add_model_predictions(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Fill `pred_table`; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} does not define add_model_predictions()")

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Log the samples."""
        self.init_data_table(self.data_table_columns)
        self.add_ground_truth(logs)
        self.log_data_table()

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Log the predictions."""
        self.init_pred_table(self.pred_table_columns)
        self.add_model_predictions(epoch, logs)
        self.log_pred_table()

    def init_data_table(self, column_names: Sequence[str]) -> None:
        """Start the table of samples."""
        self.data_table = self.data_table_ref = Table(columns=column_names)

    def init_pred_table(self, column_names: Sequence[str]) -> None:
        """Start the table of predictions."""
        self.pred_table = Table(columns=column_names)

    def log_data_table(self, name: str = "val", type: str = "dataset", table_name: str = "val_data") -> None:
        """Log the table of samples."""
        CallbackRun(0, {}).run().log({table_name: self.data_table})

    def log_pred_table(
        self, type: str = "evaluation", table_name: str = "eval_data", aliases: Sequence[str] | None = None
    ) -> None:
        """Log the table of predictions."""
        CallbackRun(0, {}).run().log({table_name: self.pred_table})
