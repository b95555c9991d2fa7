"""Names of runs' fields in filters and orders of W&B's clients, as our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TIMES: Final[Mapping[str, str]] = {
    "createdAt": "started_ms",
    "created_at": "started_ms",
    "startedAt": "started_ms",
    "started_at": "started_ms",
    "heartbeatAt": "last_ms",
    "heartbeat_at": "last_ms",
    "updatedAt": "last_ms",
    "updated_at": "last_ms",
}
"""Our times, in ms."""
DURATIONS: Final = ("duration", "runtime", "computeSeconds")
"""Names of how long a run took, in s."""
_SECTIONS: Final[Mapping[str, str]] = {
    "config.": "config.",
    "summary_metrics.": "summary.",
    "summaryMetrics.": "summary.",
    "summary.": "summary.",
    "keys_info.keys.": "summary.",
}
_OWN_SUMMARY: Final[Mapping[str, str]] = {
    "_step": "summary._step",
    "_runtime": "duration",
    "_wandb.runtime": "duration",
    "_timestamp": "heartbeatAt",
}
"""Our fields for wandb's own names in a summary."""


class BadFilter(ValueError):
    """A filter or order that cannot be answered. The message says where, and what is allowed."""


def known_name(name: str) -> str:
    """Return the field that a name means.

    Raises:
        BadFilter: it is one of wandb's own names in a summary that runs cannot be compared by.
    """
    section, _, own = name.partition(".")
    if not own.startswith("_") or section == "config":
        return name
    if own not in _OWN_SUMMARY:
        allowed = ", ".join(_OWN_SUMMARY)
        raise BadFilter(
            f"runs cannot be compared by {name[:60]!r}; expected one of {allowed} after {section}."
        )
    return _OWN_SUMMARY[own]


def field_names(name: str) -> list[str]:
    """Return our names of a field, the likeliest last; none if it is no field.

    The values of a configuration are named `config.lr` or `config.lr.value`, those within `config.net.width`
    or `config.net.value.width`.
    """
    for theirs, ours in _SECTIONS.items():
        rest = name[len(theirs) :]
        if name.startswith(theirs) and rest:
            short = rest.removesuffix(".value")
            key, _, within = rest.partition(".value.")
            if within and "." not in key:
                short = f"{key}.{within}"
            return [f"{ours}{rest}"] if short == rest or not short else [f"{ours}{rest}", f"{ours}{short}"]
    return []
