"""Tables as bytes, block by block."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from runvitals.model.spreadsheets import inert_cell
from runvitals.server.charts.routes.tables.blocks import Block, Kind, TableColumn, TableField
from runvitals.server.charts.routes.tables.formats import Format

if TYPE_CHECKING:
    import pyarrow


class TableWriter(Protocol):
    """Encodes one table."""

    def begin(self) -> bytes:
        """Return the bytes before the first row."""

    def add(self, block: Block) -> bytes:
        """Return the bytes of a block."""

    def end(self) -> bytes:
        """Return the bytes after the last row."""


def table_writer(format: Format, fields: Sequence[TableField]) -> TableWriter:
    """Return a writer for a table with these fields, or raise ValueError for JSON."""
    if format not in _WRITERS:
        raise ValueError(f"{format} is not a table format; expected one of {', '.join(_WRITERS)}")
    return _WRITERS[format](fields)


class CsvWriter:
    """CSV with a header row.

    Gaps and missing values are empty, a NaN that was logged is `nan`; times are ms UTC. No text is a formula
    in a spreadsheet.
    """

    def __init__(self, fields: Sequence[TableField]) -> None:
        self._fields = fields
        self._text = io.StringIO()
        self._lines = csv.writer(self._text, lineterminator="\n")

    def begin(self) -> bytes:
        """See `TableWriter.begin`."""
        self._lines.writerow([inert_cell(field.name) for field in self._fields])
        return self._drain()

    def add(self, block: Block) -> bytes:
        """See `TableWriter.add`."""
        pairs = zip(block, self._fields, strict=True)
        self._lines.writerows(zip(*(_cells(column, field.kind) for column, field in pairs), strict=True))
        return self._drain()

    def end(self) -> bytes:
        """See `TableWriter.end`."""
        return b""

    def _drain(self) -> bytes:
        text = self._text.getvalue()
        self._text.seek(0)
        self._text.truncate()
        return text.encode("utf-8", "replace")


def _cells(column: TableColumn, kind: Kind) -> list[Any]:
    values = column.values.tolist()
    present = column.present
    if column.values.dtype == np.float64:
        value = np.ones(len(values), np.bool_) if kind == "logged" else ~np.isnan(column.values)
        present = value if present is None else present & value
    else:
        values = [inert_cell(text) if isinstance(text, str) else text for text in values]
    if present is None or present.all():
        return list(values)
    return [value if is_present else "" for value, is_present in zip(values, present.tolist(), strict=True)]


class _PyarrowWriter:
    _writer: Any

    def __init__(self, fields: Sequence[TableField]) -> None:
        self._sink = _Sink()
        self._schema = _schema(fields)

    def begin(self) -> bytes:
        """See `TableWriter.begin`."""
        return self._sink.drain()

    def add(self, block: Block) -> bytes:
        """See `TableWriter.add`."""
        self._writer.write_batch(_batch(self._schema, block))
        return self._sink.drain()

    def end(self) -> bytes:
        """See `TableWriter.end`."""
        self._writer.close()
        return self._sink.drain()


class ArrowWriter(_PyarrowWriter):
    """An Arrow IPC stream. NaN is a gap; null is a missing value."""

    def __init__(self, fields: Sequence[TableField]) -> None:
        from pyarrow import ipc

        super().__init__(fields)
        self._writer = ipc.new_stream(self._sink, self._schema)


class ParquetWriter(_PyarrowWriter):
    """A Parquet file with a row group per block."""

    def __init__(self, fields: Sequence[TableField]) -> None:
        from pyarrow import parquet

        super().__init__(fields)
        self._writer = parquet.ParquetWriter(self._sink, self._schema, compression="zstd")


class _Sink(io.RawIOBase):
    """A file object that collects what is written until `drain`."""

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

    def drain(self) -> bytes:
        """Return the bytes written since the last call."""
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
        "logged": pyarrow.float64(),
    }
    return pyarrow.schema([(field.name, kinds[field.kind]) for field in fields])


def _batch(schema: pyarrow.Schema, block: Block) -> pyarrow.RecordBatch:
    import pyarrow

    arrays = [
        pyarrow.array(values, kind, mask=None if present is None else ~present, from_pandas=False)
        for kind, (values, present) in zip(schema.types, block, strict=True)
    ]
    return pyarrow.record_batch(arrays, schema=schema)


_WRITERS: dict[Format, Callable[[Sequence[TableField]], TableWriter]] = {
    "csv": CsvWriter,
    "arrow": ArrowWriter,
    "parquet": ParquetWriter,
}
