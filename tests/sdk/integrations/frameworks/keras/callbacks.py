"""`keras.callbacks`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Callback:
    def __init__(self) -> None:
        self.params: Mapping[str, Any] | None = None

    def set_params(self, params: Mapping[str, Any]) -> None:
        self.params = params

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None: ...
    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None: ...
    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None: ...
    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None: ...
    def on_test_end(self, logs: Mapping[str, Any] | None = None) -> None: ...
    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None: ...
