"""For the models of Ultralytics (YOLO …).

https://docs.ultralytics.com/usage/callbacks/
"""

from __future__ import annotations

import os
from typing import Any

from runvitals.sdk.integrations.callback_run import CallbackRun
from runvitals.sdk.media.values import Image


def add_callbacks(model: Any, log_model: bool = True, **settings: Any) -> Any:
    """Log losses, learning rates and metrics of each epoch, and at the end the charts and the best weights.

    Args:
        model: a `YOLO`, or another model of Ultralytics.
        log_model: also log the best weights as an artifact.
        settings: arguments for `runvitals.init` if no run is open.

    Returns:
        The model.

    Example:
        >>> model = add_callbacks(ultralytics.YOLO("yolo11n.yaml"), project="signs")
        >>> model.train(data="coco8.yaml", epochs=3)
    """
    callback = CallbackRun(0, settings)

    def begin(trainer: Any) -> None:
        callback.run(vars(trainer.args))

    def log_epoch(trainer: Any) -> None:
        row = {**trainer.label_loss_items(trainer.tloss, prefix="train"), **trainer.lr, **trainer.metrics}
        epoch = min(trainer.epoch + 1, trainer.epochs)  # the last validation counts one more
        callback.run().log({**row, "epoch": epoch}, step=epoch)

    def end(trainer: Any) -> None:
        run = callback.run()
        for path in sorted({*trainer.plots, *trainer.validator.plots}, key=str):
            if os.path.isfile(path):
                run.log(
                    {f"plots/{os.path.splitext(os.path.basename(path))[0]}": Image(path)},
                    step=trainer.epoch + 1,
                )
        if log_model and os.path.isfile(trainer.best):
            run.log_model(trainer.best, name=f"run-{run.id}-model", aliases=["best"])

    for event, function in (
        ("on_pretrain_routine_end", begin), ("on_fit_epoch_end", log_epoch), ("on_train_end", end),
    ):  # fmt: skip
        model.add_callback(event, function)
    return model
