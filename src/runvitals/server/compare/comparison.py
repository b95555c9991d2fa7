"""Compares runs: in which facts they differ, and which has the best value of each statistic."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, Literal, NamedTuple

from runvitals.model.run import Run
from runvitals.model.summary import matches
from runvitals.model.system_statistics import QUANTITIES
from runvitals.server.charts.headline_names import choose_goal

Section = Literal["run", "config", "git", "packages", "hardware", "environment"]
Goal = Literal["minimize", "maximize"]
MAX_NAMES: Final = 2000
"""Names of one section, of all runs together."""
MAX_TEXT: Final = 2000
"""Characters of one value."""
_MAX_DEPTH: Final = 8
_MAX_LEAVES: Final = 2000
_HARDWARE: Final = frozenset(
    (
        "accelerators",
        "cpu",
        "disks",
        "infiniband",
        "memory",
        "model",
        "network",
        "numa",
        "visible_devices",
    )
)
_OF_ONE_START: Final = frozenset(("boot_id", "file_systems", "unreadable", "uptime_s"))
"""Facts that differ between any two runs and explain nothing."""
_OF_ONE_DEVICE: Final = frozenset(("address", "bus", "bdf", "index", "mac", "pci", "serial", "used", "uuid"))
"""Fields that identify one of several equal devices."""


class Fact(NamedTuple):
    """A fact of one run."""

    section: Section
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class FactRow:
    """A fact of all runs.

    Args:
        values: by run; one value if all have the same.
        absent: the places of the runs that do not have it.
    """

    section: Section
    name: str
    differs: bool
    values: list[Any]
    absent: list[int]


@dataclass(frozen=True, slots=True)
class StatisticRow:
    """A number of each run.

    Args:
        unit: "" if it is not known.
        goal: which is better, if the runs that declare it agree.
        best: the places of the best runs; empty without a goal, or if all are equally good.
    """

    name: str
    unit: str
    goal: Goal | None
    values: list[float | None]
    best: list[int]


def facts_of(run: Run) -> Iterator[Fact]:
    """Yield the facts of a run that are compared."""
    about = {
        "project": run.project if run.entity is None else f"{run.entity}/{run.project}",
        "group": run.group,
        "job_type": run.job_type,
        "tags": ", ".join(sorted(run.tags)) or None,
        "author": None if run.author is None else run.author.name or run.author.display_name,
        "command": " ".join(run.command) or None,
        "hosts": len(run.hosts),
        "processes": len(run.ranks) or None,
    }
    for name, value in about.items():
        if value is not None:
            yield Fact("run", name, value)
    for name, value in leaves(run.config):
        yield Fact("config", name, value)
    for (section, name), values in _of_machines(run.machines.values()).items():
        equal = len({_text(value) for value in values}) == 1
        yield Fact(section, name, values[0] if equal else _count_values(values))


def _of_machines(machines: Iterable[Mapping[str, Any]]) -> dict[tuple[Section, str], list[Any]]:
    """Return the values of each fact, one by host that has it."""
    values: dict[tuple[Section, str], list[Any]] = {}
    for machine in machines:
        for name, value in machine.items():
            if name in _OF_ONE_START or name == "command":
                continue
            section = _section_of(name)
            inner = {name: value} if section in ("hardware", "environment") else value
            for leaf, text in leaves(inner if isinstance(inner, dict) else {name: inner}):
                values.setdefault((section, leaf), []).append(text)
    return values


def _section_of(name: str) -> Section:
    if name == "git":
        return "git"
    if name == "packages":
        return "packages"
    return "hardware" if name in _HARDWARE or name.startswith("gpu_") else "environment"


def leaves(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a JSON object by dotted name.

    Of a list of objects, such as devices, each field is one leaf with all its values.

    Example:
        >>> dict(leaves({"lr": 0.1, "gpus": [{"name": "H100", "uuid": "a"}, {"name": "H100", "uuid": "b"}]}))
        {'lr': 0.1, 'gpus.name': '2 × H100'}
    """
    for count, leaf in enumerate(_walk("", value, 0)):
        if count == _MAX_LEAVES:
            return
        yield leaf


