"""For the Learner of fastai.

https://docs.fast.ai/callback.core.html
"""

from __future__ import annotations

import math
from typing import Any

from runvitals.sdk.integrations.callback_run import CallbackRun, derive_class

_BASES = (("fastai.callback.core", "Callback"),)


class FastaiCallback:
    """Logs the loss and the hyper-parameters of steps every second, and the metrics of each epoch.

    Args:
        every_s: seconds between two rows.
        settings: arguments for `runvitals.init` if no run is open.

    Raises:
        RuntimeError: fastai has not been imported.

    Example:
        >>> learn.fit_one_cycle(3, cbs=FastaiCallback(project="digits"))
    """

    order = 60  # after the Recorder, whose values are logged

    def __new__(cls, *args: Any, **settings: Any) -> FastaiCallback:
        """Create the callback with fastai's base class."""
        callback: FastaiCallback = object.__new__(derive_class(cls, "fastai", *_BASES))
        return callback

    def __init__(self, every_s: float = 1.0, **settings: Any) -> None:
        super().__init__()  # fastai keeps its own parameters in the object
        self._callback = CallbackRun(every_s, settings)
        self._step = 0

    def __reduce__(self) -> tuple[Any, ...]:  # the derived class is not importable by name
        return FastaiCallback, (self._callback.every_s,), {"_callback": self._callback}

    def before_fit(self) -> None:
        """Open the run, unless the learner only searches a learning rate or predicts."""
        learn = self.learn  # type: ignore[attr-defined]
        self.run = not hasattr(learn, "lr_finder") and not hasattr(learn, "gather_preds")
        if self.run and not _rank_of(learn):
            self._callback.run({"epochs": learn.n_epoch, "batch_size": getattr(learn.dls, "bs", None)})

    def after_batch(self) -> None:
        """Log a row if the interval is over."""
        learn = self.learn  # type: ignore[attr-defined]
        if not learn.training or _rank_of(learn):
            return
        self._step += 1
        if self._callback.due():
            hyper = {name: value for name, value in learn.opt.hypers[-1].items() if value is not None}
            row = {"train_loss": float(learn.smooth_loss), "raw_loss": float(learn.loss.detach()), **hyper}
            epoch = learn.epoch + learn.pct_train * learn.n_epoch % 1
            self._callback.run().log({**row, "epoch": epoch}, step=self._step)

    def after_epoch(self) -> None:
        """Log the metrics of the epoch."""
        learn = self.learn  # type: ignore[attr-defined]
        if _rank_of(learn):
            return
        metrics = dict(zip(learn.recorder.metric_names, learn.recorder.log, strict=False))
        row = {
            name: float(value)
            for name, value in metrics.items()
            if name not in ("epoch", "time") and value is not None and math.isfinite(float(value))
        }
        self._callback.run().log({**row, "epoch": learn.epoch + 1}, step=self._step)


def _rank_of(learn: Any) -> int:
    return int(getattr(getattr(learn, "parallel_ctx", None), "rank", 0) or 0)
