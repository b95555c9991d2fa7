"""Stands in for Keras: `fit()` as far as callbacks see it."""

from __future__ import annotations

from .callbacks import Callback


def fit(callbacks: list[Callback], epochs: int, steps: int) -> None:
    assert all(isinstance(callback, Callback) for callback in callbacks)
    step = 0
    for callback in callbacks:
        callback.set_params({"verbose": 1, "epochs": epochs, "steps": steps})
        callback.on_train_begin()
        for epoch in range(epochs):
            callback.on_epoch_begin(epoch)
            for batch in range(steps):
                step += 1
                callback.on_train_batch_end(batch, {"loss": 1 / step})
            callback.on_test_begin()
            callback.on_test_end({"loss": 2 / step})
            callback.on_epoch_end(epoch, {"loss": 1 / step, "val_loss": 2 / step})
