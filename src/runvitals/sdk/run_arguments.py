"""Checks the arguments of a run's `finish`, `alert` and `define_metric`."""

from __future__ import annotations

from operator import index
from typing import Any, SupportsIndex

from runvitals.model.defined_metrics import GOALS
from runvitals.model.limits import INT64
from runvitals.model.names import name_fault
from runvitals.model.summary import KINDS
from runvitals.model.values import type_name

_MAX_WAIT_S = 366 * 86_400.0
_OUT_OF_RANGE = 255
_INTERRUPTED = 130  # Python then exits by SIGINT; shells report that as 128 + 2


def exit_code_of(kind: type[BaseException], error: BaseException | None) -> int:
    """Return the exit code Python would use if this exception propagated."""
    if issubclass(kind, KeyboardInterrupt):
        return _INTERRUPTED
    if not issubclass(kind, SystemExit):
        return 1
    code = getattr(error, "code", None)
    if code is None:
        return 0
    return valid_exit_code(code) if isinstance(code, int) else 1


def valid_exit_code(code: SupportsIndex | None) -> int:
    """Return an exit code that fits in a record: 0 for None, 255 for a number beyond 64 bits.

    Raises:
        TypeError: not an integer.

    Example:
        >>> valid_exit_code(None), valid_exit_code(True), valid_exit_code(10**30)
        (0, 1, 255)
    """
    if code is None:
        return 0
    if not hasattr(code, "__index__"):
        raise TypeError(f"finish(): exit_code must be an integer, not {code!r:.80}")
    number = index(code)
    return number if -INT64 <= number < INT64 else _OUT_OF_RANGE


def wait_seconds(duration: Any) -> float:
    """Return the seconds of a `wait_duration`, at most a year; 0 for NaN and what is negative.

    Raises:
        TypeError: it is neither a number nor a timedelta.
    """
    seconds = duration.total_seconds() if hasattr(duration, "total_seconds") else duration
    if isinstance(seconds, (str, bytes)) or not hasattr(seconds, "__float__"):
        raise TypeError(f"alert(): wait_duration must be seconds or a timedelta, not {type_name(duration)}")
    if isinstance(seconds, int):
        seconds = min(seconds, int(_MAX_WAIT_S))
    return max(0.0, min(float(seconds), _MAX_WAIT_S))


def metric_definition(
    name: str, summary: str, x: str | None, hidden: bool | None, goal: str | None
) -> dict[str, dict[str, Any]]:
    """Return the `metrics` of an INFO record; see `Run.define_metric`.

    Raises:
        TypeError: a name is not a string.
        ValueError: an invalid name, or an unknown summary or goal.

    Example:
        >>> metric_definition("val/*", "min", "epoch", None, None)
        {'val/*': {'summary': 'min', 'x': 'epoch'}}
    """
    for parameter, text in (("name", name), ("x", x)):
        if text is None and parameter == "x":
            continue
        if not isinstance(text, str):
            raise TypeError(f"define_metric(): {parameter} must be a string, not {type(text).__name__}")
        if fault := name_fault(text):
            raise ValueError(f"define_metric(): {fault}")
    if summary == "best":
        summary = "max" if goal == "maximize" else "min"
    if summary not in KINDS:
        raise ValueError(
            f"define_metric({name!r}): unknown summary {summary!r}; expected one of {', '.join(KINDS)}"
        )
    if goal is not None and goal not in GOALS:
        raise ValueError(
            f"define_metric({name!r}): unknown goal {goal!r}; expected one of {', '.join(GOALS)}"
        )
    fields = {"summary": summary, "x": x, "hidden": None if hidden is None else bool(hidden), "goal": goal}
    return {name: {field: value for field, value in fields.items() if value is not None}}
