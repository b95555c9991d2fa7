"""The Parquet files of `neptune-exporter`: a row for each attribute of a run, or each value of a series."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

from runvitals.readers.importers.sources import DAMAGE, checked_file, files_below

if TYPE_CHECKING:
    import pyarrow as pa

_REQUIRED: Final = ("run_id", "attribute_path", "attribute_type", "step", "timestamp")
_TEXTS: Final = ("project_id", "run_id", "attribute_path", "attribute_type", "string_value")
_NUMBERS: Final = ("step", "int_value", "float_value")
_SERIES: Final = "_series"
_MOST_ROWS: Final = 100_000_000
_MOST_BYTES: Final = 2 << 30
_BATCH_ROWS: Final = 1000
_SERIES_ROWS: Final = 10_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SORTED: Final = [("timestamp", "ascending"), ("step", "ascending")]


@dataclass(slots=True)
class NeptuneRun:
    """A run, and the files that have rows of it."""

    project: str
    id: str
    files: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SeriesValue:
    """A value of a series.

    Args:
        kind: such as `float_series`.
        time_ms: UTC; None if it is not known.
        value: a number, a text, a histogram or the path of a file.
    """

    path: str
    kind: str
    step: float | None
    time_ms: int | None
    value: Any


class NeptuneExport:
    """The Parquet files in a folder.

    Attributes:
        refused: files that are left out; see `files_below`.
        damaged: paths of files that are no export of Neptune or cannot be read, with the reason.

    Raises:
        FileNotFoundError: there is none.
        OSError: pyarrow, which reads Parquet, is not installed.
    """

    def __init__(self, path: str) -> None:
        try:
            import pyarrow.parquet  # noqa: F401 - says what to do where it is missing
        except ModuleNotFoundError:
            raise OSError("reading Parquet needs pyarrow: pip install 'runvitals[parquet]'") from None
        self.root = path if os.path.isdir(path) else os.path.dirname(path) or "."
        self._runs: dict[tuple[str, str], NeptuneRun] = {}
        self.damaged: dict[str, str] = {}
        self.refused: list[str] = []
        for file in _files(path, self.refused):
            try:
                self._index(file)
            except DAMAGE as error:
                self.damaged[os.path.relpath(file, self.root)] = str(error)

    @property
    def runs(self) -> list[NeptuneRun]:
        """The runs, in the order of files."""
        return list(self._runs.values())

    def _index(self, file: str) -> None:
        import pyarrow as pa
        from pyarrow import parquet as pq

        try:
            parquet = pq.ParquetFile(file)
        except (OSError, ValueError) as error:
            raise ValueError(f"{file} is no Parquet file: {error}") from None
        if parquet.metadata.num_rows > _MOST_ROWS:
            rows = parquet.metadata.num_rows
            raise ValueError(f"{file}: {rows:,} rows; at most {_MOST_ROWS:,} are allowed")
        names = parquet.schema_arrow.names
        missing = [name for name in _REQUIRED if name not in names]
        if missing:
            raise ValueError(f"{file} is no export of Neptune: it has no column {', '.join(missing)}")
        for column in parquet.schema_arrow:
            if not _has_known_type(column):
                raise ValueError(f"{file} is no export of Neptune: {column.name} has the type {column.type}")
        columns = [name for name in ("project_id", "run_id") if name in names]
        for batch in parquet.iter_batches(columns=columns):
            for row in pa.Table.from_batches([batch]).group_by(columns).aggregate([]).to_pylist():
                key = str(row.get("project_id") or ""), str(row["run_id"] or "")
                run = self._runs.setdefault(key, NeptuneRun(*key))
                if file not in run.files:
                    run.files.append(file)

    def read(self, run: NeptuneRun) -> RunRows:
        """Return the rows of a run, from all its files."""
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import dataset

        chosen = pc.field("run_id") == run.id
        if run.project:
            chosen &= pc.field("project_id") == run.project
        tables, bytes_left = [], _MOST_BYTES
        for file in run.files:
            parquet = dataset.dataset(file, format="parquet")
            batches = []
            for batch in parquet.to_batches(filter=chosen, batch_size=_BATCH_ROWS, batch_readahead=1):
                bytes_left -= batch.nbytes
                if bytes_left < 0:
                    raise ValueError(f"{file}: the run has more than {_MOST_BYTES >> 30} GiB of values")
                batches.append(batch)
            tables.append(pa.Table.from_batches(batches, parquet.schema))
        return RunRows(pa.concat_tables(tables, promote_options="permissive"))


class RunRows:
    """The rows of a run, in memory.

    Attributes:
        damaged: rows without a path or a type, which are left out.
    """

    def __init__(self, rows: pa.Table) -> None:
        import pyarrow.compute as pc

        table = rows.filter(pc.and_(rows["attribute_path"].is_valid(), rows["attribute_type"].is_valid()))
        self.damaged = rows.num_rows - table.num_rows
        is_series = pc.ends_with(table["attribute_type"], _SERIES)
        self._single = table.filter(pc.invert(is_series))
        self._series = table.filter(is_series).sort_by(_SORTED)

    def attributes(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Return what is no series, by path: values, such as numbers, texts, times and sets; and files."""
        values: dict[str, Any] = {}
        files: dict[str, str] = {}
        for row in self._single.to_pylist():
            kind = str(row["attribute_type"])
            value = _without_arrow(kind, row.get(_column_of(kind)))
            if kind != "file":
                values[row["attribute_path"]] = value
            elif value is not None:
                files[row["attribute_path"]] = str(value)
        return values, files

    def series(self) -> Iterator[SeriesValue]:
        """Yield the values of all series, in order of time, then of steps."""
        for batch in self._series.to_batches(max_chunksize=_SERIES_ROWS):
            yield from map(
                SeriesValue,
                batch["attribute_path"].to_pylist(),
                batch["attribute_type"].to_pylist(),
                [None if step is None else float(step) for step in batch["step"].to_pylist()],
                _milliseconds_of(batch["timestamp"]),
                _values(batch),
            )


