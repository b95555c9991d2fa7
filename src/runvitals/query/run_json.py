"""A run as plain JSON values: the one shape that the command line and the API write."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import Any

from runvitals.model.run import Run


def run_as_dict(run: Run) -> dict[str, Any]:
    """A run's facts. Its ending and each host's are spread out: `state`, `exit_code`, `signal` …"""
    plain = asdict(run)
    hosts = [_spread(host) for host in plain.pop("hosts")]
    return {"id": plain.pop("id"), **_spread(plain), "hosts": hosts}


def _spread(plain: dict[str, Any]) -> dict[str, Any]:
    return {**plain.pop("ending"), **plain}


def finite(value: Any) -> Any:
    """The same value with None in place of NaN and infinities, which JSON does not have.

    Example:
        >>> finite({"loss": float("nan"), "steps": [1, 2.5]})
        {'loss': None, 'steps': [1, 2.5]}
    """
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value
