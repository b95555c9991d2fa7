"""The parts of `lightning.pytorch` that a callback meets."""

from __future__ import annotations

from typing import Any


class Callback:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda *args, **others: None
        raise AttributeError(name)


class Module:
    hparams = {"lr": 0.1, "layers": [2, 3]}


class Trainer:
    def __init__(self, callbacks: list[Callback], rank: int = 0) -> None:
        assert all(isinstance(callback, Callback) for callback in callbacks)
        self.callbacks = callbacks
        self.is_global_zero = rank == 0
        self.sanity_checking = False
        self.current_epoch = self.global_step = 0
        self.logged_metrics: dict[str, float] = {}

    def _call(self, hook: str, *args: object) -> None:
        for callback in self.callbacks:
            getattr(callback, hook)(self, Module(), *args)

    def _validate(self) -> None:
        self._call("on_validation_start")
        self._call("on_validation_end")

    def fit(self, epochs: int, steps: int) -> None:
        self._call("setup", "fit")
        self.sanity_checking = True
        self._validate()
        self.sanity_checking = False
        for self.current_epoch in range(epochs):
            self._call("on_train_epoch_start")
            for index in range(steps):
                self.global_step += 1
                self.logged_metrics["loss"] = 1 / self.global_step
                self._call("on_train_batch_end", None, None, index)
            self.logged_metrics["val_loss"] = 2 / self.global_step
            self._validate()
            self._call("on_train_epoch_end")
            self._call("on_save_checkpoint", {})