def _values(batch: pa.RecordBatch) -> Iterator[Any]:
    """Yield the values of the rows. Columns that no row of the batch needs are not converted."""
    kinds = batch["attribute_type"].to_pylist()
    columns = {}
    for kind in set(kinds):
        name = _column_of(kind)
        columns[kind] = batch[name].to_pylist() if name in batch.schema.names else [None] * len(kinds)
    for index, kind in enumerate(kinds):
        yield _without_arrow(kind, columns[kind][index])


def _milliseconds_of(times: pa.Array) -> list[int | None]:
    """Return times as ms UTC, as `milliseconds`."""
    import pyarrow as pa

    unit = times.type.unit if pa.types.is_timestamp(times.type) else ""
    if unit != "ms":
        return [None if time is None else milliseconds(time) for time in times.to_pylist()]
    found: list[int | None] = times.cast(pa.int64()).to_pylist()
    return found


def _files(path: str, refused: list[str]) -> list[str]:
    if not os.path.isdir(path):
        return [checked_file(path)]
    folders = files_below(path, lambda name: name.endswith(".parquet"), refused)
    files = sorted(os.path.join(folder, name) for folder, names in folders for name in names)
    if not files:
        raise FileNotFoundError(f"there is no Parquet file of neptune-exporter in {path}")
    return files


def _has_known_type(column: pa.Field) -> bool:
    """Return whether a column has a type that its name allows; those with other names are not read."""
    from pyarrow import types

    is_allowed: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
        **dict.fromkeys(_TEXTS, (types.is_string, types.is_large_string)),
        **dict.fromkeys(_NUMBERS, (types.is_integer, types.is_floating, types.is_decimal)),
        **dict.fromkeys(("timestamp", "datetime_value"), (types.is_timestamp,)),
        "bool_value": (types.is_boolean,),
        "string_set_value": (_is_list_of_texts,),
        "file_value": (types.is_string, types.is_large_string, types.is_struct),
        "histogram_value": (types.is_struct,),
    }
    allowed = is_allowed.get(column.name)
    return allowed is None or types.is_null(column.type) or any(check(column.type) for check in allowed)


def _is_list_of_texts(type: pa.DataType) -> bool:
    from pyarrow import types

    is_list = types.is_list(type) or types.is_large_list(type)
    return bool(is_list) and bool(types.is_string(type.value_type) or types.is_large_string(type.value_type))


def _column_of(kind: str) -> str:
    return f"{kind.removesuffix(_SERIES)}_value"


def _without_arrow(kind: str, value: Any) -> Any:
    """Return a value of a type of attributes as the importer takes it."""
    if kind in ("file", "file_series") and isinstance(value, Mapping):
        return value.get("path")
    if kind == "string_set" and isinstance(value, Sequence):
        return sorted(text for text in value if text is not None)
    return value


def milliseconds(moment: datetime) -> int:
    """Return a time as ms UTC, without the rounding of `timestamp()`."""
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return (zoned - _EPOCH) // timedelta(milliseconds=1)
