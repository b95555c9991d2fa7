"""RunSamples as series: times and values of each key, across restarts of a host's monitor.

Values are returned exactly as written. A key that is missing from a sample has no point there; NaN is a gap.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from operator import le
from typing import TYPE_CHECKING, Any

from runvitals.model.metrics import mlflow
from runvitals.readers.journals import data_frames, html_views, plots
from runvitals.readers.journals.arrays import numpy_or_none
from runvitals.readers.journals.key_filter import KeyFilter, canonical, unit
from runvitals.readers.journals.rates import Rate, derive, rate_of

if TYPE_CHECKING:
    from runvitals.journal.records import Record

Column = Any  # a numpy array where numpy is installed, else a list
Groups = Mapping[tuple[str, str], Sequence[str]]  # the writers of each (host, role), oldest first
NAN = float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """The values of one key of one host over time.

    Args:
        key: as written, or the key of a derived rate.
        host: host name.
        role: the writers' role: `monitor`, or `train` for values written by a training process.
        t: ms UTC, ascending, int64.
        values: float64; NaN is a gap.

    Example:
        >>> t, values = run.metrics("cpu")["cpu"]
    """

    key: str
    host: str
    role: str
    t: Column
    values: Column

    def __iter__(self) -> Iterator[Column]:
        return iter((self.t, self.values))

    def __len__(self) -> int:
        return len(self.t)

    @property
    def unit(self) -> str:
        """The metric's unit, MLflow's for an MLflow name, or "" for an unknown key."""
        return unit(self.key)


class Columns(Mapping[str, Series]):
    """Series by key. If several hosts have a key, select one: `columns.on("node1")["cpu"]`.

    Example:
        >>> gpus = runvitals.open_run("abc").metrics("gpu.*")
        >>> for key, (t, values) in gpus.items():
        ...     print(key, values[-1])
    """

    def __init__(self, series: Iterable[Series]) -> None:
        self.series = list(series)
        self._by_key: dict[str, list[Series]] = {}
        for item in self.series:
            self._by_key.setdefault(item.key, []).append(item)

    @property
    def hosts(self) -> list[str]:
        """The hosts that the series are from."""
        return list(dict.fromkeys(item.host for item in self.series))

    def on(self, host: str) -> Columns:
        """Return the series of one host, or raise LookupError, which lists the hosts."""
        series = [item for item in self.series if item.host == host]
        if not series:
            raise LookupError(f"no series of host {host!r}; hosts: {', '.join(self.hosts) or 'none'}")
        return Columns(series)

    def __getitem__(self, key: str) -> Series:
        series = self._by_key.get(key)
        if series is None:
            series = [item for same in self._spelled_as(key) for item in self._by_key[same]]
        if not series:
            raise KeyError(key)
        if len({item.key for item in series}) > 1:
            keys = ", ".join(dict.fromkeys(item.key for item in series))
            raise LookupError(f"{key!r} is ambiguous: use one of {keys}")
        if len(series) > 1:
            hosts = ", ".join(item.host for item in series)
            raise LookupError(f"several hosts have {key!r} ({hosts}): select one with .on(host)[{key!r}]")
        return series[0]

    def _spelled_as(self, key: str) -> list[str]:
        """Return the keys that match another spelling."""
        matches = KeyFilter([key])
        return [
            spelling
            for spelling in self._by_key
            if matches(canonical(spelling)) or canonical(spelling) == canonical(key)
        ]

    def in_mlflow(self) -> Columns:
        """Return the same series with MLflow's names and units.

        Keys that MLflow has no name for are unchanged.

        Example:
            >>> run.metrics("gpu.*").in_mlflow()["system/gpu_0_power_usage_watts"]
        """
        keys_by_host: dict[str, set[str]] = {}
        for item in self.series:
            keys_by_host.setdefault(item.host, set()).add(item.key)
        names = {host: mlflow.rename_all(keys) for host, keys in keys_by_host.items()}
        return Columns(
            renamed_series(item, *names[item.host].get(item.key, (item.key, 1.0))) for item in self.series
        )

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame`: `time`, `host` and a column for each key.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        return data_frames.to_pandas(data_frames.table_of_series(self.series))

    def to_polars(self) -> Any:
        """Return a `polars.DataFrame` with the same columns.

        Raises:
            ModuleNotFoundError: polars is not installed.
        """
        return data_frames.to_polars(data_frames.table_of_series(self.series))

    def plot(self) -> Any:
        """Draw a chart over time for each key, with a line for each host.

        Returns:
            The axes of matplotlib, one for each chart; a figure of plotly where that is installed alone.

        Raises:
            ModuleNotFoundError: neither is installed.
            LookupError: there are no series.
        """
        several = len(self.hosts) > 1
        charts: dict[str, list[plots.PlottedLine]] = {}
        for each in self.series:
            times = [data_frames.moment(int(t)) for t in each.t]
            name = f"{each.key} ({each.unit})" if each.unit else each.key
            charts.setdefault(name, []).append(
                plots.PlottedLine(each.host if several else "", times, list(each.values))
            )
        return plots.plot(charts, "time (UTC)")

    def _repr_html_(self) -> str:
        return html_views.series_table(self.series)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)


def renamed_series(series: Series, name: str, factor: float) -> Series:
    """Return a series with another name and its values scaled to another unit."""
    values = series.values
    if factor != 1.0:
        values = [value * factor for value in values] if isinstance(values, list) else values * factor
    return Series(name, series.host, series.role, series.t, values)


class SampleTable:
    """The samples of one writer that have the same keys, row by row in one array.

    With 55 keys a sample takes 456 bytes.
    """

    __slots__ = ("_positions", "keys", "rows", "seqs", "times")

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys
        self.seqs = array("q")
        self.times = array("q")
        self.rows = array("d")
        self._positions: dict[str, int] = {}

    def position(self, key: str) -> int:
        """Return the number of the column that a key has."""
        if not self._positions:
            self._positions = {key: position for position, key in enumerate(self.keys)}
        return self._positions[key]

    def column(self, key: str) -> Column:
        """Return the values of one key."""
        index, numpy = self.position(key), numpy_or_none()
        if numpy is None:
            return self.rows[index :: len(self.keys)].tolist()
        return numpy.frombuffer(self.rows, numpy.float64)[index :: len(self.keys)].copy()


class WriterSamples:
    """All samples of one writer (one monitor process)."""

    def __init__(self, writer: str) -> None:
        self.writer = writer
        self.tables: dict[tuple[str, ...], SampleTable] = {}
        self._keys: Sequence[str] | None = None
        self._table: SampleTable | None = None
        self._of_key: dict[str, list[SampleTable]] = {}

    def add(self, record: Record) -> None:
        """Add a sample to the table of its keys."""
        table = self._table
        if table is None or record.keys is not self._keys:
            keys = tuple(record.keys)
            table = self.tables.get(keys)
            if table is None:
                table = self.tables[keys] = SampleTable(keys)
                for key in keys:
                    self._of_key.setdefault(key, []).append(table)
            self._keys, self._table = record.keys, table
        table.seqs.append(record.seq)
        table.times.append(record.time_ms)
        table.rows.frombytes(record.packed)

    @property
    def nbytes(self) -> int:
        """The bytes in memory, approximately."""
        return sum(8 * (2 * len(table.times) + len(table.rows)) for table in self.tables.values())

    @property
    def keys(self) -> dict[str, None]:
        """The keys that have samples, in the order in which they appeared."""
        return dict.fromkeys(self._of_key)

    def count_after(self, seq: int) -> int:
        """Return the number of samples after a sequence number."""
        return sum(len(table.seqs) - bisect_right(table.seqs, seq) for table in self.tables.values())

    def after(self, seq: int) -> list[tuple[int, dict[str, float]]]:
        """(time, values) of the samples after a sequence number, in order."""
        samples: list[tuple[int, int, dict[str, float]]] = []
        for table in self.tables.values():
            width = len(table.keys)
            for i in range(bisect_right(table.seqs, seq), len(table.seqs)):
                row = table.rows[i * width : (i + 1) * width]
                samples.append((table.seqs[i], table.times[i], dict(zip(table.keys, row, strict=True))))
        return [(time_ms, values) for _, time_ms, values in sorted(samples, key=lambda sample: sample[0])]

    def newest(self, seq: int) -> dict[str, tuple[int, float]]:
        """Return the last (time, value) of each key up to a sequence number."""
        newest: dict[str, tuple[int, int, float]] = {}
        for table in self.tables.values():
            row = bisect_right(table.seqs, seq) - 1
            if row < 0:
                continue
            width = len(table.keys)
            for key, value in zip(table.keys, table.rows[row * width : (row + 1) * width], strict=True):
                if key not in newest or newest[key][0] < table.seqs[row]:
                    newest[key] = (table.seqs[row], table.times[row], value)
        return {key: (time_ms, value) for key, (_, time_ms, value) in newest.items()}

    def tables_of(self, key: str) -> Sequence[SampleTable]:
        """Return the tables that have a key."""
        return self._of_key.get(key, ())

    def column(self, key: str) -> tuple[Column, Column]:
        """(times, values) of a key, ordered by time; empty if this writer never wrote it."""
        tables = self._of_key.get(key, [])
        if numpy_or_none() is None:
            return _merged_lists(tables, key)
        return _merged_arrays(tables, key)


def _merged_lists(tables: Sequence[SampleTable], key: str) -> tuple[list[int], list[float]]:
    rows = [row for table in tables for row in zip(table.times, table.seqs, table.column(key), strict=True)]
    rows.sort(key=lambda row: row[:2])
    return [row[0] for row in rows], [row[2] for row in rows]


def _merged_arrays(tables: Sequence[SampleTable], key: str) -> tuple[Column, Column]:
    import numpy

    if not tables:
        return numpy.empty(0, numpy.int64), numpy.empty(0, numpy.float64)
    t = numpy.concatenate([numpy.frombuffer(table.times, numpy.int64) for table in tables])
    values = numpy.concatenate([table.column(key) for table in tables])
    if len(tables) > 1 or (numpy.diff(t) < 0).any():
        seqs = numpy.concatenate([numpy.frombuffer(table.seqs, numpy.int64) for table in tables])
        order = numpy.lexsort((seqs, t))
        t, values = t[order], values[order]
    return t, values


def _ends(times: array[int]) -> tuple[int, ...]:
    """Return the two lowest times and the highest."""
    if all(map(le, times, islice(times, 1, None))):  # unless a clock was set back
        return (*times[:2], times[-1])
    return (*sorted(times)[:2], max(times))


def _join(series: Sequence[tuple[Column, Column]]) -> tuple[Column, Column]:
    """Join the series of successive monitors of a host, with a NaN in the middle of each interruption."""
    pieces = [piece for piece in series if len(piece[0])]
    if len(pieces) < 2:
        return pieces[0] if pieces else series[0]
    gaps = [([(int(end[-1]) + int(start[0])) // 2], [NAN]) for (end, _), (start, _) in pairwise(pieces)]
    parts = [pieces[0], *(part for pair in zip(gaps, pieces[1:], strict=True) for part in pair)]
    numpy = numpy_or_none()
    if numpy is None:
        rows = sorted(((t, v) for part in parts for t, v in zip(*part, strict=True)), key=lambda row: row[0])
        return [row[0] for row in rows], [row[1] for row in rows]
    t = numpy.concatenate([part[0] for part in parts])
    values = numpy.concatenate([part[1] for part in parts])
    order = numpy.argsort(t, kind="stable")  # they overlap only if a clock was set back
    return t[order], values[order]


class RunSamples:
    """All samples of a run, by writer."""

    def __init__(self) -> None:
        self.writers: dict[str, WriterSamples] = {}

    def add(self, record: Record) -> None:
        """Add a sample to those of its writer."""
        writer = self.writers.get(record.writer)
        if writer is None:
            writer = self.writers[record.writer] = WriterSamples(record.writer)
        writer.add(record)

    @property
    def nbytes(self) -> int:
        """The bytes in memory, approximately."""
        return sum(writer.nbytes for writer in self.writers.values())

    def columns(self, groups: Groups, selects: Callable[[str], bool]) -> Columns:
        """Return the selected series and derived rates, as in `each`."""
        return Columns(self.each(groups, selects))

    def each(self, groups: Groups, selects: Callable[[str], bool]) -> Iterator[Series]:
        """Yield the selected series and derived rates, one after the other: each is a copy of its values.

        Args:
            groups: the writers of each (host, role), oldest first.
            selects: returns whether a key is selected.
        """
        for host, role, writers, selected in self._select(groups, selects):
            for key, wants_values, rate in selected:
                t, values = _join([writer.column(key) for writer in writers])
                if wants_values:
                    yield Series(key, host, role, t, values)
                if rate is not None and len(t) > 1:
                    yield Series(rate.key, host, role, *derive(t, values, rate.factor))

    def extent(self, groups: Groups, selects: Callable[[str], bool]) -> tuple[int, int] | None:
        """Times of the first and the last sample of the selected series; None without samples."""
        first: list[int] = []
        last: list[int] = []
        for _, _, writers, selected in self._select(groups, selects):
            extents: dict[tuple[int, ...], tuple[int, int, int]] = {}
            for key, wants_values, rate in selected:
                tables = [table for writer in writers for table in writer.tables_of(key) if table.times]
                table_ids = tuple(map(id, tables))
                if not table_ids:
                    continue
                if table_ids not in extents:
                    times = sorted(time for table in tables for time in _ends(table.times))
                    extents[table_ids] = times[0], times[min(1, len(times) - 1)], times[-1]
                if wants_values or (rate is not None and sum(len(table.times) for table in tables) > 1):
                    first.append(extents[table_ids][0 if wants_values else 1])
                    last.append(extents[table_ids][2])
        return (min(first), max(last)) if first else None

    def _select(
        self, groups: Groups, selects: Callable[[str], bool]
    ) -> Iterator[tuple[str, str, list[WriterSamples], list[tuple[str, bool, Rate | None]]]]:
        """Return (host, role, writers, keys) of each group.

        Of a key: whether it is selected itself, and its rate if that is.
        """
        is_wanted = cache(selects)  # hosts have the same keys; a filter of many globs takes 10 µs for a key
        for (host, role), names in groups.items():
            writers = [self.writers[name] for name in names if name in self.writers]
            selected = []
            for key in sorted({key for writer in writers for key in writer.keys}):
                rate = rate_of(key)
                if rate is not None and not is_wanted(rate.key):
                    rate = None
                if rate is not None or is_wanted(key):
                    selected.append((key, is_wanted(key), rate))
            yield host, role, writers, selected