def _walk(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and depth <= _MAX_DEPTH:
        for key, item in value.items():
            yield from _walk(f"{name}.{key}" if name else str(key), item, depth + 1)
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        fields = dict.fromkeys(key for item in value for key in item if key not in _OF_ONE_DEVICE)
        for key in fields:
            yield f"{name}.{key}", _count_values([item[key] for item in value if key in item])
    else:
        yield name, _shorten(value)


def _shorten(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return value[:MAX_TEXT] if isinstance(value, str) else value


def _count_values(values: Sequence[Any]) -> Any:
    """Return a single value as it is; otherwise a text with how many there are of each: `7 × H100, A100`."""
    if len(values) == 1:
        return _shorten(values[0])
    counts = Counter(_text(value) for value in values)
    return ", ".join(text if number == 1 else f"{number} × {text}" for text, number in counts.most_common())[
        :MAX_TEXT
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def compared_facts(runs: Sequence[Run]) -> tuple[list[FactRow], int]:
    """Return the facts of all runs in a row each, and how many names were left out."""
    by_name: dict[tuple[Section, str], dict[int, Any]] = {}
    names_of: Counter[Section] = Counter()
    left_out: set[tuple[Section, str]] = set()
    for position, run in enumerate(runs):
        for section, name, value in facts_of(run):
            if (section, name) not in by_name:
                if names_of[section] == MAX_NAMES:
                    left_out.add((section, name))
                    continue
                names_of[section] += 1
            by_name.setdefault((section, name), {})[position] = value
    rows = [_fact_row(section, name, values, len(runs)) for (section, name), values in by_name.items()]
    return rows, len(left_out)


def _fact_row(section: Section, name: str, values: Mapping[int, Any], runs: int) -> FactRow:
    absent = [position for position in range(runs) if position not in values]
    different = {_text(value) if value is not None else "null" for value in values.values()}
    differs = len(different) > 1 or bool(absent)
    listed_values = (
        [values.get(position) for position in range(runs)] if differs else [next(iter(values.values()))]
    )
    return FactRow(section, name, differs, listed_values, absent)


SYSTEM_STATISTICS: Final = {
    name: quantity.unit
    for quantity in QUANTITIES
    for name in quantity.statistics
    if not name.endswith(".min")
}
"""The system statistics that are compared, with their units."""
_SUMMARY: Final = "summary."
_NO_STATISTICS: Final[Mapping[str, Mapping[str, float | str]]] = {}


def statistics(
    runs: Sequence[Run], system: Mapping[str, Mapping[str, float | str]] = _NO_STATISTICS
) -> list[StatisticRow]:
    """Return the numbers in the summaries of runs, and statistics of the system, with the best marked.

    Args:
        system: by run id: the values of `SYSTEM_STATISTICS`.
    """
    by_name: dict[str, list[float | None]] = {}
    for position, run in enumerate(runs):
        for name, value in leaves(run.summary):
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if is_number and (name in by_name or len(by_name) < MAX_NAMES):
                by_name.setdefault(name, [None] * len(runs))[position] = float(value)
    rows = [
        _statistic(f"{_SUMMARY}{name}", "", goal_of(name, runs), by_name[name]) for name in sorted(by_name)
    ]
    if runs:
        rows.append(_statistic("duration", "s", None, [run.duration_ms / 1000 for run in runs]))
    for name, unit in SYSTEM_STATISTICS.items():
        values = [_number(system.get(run.id, {}).get(name)) for run in runs]
        if any(value is not None for value in values):
            rows.append(_statistic(name, unit, None, values))
    return rows


def goal_of_runs(runs: Iterable[Run], rows: Iterable[StatisticRow]) -> tuple[str, Goal | None] | None:
    """Return the name of the metric by which runs are judged, and which of its values are better."""
    names = [row.name.removeprefix(_SUMMARY) for row in rows if row.name.startswith(_SUMMARY)]
    defined: dict[str, Mapping[str, Any]] = {}
    for run in runs:
        defined.update(run.defined_metrics)
    return choose_goal(names, defined)


def _number(value: float | str | None) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _statistic(name: str, unit: str, goal: Goal | None, values: list[float | None]) -> StatisticRow:
    finite_values = [value for value in values if value is not None and isfinite(value)]
    best: list[int] = []
    if goal is not None and len(set(finite_values)) > 1:
        best_value = min(finite_values) if goal == "minimize" else max(finite_values)
        best = [position for position, value in enumerate(values) if value == best_value]
    return StatisticRow(name, unit, goal, values, best)


def goal_of(name: str, runs: Iterable[Run]) -> Goal | None:
    """Return which values are better by `define_metric`; None if nobody says, or not all the same."""
    goals = {_goal_of(name, run.defined_metrics) for run in runs} - {None}
    return goals.pop() if len(goals) == 1 else None


def _goal_of(name: str, defined: Mapping[str, Mapping[str, Any]]) -> Goal | None:
    """By the name itself, else by the longest pattern that matches and has a goal."""
    fitting = [
        pattern
        for pattern, definition in defined.items()
        if "goal" in definition and (pattern == name or matches(pattern, name))
    ]
    pattern = name if name in fitting else max(fitting, key=lambda text: (len(text), text), default=None)
    return None if pattern is None else defined[pattern]["goal"]
