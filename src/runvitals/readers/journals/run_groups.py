"""Groups of runs in memory, and what a filter of them can name: the counterpart of the metadata store's."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from runvitals.model import fields
from runvitals.model.completion import MAX_VALUES, FieldChoice, FieldKind
from runvitals.model.fields import NUMBER, Scalar
from runvitals.model.filter import is_field
from runvitals.model.run import Run
from runvitals.model.run_groups import MAX_GROUPS, ColumnSummary, GroupValue, RunGroup, TooManyGroups
from runvitals.readers.journals.run_filter import SystemStatistics, value_of


def groups_of(
    runs: Sequence[Run], by: Sequence[str], columns: Sequence[str], statistics: SystemStatistics
) -> list[RunGroup]:
    """Return the groups of runs, unordered; without `by` one group of all.

    Raises:
        TooManyGroups: there are too many.
    """
    grouped: dict[tuple[GroupValue, ...], list[Run]] = defaultdict(list)
    if not by:
        grouped[()] = []
    for run in runs:
        for values in itertools.product(*(_values(run, name, statistics) for name in by)):
            grouped[values].append(run)
        if len(grouped) > MAX_GROUPS:
            raise TooManyGroups
    return [_group(values, members, columns, statistics) for values, members in grouped.items()]


def _values(run: Run, name: str, statistics: SystemStatistics) -> Sequence[GroupValue]:
    """Return the values by which a run is grouped: several for tags and hosts, otherwise one."""
    if name == "tag":
        return run.tags or [None]
    if name == "host":
        return sorted({host.name for host in run.hosts}) or [None]
    value = value_of(run, "author" if name == "user" else name, statistics)
    group_value = _group_value(value)
    return [group_value if is_field(name) else group_value or None]


def _group_value(value: Scalar | None) -> GroupValue:
    if value is None:
        return None
    return value.number if value.kind == NUMBER else value.text


def _group(
    values: tuple[GroupValue, ...], runs: Sequence[Run], columns: Sequence[str], statistics: SystemStatistics
) -> RunGroup:
    started = [run.started_ms for run in runs]
    return RunGroup(
        values,
        len(runs),
        Counter(run.state for run in runs),
        min(started, default=None),
        max(started, default=None),
        _summary([float(run.duration_ms) for run in runs]),
        {name: _summary(_numbers(runs, name, statistics)) for name in columns},
    )


def _numbers(runs: Sequence[Run], name: str, statistics: SystemStatistics) -> list[float]:
    values = (value_of(run, name, statistics) for run in runs)
    return [value.number for value in values if value is not None and value.kind == NUMBER]


def _summary(numbers: Sequence[float]) -> ColumnSummary:
    if not numbers:
        return ColumnSummary(0)
    total = sum(numbers)
    return ColumnSummary(len(numbers), min(numbers), total / len(numbers), max(numbers), total)


def choices_of(runs: Sequence[Run]) -> list[FieldChoice]:
    """Return the names that a filter can have, with their most frequent values."""
    texts: dict[str, Counter[str]] = {
        "project": Counter(run.project for run in runs),
        "group": Counter(run.group for run in runs if run.group),
        "job_type": Counter(run.job_type for run in runs if run.job_type),
        "name": Counter(run.name for run in runs),
        "tag": Counter(tag for run in runs for tag in run.tags),
        "host": Counter(host.name for run in runs for host in run.hosts),
    }
    labels = [FieldChoice(name, "text", _most_frequent(counter)) for name, counter in texts.items()]
    return [*labels, *_field_choices(runs)]


def _most_frequent(counter: Counter[str]) -> tuple[str, ...]:
    return tuple(text for text, _ in counter.most_common(MAX_VALUES))


def _field_choices(runs: Iterable[Run]) -> list[FieldChoice]:
    values: dict[str, Counter[Scalar]] = defaultdict(Counter)
    for run in runs:
        for section in fields.SECTIONS:
            for name, leaf in fields.leaves(section, getattr(run, section)).items():
                values[name][leaf] += 1
    choices = []
    for name, counter in sorted(values.items()):
        kinds = Counter(leaf.kind for leaf in counter.elements())
        common = kinds.most_common(1)[0][0]
        kind: FieldKind = "number" if common == NUMBER else "text"
        common_values = [_group_value(leaf) for leaf, _ in counter.most_common() if leaf.kind == common][
            :MAX_VALUES
        ]
        choices.append(FieldChoice(name, kind, tuple(value for value in common_values if value is not None)))
    return choices
