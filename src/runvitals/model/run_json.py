"""Converts a run to plain JSON values, as the command line and the API return it."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import Any

from runvitals.model.run import Run


def run_as_dict(run: Run) -> dict[str, Any]:
    """Return a run as a dict. The fields of `ending` (`state`, `exit_code` …) are inlined, also in hosts."""
    fields = asdict(run)
    run_id, ending = fields.pop("id"), fields.pop("ending")
    hosts = [_host_as_dict(host) for host in fields.pop("hosts")]
    return {"id": run_id, **ending.as_dict(), **fields, "hosts": hosts}


def _host_as_dict(fields: dict[str, Any]) -> dict[str, Any]:
    ending = fields.pop("ending")
    return {**ending.as_dict(), **fields}


def finite(value: Any) -> Any:
    """Return the value with NaN and infinities, which JSON cannot represent, replaced by None.

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
