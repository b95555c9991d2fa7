"""Tables: columns of numbers, texts, booleans and images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from math import isfinite
from typing import Any

from runvitals.base.json_codec import dumps
from runvitals.model import media
from runvitals.model.limits import ITEM_FILES
from runvitals.model.values import Sanitizer
from runvitals.sdk.arrays import as_plain
from runvitals.sdk.media.base import Item, Media, is_media, text_of
from runvitals.sdk.media.run_files import RunFiles
from runvitals.sdk.media.values import to_media

MAX_ROWS = 100_000
MAX_COLUMNS = 1000
_CELL_CHARACTERS = 100_000
_SIMPLE = (bool, type(None))
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""Texts for numbers that JSON cannot represent."""
_FILE_FIELDS = ("sha256", "bytes", "type")


class Table(Media):
    """A table. Its cells are numbers, texts, booleans, None, or images and other media.

    Args:
        columns: names of the columns.
        data: rows, each with one value for each column.
        dataframe: a data frame of pandas or polars, instead of both; it may also be given as `data`.
        others: further arguments of W&B's class, which have no effect here.

    Raises:
        ValueError: a row has another number of values than there are columns.

    Example:
        >>> table = runvitals.Table(columns=["image", "label", "score"])
        >>> for image, label, score in worst:
        ...     table.add(runvitals.Image(image), label, score)
        >>> run.log({"worst": table})
    """

    kind = media.TABLE

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        data: Any = (),
        dataframe: Any = None,
        **others: Any,
    ) -> None:
        if others:
            from runvitals.monitoring.settings import wandb_arguments  # few scripts use W&B's arguments

            wandb_arguments.of_media("Table", others)
        if dataframe is None and hasattr(data, "columns"):
            dataframe = data
        if dataframe is not None:
            columns = list(dataframe.columns)
            data = _rows_of(dataframe)
        self.columns = [text_of(column) for column in columns or ()]
        self._rows: list[tuple[Any, ...]] = []
        for row in () if data is None else data:
            self.add(*row)

    def add(self, *values: Any) -> None:
        """Append a row.

        Raises:
            ValueError: it has another number of values than there are columns.
        """
        if len(values) != len(self.columns):
            raise ValueError(f"a row of {len(values)} values for {len(self.columns)} columns")
        self._rows.append(values)

    def add_data(self, *values: Any) -> None:
        """Append a row; W&B's name of `add`."""
        self.add(*values)

    def add_row(self, *values: Any) -> None:
        """Append a row; an old name of `add_data`."""
        self.add(*values)

    def cast(self, *arguments: Any, **others: Any) -> None:
        """Do nothing: the types of a column's values are not enforced."""

    def add_column(self, name: str, data: Iterable[Any], optional: bool = False) -> None:
        """Append a column; `optional` is ignored, because any value may be None.

        Raises:
            ValueError: it has another number of values than there are rows.
        """
        values = list(data)
        if self.columns and len(values) != len(self._rows):
            raise ValueError(f"a column of {len(values)} values for {len(self._rows)} rows")
        rows = self._rows if self.columns else [()] * len(values)
        self._rows = [(*row, value) for row, value in zip(rows, values, strict=True)]
        self.columns.append(text_of(name))

    def add_computed_columns(self, fn: Callable[[int, dict[str, Any]], dict[str, Any]]) -> None:
        """Append columns whose values a function computes from the number of a row and the row."""
        rows = [fn(number, dict(zip(self.columns, row, strict=True))) for number, row in self.iterrows()]
        for name in dict.fromkeys(name for row in rows for name in row):
            self.add_column(name, [row.get(name) for row in rows])

    def get_column(self, name: str, convert_to: str | None = None) -> Any:
        """Return the values of a column, as a list or, with `convert_to="numpy"`, as an array.

        Raises:
            ValueError: no such column.
        """
        position = self.columns.index(name)
        values = [row[position] for row in self._rows]
        return import_module("numpy").array(values) if convert_to == "numpy" else values

    def get_index(self) -> list[int]:
        """Return the numbers of the rows."""
        return list(range(len(self._rows)))

    def get_dataframe(self) -> Any:
        """Return the table as a data frame of pandas, which must be installed."""
        return import_module("pandas").DataFrame(self.data, columns=self.columns)

    def iterrows(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield the number of each row, and its values."""
        for number, row in enumerate(self._rows):
            yield number, list(row)

    @property
    def data(self) -> list[list[Any]]:
        """The rows."""
        return [list(row) for row in self._rows]

    def __len__(self) -> int:
        return len(self._rows)

    def item(self, files: RunFiles) -> Item:
        """Store the table as JSON, and the files of its cells.

        Raises:
            ValueError: too many rows, columns or files.
        """
        if len(self.columns) > MAX_COLUMNS or len(self._rows) > MAX_ROWS:
            raise ValueError(
                f"{len(self._rows):,} rows and {len(self.columns):,} columns; at most {MAX_ROWS:,} and "
                f"{MAX_COLUMNS:,} are allowed"
            )
        cell_files: dict[str, Item] = {}
        faults: dict[str, None] = {}
        rows = [[_cell(value, files, cell_files, faults) for value in row] for row in self._rows]
        self.faults = list(faults)
        if len(cell_files) > ITEM_FILES:
            raise ValueError(f"{len(cell_files):,} files in cells; at most {ITEM_FILES:,} are allowed")
        sanitizer = Sanitizer()
        columns = [sanitizer.value(column) for column in self.columns]
        content = dumps({"columns": columns, "rows": rows})
        item = {**files.add(content), "type": "application/json", "rows": len(rows), "columns": len(columns)}
        return {**item, "files": list(cell_files.values())} if cell_files else item


def _cell(value: Any, files: RunFiles, cell_files: dict[str, Item], faults: dict[str, None]) -> Any:
    """Return a value as JSON, media as an object with kind and file.

    A value that cannot be recorded is replaced by a text, and added to the faults.
    """
    if type(value) in _SIMPLE:
        return value
    sanitizer = Sanitizer()
    try:
        if is_media(value) and not isinstance(value, (list, tuple, Table)):
            return _media_cell(value, files, cell_files)
        return _value_cell(value, sanitizer)
    except Exception as error:  # noqa: BLE001 - code of the user's types, and files that cannot be read
        return sanitizer.unreadable(value, error)
    finally:
        faults.update(dict.fromkeys(sanitizer.faults))


def _media_cell(value: Any, files: RunFiles, cell_files: dict[str, Item]) -> Item:
    medium = to_media(value)
    item = medium.item(files)
    if "sha256" in item:
        for file in (item, *item.pop("files", ())):
            cell_files[file["sha256"]] = {name: file[name] for name in _FILE_FIELDS}
    return {"kind": medium.kind, **item}


def _value_cell(value: Any, sanitizer: Sanitizer) -> Any:
    if isinstance(value, str):
        return sanitizer.value(value[:_CELL_CHARACTERS])
    plain = value if isinstance(value, (int, float)) else as_plain(value)
    if isinstance(plain, float):
        number = float(plain)
        return number if isfinite(number) else _NOT_FINITE[str(number)]
    return sanitizer.value(plain if isinstance(plain, (str, int)) else str(plain))


def _rows_of(dataframe: Any) -> Iterable[Sequence[Any]]:
    """Return the rows of a data frame: of pandas, or of polars."""
    if callable(getattr(dataframe, "itertuples", None)):
        tuples: Iterable[Sequence[Any]] = dataframe.itertuples(index=False, name=None)
        return tuples
    rows: Iterable[Sequence[Any]] = dataframe.iter_rows()
    return rows
