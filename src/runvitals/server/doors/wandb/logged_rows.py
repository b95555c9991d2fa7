"""Lines of history and of system metrics, as envelopes with samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from runvitals.model.batch_format import GAP
from runvitals.model.limits import AHEAD_MS, NAME_CHARACTERS, OLDEST_SENT_MS, ROW_NAMES
from runvitals.model.metrics import DEFINITIONS
from runvitals.model.names import name_fault, sanitized_name
from runvitals.model.values import valid_step
from runvitals.server.doors import recording
from runvitals.server.doors.wandb.run_writers import MONITOR, TRAIN, RunWriters
from runvitals.server.doors.wandb.stream_body import NewLines, parse_line
from runvitals.server.ingest.envelope import Envelope
from runvitals.server.library.stored.true_times import with_true_times

_MAX_TABLES: Final = 16
"""Rows with more different sets of names than this in a request become tables with gaps."""
_MAX_GAPPED_VALUES: Final = 65_536
_DEPTH: Final = 16
"""Levels of objects that become dotted names; deeper ones are left out."""
_LABEL: Final = "/l:"
_SYSTEM: Final = "system."
_TIME: Final = "_timestamp"
_OWN: Final = ("_step", "_runtime", _TIME, "_wandb")
_HUGE: Final = 1 << 1023
_EXACT: Final = 1 << 53
"""Larger integers are not exact as numbers of 64 bits, which charts show."""
Media = Mapping[str, Any]


@dataclass(slots=True)
class HistoryLine:
    """A row of history.

    The time that it is stored at, and that it was sent with, its step and numbers, and by name what is more
    than a number: texts, lists, media, booleans.
    """

    line: int
    time_ms: int
    sent_ms: int
    step: float
    numbers: dict[str, float]
    others: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ParsedRows:
    """Rows of history. `row_ms`: the time of the last one. `damaged`: lines that are no rows."""

    rows: list[HistoryLine]
    row_ms: int
    damaged: int


def parse_history(lines: NewLines, row_ms: int, now_ms: int) -> ParsedRows:
    """Return rows of history.

    Args:
        row_ms: the time of the last row before them: rows get ascending times, which identify them.
    """
    rows: list[HistoryLine] = []
    damaged = 0
    for number, line in enumerate(lines.lines, lines.first):
        data = parse_line(line)
        if data is None:
            damaged += 1
            continue
        sent_ms = _time_ms(data.get(_TIME), now_ms)
        time_ms = max(sent_ms, row_ms + 1)
        step = valid_step(data.get("_step"))
        row = HistoryLine(number, time_ms, sent_ms, float(number if step is None else step), {})
        row_ms = time_ms
        for name in _OWN:
            data.pop(name, None)
        _collect(data, "", row, _DEPTH)
        rows.append(row)
    return ParsedRows(rows, row_ms, damaged)


def history_envelopes(rows: Sequence[HistoryLine], writers: RunWriters) -> list[Envelope]:
    """Return envelopes with the numbers of rows."""
    groups: dict[tuple[str, ...], list[HistoryLine]] = {}
    for row in rows:
        groups.setdefault(tuple(row.numbers), []).append(row)
    groups.pop((), None)
    tables = groups.items() if len(groups) <= _MAX_TABLES else _merge(groups)
    return [_history_envelope(keys, members, writers) for keys, members in tables]


def _history_envelope(keys: Sequence[str], rows: Sequence[HistoryLine], writers: RunWriters) -> Envelope:
    columns = np.array([[row.numbers.get(key, GAP) for key in keys] for row in rows], np.float64)
    times = np.array([row.time_ms for row in rows], np.int64)
    sent = np.array([row.sent_ms for row in rows], np.int64)
    keys, columns = with_true_times(keys, columns, times, sent)
    return recording.samples(
        writers.run.uid,
        writers.name(TRAIN),
        keys,
        times,
        columns,
        project=writers.run.project,
        entity=writers.entity,
        about=writers.about(TRAIN),
        steps=[row.step for row in rows],
    )


def _merge(
    groups: Mapping[tuple[str, ...], list[HistoryLine]],
) -> Iterable[tuple[Sequence[str], list[HistoryLine]]]:
    """Merge rows with different names as long as the resulting table is small."""
    keys: dict[str, None] = {}
    rows: list[HistoryLine] = []
    for names, members in groups.items():
        both = {**keys, **dict.fromkeys(names)}
        if rows and len(both) * (len(rows) + len(members)) > _MAX_GAPPED_VALUES:
            yield tuple(keys), sorted(rows, key=_line_of)
            both, rows = dict.fromkeys(names), []
        keys = both
        rows += members
    yield tuple(keys), sorted(rows, key=_line_of)


def _line_of(row: HistoryLine) -> int:
    return row.line


def _collect(data: Mapping[str, Any], prefix: str, row: HistoryLine, levels: int) -> None:
    """Add the values of an object to a row; nested ones get dotted names."""
    for key, value in data.items():
        name = f"{prefix}{key}"
        if len(name) > NAME_CHARACTERS:
            name = sanitized_name(name)  # at each level: a long name would be copied for each value within
        if isinstance(value, dict) and value and "_type" not in value and levels > 1:
            _collect(value, f"{name}.", row, levels - 1)
            continue
        is_number = _is_number(value)
        if is_number and len(row.numbers) < ROW_NAMES:
            row.numbers[sanitized_name(name) if name_fault(name) else name] = float(value)
        if not is_number or isinstance(value, bool) or (isinstance(value, int) and abs(value) > _EXACT):
            row.others[name] = value


def _is_number(value: object) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < _HUGE)


def sent_ms(line: str, now_ms: int) -> int | None:
    """Return the time in a line of history or system metrics; None if it has none that can be stored."""
    return _valid_ms((parse_line(line) or {}).get(_TIME), now_ms)


def _time_ms(seconds: object, now_ms: int) -> int:
    """Return a time of a line in ms; now if it has none, or one that cannot be stored."""
    time_ms = _valid_ms(seconds, now_ms)
    return now_ms if time_ms is None else time_ms


def _valid_ms(seconds: object, now_ms: int) -> int | None:
    if isinstance(seconds, (int, float)) and OLDEST_SENT_MS <= seconds * 1000 <= now_ms + AHEAD_MS:
        return round(seconds * 1000)
    return None


def event_envelopes(lines: NewLines, writers: RunWriters, now_ms: int) -> tuple[list[Envelope], int]:
    """Return envelopes with the system metrics in lines, and how many lines are damaged."""
    tables: dict[tuple[str, tuple[str, ...]], tuple[list[int], list[list[float]]]] = {}
    damaged = 0
    for line in lines.lines:
        data = parse_line(line)
        if data is None:
            damaged += 1
            continue
        time_ms = _time_ms(data.get(_TIME), now_ms)
        for host, values in _system_values(data).items():
            times, rows = tables.setdefault((host, tuple(values)), ([], []))
            times.append(time_ms)
            rows.append(list(values.values()))
    envelopes = [
        recording.samples(
            writers.run.uid,
            writers.name(MONITOR, host),
            keys,
            times,
            np.array(rows, np.float64),
            project=writers.run.project,
            entity=writers.entity,
            about=writers.about(MONITOR, host),
        )
        for (host, keys), (times, rows) in tables.items()
        if keys
    ]
    return envelopes, damaged


def _system_values(data: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the readings in a line under our keys, by the machine that a label names ("": the client's)."""
    values_by_host: dict[str, dict[str, float]] = {}
    for key, value in data.items():
        if not key.startswith(_SYSTEM) or isinstance(value, bool) or not _is_number(value):
            continue
        name, _, host = key[len(_SYSTEM) :].partition(_LABEL)
        match = DEFINITIONS.find(name)
        name = name if match is None else match.key
        values = values_by_host.setdefault(host, {})
        if len(values) < ROW_NAMES:
            values[sanitized_name(name) if name_fault(name) else name] = float(value)
    return values_by_host
