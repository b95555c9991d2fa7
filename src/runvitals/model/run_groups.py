"""Groups of runs with the same values, and the statistics of their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from runvitals.model.filter import is_field
from runvitals.model.run_verdict import finding_field
from runvitals.model.system_statistics import statistic_named

GROUPED_COLUMNS: Final = (
    "project",
    "entity",
    "user",
    "state",
    "group",
    "job_type",
    "tag",
    "host",
)
"""Columns that runs can be grouped by. A run with several tags or hosts is in several groups."""
MAX_BY: Final = 4
MAX_COLUMNS: Final = 50
MAX_GROUPS: Final = 10_000
NUMBER_OF_RUNS: Final = "runs"
STARTED: Final = "started_ms"
GroupValue = str | float | None


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """The numbers of a column in the runs of a group. `n`: how many runs have one."""

    n: int
    min: float | None = None
    mean: float | None = None
    max: float | None = None
    sum: float | None = None


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs with the same values.

    Args:
        values: in the order of what they are grouped by; None where a run has no value.
        states: how many runs are in each state.
        first_ms, last_ms: when the first and the last of them started; None without runs.
        duration_ms: how long they took, or have taken so far.
        columns: by field.
    """

    values: tuple[GroupValue, ...]
    runs: int
    states: Mapping[str, int]
    first_ms: int | None
    last_ms: int | None
    duration_ms: ColumnSummary
    columns: Mapping[str, ColumnSummary] = field(default_factory=dict)


class TooManyGroups(ValueError):
    """The runs have too many different values."""

    def __init__(self) -> None:
        super().__init__(
            f"the runs are in more than {MAX_GROUPS:,} groups: group by something else, or narrow the filter"
        )


def field_named(name: str) -> str:
    """Return the field that a user means: `cfg.lr` is `config.lr`, `gpu.util` is `system.gpu`.

    Raises:
        ValueError: there is no such field.
    """
    if name.startswith("cfg."):
        name = f"config.{name[len('cfg.') :]}"
    field = finding_field(name) or statistic_named(name) or name
    if not is_field(field):
        raise ValueError(f"unknown column {name!r:.100}; expected config.…, summary.… or system.…")
    return field


def grouped_by(name: str) -> str:
    """Return the column or field that a user's name to group by stands for.

    Raises:
        ValueError: runs cannot be grouped by it.
    """
    if name in GROUPED_COLUMNS:
        return name
    if name == "author":
        return "user"
    try:
        return field_named(name)
    except ValueError:
        allowed = ", ".join(GROUPED_COLUMNS)
        raise ValueError(
            f"cannot group runs by {name!r:.100}; expected one of {allowed}, config.…, summary.… or system.…"
        ) from None


def sorted_groups(
    groups: Sequence[RunGroup], by: Sequence[str], columns: Sequence[str], order: str
) -> list[RunGroup]:
    """Groups in a sort order; missing values come last.

    Args:
        by, columns: what they are grouped by, and their columns, whose means are compared.
        order: as `-runs,config.lr`; also `started_ms`: when the newest run started.

    Raises:
        ValueError: an unknown name.
    """
    result = sorted(groups, key=lambda group: tuple(_order_of(value) for value in group.values))
    for name in reversed(order.split(",")):
        bare = name.removeprefix("-")
        missing_last = [(group, _value(group, bare, by, columns)) for group in result]
        present = [(group, value) for group, value in missing_last if value is not None]
        present.sort(key=lambda pair: _order_of(pair[1]), reverse=name.startswith("-"))
        result = [group for group, _ in present]
        result += [group for group, value in missing_last if value is None]
    return result


def _value(group: RunGroup, name: str, by: Sequence[str], columns: Sequence[str]) -> GroupValue:
    if name in by:
        return group.values[by.index(name)]
    if name == NUMBER_OF_RUNS:
        return group.runs
    if name == STARTED:
        return group.last_ms
    if name in columns:
        return group.columns[name].mean
    allowed = ", ".join((*by, NUMBER_OF_RUNS, STARTED, *columns))
    raise ValueError(f"cannot order groups by sort={name:.100}; expected one of {allowed}")


def _order_of(value: GroupValue) -> tuple[int, float, str]:
    """Numbers come before texts."""
    if value is None:
        return 2, 0.0, ""
    return (1, 0.0, value) if isinstance(value, str) else (0, value, "")
