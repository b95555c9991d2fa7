"""Parses the `wait_duration` of an alert: how long it suppresses others with its title."""

from __future__ import annotations

from typing import Any

from runvitals.model.values import type_name

_MAX_WAIT_S = 366 * 86_400.0


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
