"""Arrow formats: IPC streams and Parquet. Requires pyarrow."""

from __future__ import annotations

import os
from math import isfinite
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from runvitals.relay.destinations.files.rows import NUMBER, ROW_COLUMNS, TEXT, WHOLE, Columns, TableRow
from runvitals.relay.destinations.files.text_formats import free_names

if TYPE_CHECKING:
    from collections.abc import Iterable

_TYPES = {NUMBER: pa.float64(), WHOLE: pa.int64(), TEXT: pa.string()}
_TIME = pa.timestamp("ms", tz="UTC")
_LAST_SEQ = b"runvitals.last_seq"


def schema(table: str, columns: Columns) -> Any:
    """Return the schema: `time`, the columns of `ROW_COLUMNS`, and the values."""
    names = free_names(table, columns)
    fields = [pa.field("time", _TIME, nullable=False)]
    fields += [pa.field(name, _TYPES[kind]) for name, kind in ROW_COLUMNS[table].items()]
    fields += [pa.field(name, _TYPES[kind]) for name, kind in zip(names, columns.values(), strict=True)]
    return pa.schema(fields)


def record_batch(table: str, columns: Columns, rows: list[TableRow]) -> Any:
    """Return rows as one record batch; None becomes null."""
    arrays = [pa.array([row.time_ms for row in rows], _TIME)]
    for name, kind in ROW_COLUMNS[table].items():
        arrays.append(pa.array([row.origin[name] for row in rows], _TYPES[kind]))
    for name, kind in columns.items():
        arrays.append(_array([row.values.get(name) for row in rows], kind))
    return pa.RecordBatch.from_arrays(arrays, schema=schema(table, columns))


def _array(values: Iterable[Any], kind: str) -> Any:
    if kind == TEXT:
        values = [_text(value) for value in values]
    return pa.array(values, _TYPES[kind], from_pandas=False)


def _text(value: Any) -> str | None:
    """Return the text of a value in a text column."""
    if isinstance(value, float):
        return str(int(value)) if isfinite(value) and value == int(value) else repr(value)
    return None if value is None else str(value)


class ArrowFormat:
    """Arrow's IPC stream format, which can be read while it grows, because it has no footer."""

    extension = "arrows"

    def head(self, table: str, columns: Columns) -> bytes:
        """Return the schema of an Arrow stream."""
        return bytes(schema(table, columns).serialize())

    def rows(self, table: str, columns: Columns, rows: list[TableRow]) -> bytes:
        """Return a record batch."""
        return bytes(record_batch(table, columns, rows).serialize())


class ParquetFormat:
    """Parquet files.

    With each batch the file is written anew under another name and then renamed, so readers see only complete
    files. A file records up to which journal record it goes.
    """

    extension = "parquet"

    def add(self, path: str, table: str, columns: Columns, rows: list[TableRow], last_seq: int) -> int:
        """Add rows to a file, created if missing; returns how many values it then has.

        Raises:
            OSError: the write failed.
        """
        from pyarrow import parquet

        new = pa.Table.from_batches([record_batch(table, columns, rows)])
        old = _read(path)
        if old is not None:
            if int((old.schema.metadata or {}).get(_LAST_SEQ, b"-1")) >= last_seq:
                return int(old.num_rows * old.num_columns)
            new = pa.concat_tables([old, new], promote_options="permissive")
        new = new.replace_schema_metadata({_LAST_SEQ: str(last_seq)}).combine_chunks()
        floats = [field.name for field in new.schema if field.type == pa.float64()]
        part = f"{path}.part"
        parquet.write_table(
            new,
            part,
            compression="zstd",
            use_dictionary=[field.name for field in new.schema if field.type == pa.string()],
            column_encoding=dict.fromkeys(floats, "BYTE_STREAM_SPLIT"),
            data_page_version="2.0",
        )
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
        return int(new.num_rows * new.num_columns)


def _read(path: str) -> Any:
    from pyarrow import parquet

    try:
        return parquet.read_table(path, partitioning=None)
    except FileNotFoundError:
        return None
