"""Tables as bytes. What is written of one block is given before the next is made."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from runvitals.server.api.tables.blocks import Block, TableColumn, TableField
from runvitals.server.api.tables.formats import Format

if TYPE_CHECKING:
    import pyarrow


class TableWriter(Protocol):
    """Writes one table."""

    def begin(self) -> bytes:
        """What comes before the first row."""

    def add(self, block: Block) -> bytes:
        """Some rows."""

    def end(self) -> bytes:
        """What comes after the last."""


def table_writer(format: Format, fields: Sequence[TableField]) -> TableWriter:
    """A writer of a table with these fields.

    Raises:
        ValueError: JSON, which no table is written as.
    """
    if format not in _WRITERS:
        raise ValueError(f"{format} is not a table format; expected one of {', '.join(_WRITERS)}")
    return _WRITERS[format](fields)


class CsvWriter:
    """CSV with a heading. Gaps, and where there is no value, are empty; times are ms UTC."""

    def __init__(self, fields: Sequence[TableField]) -> None:
        self._fields = fields
        self._text = io.StringIO()
        self._lines = csv.writer(self._text, lineterminator="\n")

    def begin(self) -> bytes:
        self._lines.writerow([field.name for field in self._fields])
        return self._taken()

    def add(self, block: Block) -> bytes:
        self._lines.writerows(zip(*(_cells(column) for column in block), strict=True))
        return self._taken()

    def end(self) -> bytes:
        return b""

    def _taken(self) -> bytes:
        text = self._text.getvalue()
        self._text.seek(0)
        self._text.truncate()
        return text.encode("utf-8", "replace")


def _cells(column: TableColumn) -> list[Any]:
    values = column.values.tolist()
    there = column.there
    if column.values.dtype == np.float64:
        value = ~np.isnan(column.values)
        there = value if there is None else there & value
    if there is None or there.all():
        return list(values)
    return [value if is_there else "" for value, is_there in zip(values, there.tolist(), strict=True)]


class ArrowWriter:
    """An Arrow IPC stream. NaN is a gap; null is where there is no value."""

    def __init__(self, fields: Sequence[TableField]) -> None:
        from pyarrow import ipc

        self._sink = _Sink()
        self._schema = _schema(fields)
        self._writer = ipc.new_stream(self._sink, self._schema)

    def begin(self) -> bytes:
        return self._sink.taken()

    def add(self, block: Block) -> bytes:
        self._writer.write_batch(_batch(self._schema, block))
        return self._sink.taken()

    def end(self) -> bytes:
        self._writer.close()
        return self._sink.taken()


class ParquetWriter:
    """A Parquet file, each block a row group."""

    def __init__(self, fields: Sequence[TableField]) -> None:
        from pyarrow import parquet

        self._sink = _Sink()
        self._schema = _schema(fields)
        self._writer = parquet.ParquetWriter(self._sink, self._schema, compression="zstd")

    def begin(self) -> bytes:
        return self._sink.taken()

    def add(self, block: Block) -> bytes:
        self._writer.write_batch(_batch(self._schema, block))
        return self._sink.taken()

    def end(self) -> bytes:
        self._writer.close()
        return self._sink.taken()


class _Sink(io.RawIOBase):
    """A file that is read as soon as it is written."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._size += len(part)
        return len(part)

    def tell(self) -> int:
        return self._size

    def taken(self) -> bytes:
        """What was written since the last call."""
        data = b"".join(self._parts)
        self._parts.clear()
        return data


def _schema(fields: Sequence[TableField]) -> pyarrow.Schema:
    import pyarrow

    kinds = {
        "time": pyarrow.timestamp("ms", "UTC"),
        "text": pyarrow.string(),
        "whole": pyarrow.int64(),
        "number": pyarrow.float64(),
    }
    return pyarrow.schema([(field.name, kinds[field.kind]) for field in fields])


def _batch(schema: pyarrow.Schema, block: Block) -> pyarrow.RecordBatch:
    import pyarrow

    arrays = [
        pyarrow.array(values, kind, mask=None if there is None else ~there, from_pandas=False)
        for kind, (values, there) in zip(schema.types, block, strict=True)
    ]
    return pyarrow.record_batch(arrays, schema=schema)


_WRITERS: dict[Format, Callable[[Sequence[TableField]], TableWriter]] = {
    "csv": CsvWriter,
    "arrow": ArrowWriter,
    "parquet": ParquetWriter,
}
