"""Orders of runs as `wandb.Api().runs(order=)` writes them, as our own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from runvitals.model.mongo_fields import DURATIONS, TIMES, BadFilter, field_names, known_name
from runvitals.model.run_sort import MAX_PARTS, RunSort

_ORDERED_BY: Final[Mapping[str, str]] = {
    **TIMES,
    **dict.fromkeys(DURATIONS, "duration_ms"),
    "name": "id",
    "displayName": "name",
    "display_name": "name",
    "group": "group",
    "jobType": "job_type",
    "job_type": "job_type",
    "state": "state",
    "user": "author",
    "username": "author",
}


def parse_order(text: str | None) -> RunSort:
    """Return the order of runs: `+created_at`, `-summary_metrics.loss,name`, `config.lr`.

    Ascending without a sign. A field of the configuration or summary may have commas in its name.

    Raises:
        BadFilter: runs cannot be ordered by this.
    """
    parts = (text or "+created_at").split(",")
    if len(parts) > 1 and not all(map(_is_order, parts)):
        parts = [text or ""]
    if len(parts) > MAX_PARTS:
        raise BadFilter(f"cannot order runs by {len(parts)} fields; expected at most {MAX_PARTS}")
    first, *others = map(_order_part, parts)
    return replace(first, then=tuple(others))


def _is_order(part: str) -> bool:
    try:
        return bool(_order_part(part))
    except BadFilter:
        return False


def _order_part(part: str) -> RunSort:
    name = part.strip()
    by = known_name(name[1:] if name[:1] in ("+", "-") else name)
    column = _ORDERED_BY.get(by)
    if column is None:
        names = field_names(by)
        if not names:
            raise BadFilter(
                f"cannot order runs by {by[:60]!r}; expected one of "
                f"{', '.join(sorted(_ORDERED_BY))}, config.… or summary_metrics.…"
            )
        column = names[-1]
    return RunSort(column, descending=name.startswith("-"))
