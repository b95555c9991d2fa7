"""Files that other systems wrote, found and opened so that what is damaged or malicious does no harm."""

from __future__ import annotations

import os
import sqlite3
import stat
import struct
import zlib
from collections.abc import Callable, Collection, Iterator
from typing import IO, Final
from urllib.parse import quote

REFUSED: Final = "files that are pipes, devices, or links out of the folder"
_BUSY_S: Final = 5.0
DAMAGE: Final = (
    OSError, ValueError, ArithmeticError, EOFError, RecursionError, MemoryError, NotImplementedError,
    struct.error, zlib.error, sqlite3.Error,
)  # fmt: skip
"""What reading a damaged file may raise. The types of what was read are checked: an error because of them is
ours."""


def checked_file(path: str) -> str:
    """Return the path of a file.

    Raises:
        FileNotFoundError: there is nothing.
        ValueError: it is no file: a pipe or device may never end.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is not a file")
    return path


def files_below(
    root: str, is_wanted: Callable[[str], bool], refused: list[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield each folder that has wanted files, with their names; folders and names are sorted.

    Pipes, devices and links that lead out of the folder are left out: whoever made the folder may have put
    them there. Links to folders are not followed.

    Args:
        is_wanted: tells it by a file's name.
        refused: gets the paths of those that are left out.
    """
    real = os.path.realpath(root)
    for folder, folders, names in os.walk(root):
        folders.sort()
        chosen = []
        for name in sorted(filter(is_wanted, names)):
            path = os.path.join(folder, name)
            if _is_inside(path, real):
                chosen.append(name)
            else:
                refused.append(path)
        if chosen:
            yield folder, chosen


def _is_inside(path: str, root: str) -> bool:
    return os.path.isfile(path) and (
        not os.path.islink(path) or os.path.realpath(path).startswith(os.path.join(root, ""))
    )


def text_lines(file: IO[str], limit: int) -> Iterator[str]:
    """Yield the lines of a file; of one with more than `limit` characters, its beginning."""
    while line := file.readline(limit):
        yield line
        while len(line) == limit and line[-1] != "\n" and (line := file.readline(limit)):
            pass


def open_sqlite(path: str, system: str, tables: Collection[str]) -> sqlite3.Connection:
    """Open a SQLite file for reading only.

    Args:
        system: that wrote it, for errors.
        tables: that are read. Views and computed columns in their place could run forever.

    Raises:
        FileNotFoundError: there is nothing.
        ValueError: it is no such file, is damaged, or is locked by another program.
    """
    checked_file(path)
    address = f"file:{quote(os.path.abspath(path))}?mode=ro"
    database = sqlite3.connect(address, uri=True, timeout=_BUSY_S)
    try:
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA cell_size_check = ON")
        names = ", ".join("?" * len(tables))
        query = f"SELECT type, name, sql FROM sqlite_schema WHERE name COLLATE NOCASE IN ({names})"
        for kind, name, sql in database.execute(query, [*tables]).fetchall():
            if kind not in ("table", "index", "trigger") or "virtual table" in str(sql).lower():
                raise ValueError(f"{path} is not a SQLite file of {system}: {name} is no table")
            if kind == "table" and any(
                column[6] > 1 for column in database.execute(f'PRAGMA table_xinfo("{name}")')
            ):
                raise ValueError(f"{path} is not a SQLite file of {system}: {name} has computed columns")
    except sqlite3.Error as error:
        database.close()
        raise ValueError(f"{path} is not a SQLite file of {system} that can be read: {error}") from None
    except ValueError:
        database.close()
        raise
    return database
