"""Logs what the process writes with TensorBoard's `SummaryWriter`: `init(sync_tensorboard=True)`.

PyTorch's writer and tensorboardX's each end in a class `EventFileWriter`, whose `add_event` gets every event.
TensorFlow's own writer does not; import its files afterwards.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runvitals.monitoring.settings.messages import notify

if TYPE_CHECKING:
    from runvitals.sdk.run import Run

_MODULES = ("tensorboard.summary.writer.event_file_writer", "tensorboardX.event_file_writer")
_SCALARS = "scalars"
CurrentRun = Callable[[], "Run | None"]


def follow(current_run: CurrentRun) -> None:
    """Log the scalars of all events that are written from now on, in the run that is open then.

    Args:
        current_run: returns the open run, or None.
    """
    modules = [module for module in map(_import, _MODULES) if module is not None]
    if not modules:
        notify("sync_tensorboard: neither tensorboard nor tensorboardX is installed")
    for module in modules:
        writer: Any = module.EventFileWriter
        if not hasattr(writer.add_event, "__wrapped__"):
            writer.add_event = _with_log(writer.add_event, current_run)


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _with_log(add_event: Callable[[Any, Any], None], current_run: CurrentRun) -> Callable[[Any, Any], None]:
    def add_and_log(self: Any, event: Any) -> None:
        add_event(self, event)
        run = current_run()
        if run is not None and event.HasField("summary"):
            row = scalars_of(event.summary)
            if row:
                run.log(row, step=event.step)

    add_and_log.__wrapped__ = add_event  # type: ignore[attr-defined]
    return add_and_log


def scalars_of(summary: Any) -> dict[str, float]:
    """Return the numbers of a summary by their tags."""
    numbers = ((value.tag, _number(value)) for value in summary.value)
    return {tag: number for tag, number in numbers if number is not None}


def _number(value: Any) -> float | None:
    """Return the number of a summary's value; None for images, histograms and texts."""
    if value.HasField("simple_value"):
        return float(value.simple_value)
    if value.HasField("tensor") and value.metadata.plugin_data.plugin_name == _SCALARS:
        tensor = value.tensor
        for numbers in (tensor.float_val, tensor.double_val):
            if len(numbers) == 1:
                return float(numbers[0])
    return None
