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
    order = text or "+created_at"
    sorts = [_sort_by(part) for part in order.split(",")]
    criteria = [sort for sort in (sorts if all(sorts) else [_sort_by(order)]) if sort is not None]
    if not 0 < len(criteria) <= MAX_PARTS:
        raise BadFilter(
            f"cannot order runs by {order[:60]!r}; expected at most {MAX_PARTS} of "
            f"{', '.join(sorted(_ORDERED_BY))}, config.… or summary_metrics.…"
        )
    return replace(criteria[0], then=tuple(criteria[1:]))


def _sort_by(part: str) -> RunSort | None:
    name = part.strip()
    by = known_name(name[1:] if name[:1] in ("+", "-") else name)
    column = _ORDERED_BY.get(by) or next(reversed(field_names(by)), None)
    return None if column is None else RunSort(column, descending=name.startswith("-"))
