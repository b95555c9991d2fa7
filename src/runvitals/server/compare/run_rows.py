"""Reads what is compared of many runs: statistics, and the fields that may decide a number of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from runvitals.model.filter import Filter, Labelled, Term, TextPattern
from runvitals.model.run import Run
from runvitals.model.run_groups import MAX_COLUMNS
from runvitals.model.run_sort import RunSort
from runvitals.server.compare.comparison import SYSTEM_STATISTICS
from runvitals.server.compare.parameters import Row
from runvitals.server.library.run_library import Library
from runvitals.server.runs.run_lists import ShownColumns

MAX_RUNS: Final = 1000
"""The newest so many runs are learned from."""
_RUNS_AT_ONCE: Final = 500
_CONFIG: Final = "config."


async def system_statistics(
    library: Library, runs: Sequence[Run], project_filter: Filter
) -> dict[str, dict[str, float | str]]:
    """Return the system statistics of runs, by run id."""
    if not runs:
        return {}
    ids = Term(Labelled("id", tuple(TextPattern(run.id) for run in runs)))
    shown_columns = ShownColumns(tuple(SYSTEM_STATISTICS))
    page = await library.page(
        replace(project_filter, terms=(ids,)), RunSort(), len(runs), None, _no_key, shown_columns
    )
    return {run.id: columns for run, columns in zip(page.runs, page.columns, strict=True)}


async def parameter_names(library: Library, run_filter: Filter) -> list[str]:
    """Return the fields of the configuration in which runs differ."""
    choices = await library.choices(run_filter)
    names = [choice.name for choice in choices if choice.name.startswith(_CONFIG) and len(choice.values) > 1]
    return names[: MAX_COLUMNS - 1]


async def newest_rows(library: Library, run_filter: Filter, fields: Sequence[str]) -> list[Row]:
    """Return fields of the newest 1,000 runs that match a filter."""
    return [row for _, row in await newest_runs(library, run_filter, fields)]


async def newest_runs(library: Library, run_filter: Filter, fields: Sequence[str]) -> list[tuple[Run, Row]]:
    """Return the newest 1,000 runs that match a filter, each with these fields."""
    rows: list[tuple[Run, Row]] = []
    after: Any = None
    newest = RunSort("started_ms", True)
    while len(rows) < MAX_RUNS:
        page = await library.page(
            run_filter, newest, _RUNS_AT_ONCE, after, _no_key, ShownColumns(tuple(fields))
        )
        rows += zip(page.runs, page.columns, strict=True)
        after = page.next
        if after is None:
            break
    return rows


def _no_key(key: str) -> bool:
    return False
