"""Stands in for transformers: a Trainer that calls events in its order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


class TrainerCallback:
    def on_epoch_end(self, *args: object, **others: object) -> None:
        """An event that no callback handles."""


class TrainingArguments:
    def to_sanitized_dict(self) -> dict[str, Any]:
        return {"learning_rate": 0.1, "output_dir": "out", "callable": "<function>"}


class Trainer:
    def __init__(self, callbacks: list[TrainerCallback], rank: int = 0) -> None:
        assert all(isinstance(callback, TrainerCallback) for callback in callbacks)
        self.callbacks = callbacks
        self.state = SimpleNamespace(is_world_process_zero=rank == 0, epoch=None, global_step=0)

    def _call(self, event: str, **others: object) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(TrainingArguments(), self.state, None, model=None, **others)

    def train(self, epochs: int, steps: int) -> None:
        self._call("on_train_begin")
        for epoch in range(epochs):
            self.state.epoch = float(epoch)
            self._call("on_epoch_begin")
            for step in range(steps):
                self.state.global_step += 1
                self.state.epoch = epoch + (step + 1) / steps
                self._call("on_step_end")
            self._call("on_log", logs={"loss": 1 / self.state.global_step})
            self._call("on_epoch_end")
            self._call("on_evaluate", metrics={})
            self._call("on_save")
