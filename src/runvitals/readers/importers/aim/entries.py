"""The entries of Aim's databases, which RocksDB keeps: a path of names and numbers, and a value.

A name in a path ends with the byte 0xfe, which no UTF-8 text has; before a number there is one too. The first
byte of a value says its type.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any, Final

_END: Final = 0xFE
_BLOBS: Final = b"BLOBS\xfe"
"""Contents of files have the path of their place in an object, after this."""
_OBJECTS: Final = (6, 7, 15)
"""Lists, mappings, and objects with a type: their entries follow."""
Path = tuple[str | int, ...]


def path_of(key: bytes) -> Path:
    r"""Return the path of an entry.

    Raises:
        ValueError: the key has another form.

    Example:
        >>> path_of(b"val\xfe\xfe\0\0\0\0\0\0\0\2\xfe")
        ('val', 2)
    """
    parts: list[str | int] = []
    at = 0
    while at < len(key):
        if key[at] == _END:
            (number,) = struct.unpack_from(">q", key, at + 1) if at + 9 <= len(key) else (0,)
            parts.append(number)
            at += 10
        else:
            end = key.index(_END, at)
            parts.append(key[at:end].decode())
            at = end + 1
    return tuple(parts)


def value_of(stored: bytes) -> Any:
    r"""Return a value; of a list or mapping an empty one, of an object with a type its `{"type": …}`.

    Raises:
        ValueError: it has another form.

    Example:
        >>> value_of(b"\4text"), value_of(b"\2\3\0\0\0\0\0\0\0"), value_of(b"\0")
        ('text', 3, None)
    """
    kind, content = stored[0] if stored else 0, stored[1:]
    try:
        if kind == 1:
            return content != b"\0"
        if kind in (2, 3):
            return struct.unpack("<q" if kind == 2 else "<d", content)[0]
    except struct.error as error:
        raise ValueError(f"a number of {len(content)} bytes") from error
    if kind == 4:
        return content.decode()
    if kind == 5:
        return content
    if kind in _OBJECTS:
        return {"type": content.decode()} if kind == 15 else {}
    return None


class AimDatabase:
    """A database of Aim, which is opened for reading only.

    Raises:
        OSError: aimrocks, which reads it, is not installed; or it cannot be read.
    """

    def __init__(self, folder: str) -> None:
        try:
            rocks = import_module("aimrocks")
        except ModuleNotFoundError:
            raise OSError(
                "Aim's databases are read by its package aimrocks: `pip install runvitals[aim]`; it is there "
                "for Python 3.12 and earlier"
            ) from None
        self._log_folder = TemporaryDirectory(
            prefix="runvitals-aim-"
        )  # else it writes its log beside the data
        options = rocks.Options(create_if_missing=False, db_log_dir=self._log_folder.name)
        try:
            self._database = rocks.DB(os.fspath(folder), options, read_only=True)
        except Exception as error:
            self._log_folder.cleanup()
            raise OSError(f"{folder} cannot be read: {error}") from error

    def __enter__(self) -> AimDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self._database = None
        self._log_folder.cleanup()

    def entries(self) -> Iterator[tuple[Path, bytes, bytes]]:
        """Yield path, key and value of each entry that is no content of a file, in order of the keys.

        Raises:
            OSError: the database is damaged.
        """
        contents = self._database.iteritems()
        contents.seek(_BLOBS[:-1] + b"\xff")  # the contents come before
        try:
            for key, value in contents:
                try:
                    path = path_of(key)
                except ValueError:
                    continue
                yield path, key, value
        except Exception as error:
            raise OSError(f"the database is damaged: {error}") from error

    def content(self, key: bytes) -> bytes | None:
        """Return the content of a file whose entry has a key; None if there is none."""
        stored = self._database.get(_BLOBS + key)
        value = None if stored is None else value_of(bytes(stored))
        return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else None


def put(tree: dict[Any, Any], path: Path, value: Any) -> None:
    """Put a value into nested mappings.

    Example:
        >>> tree = {}
        >>> put(tree, ("a", 0, "b"), 1)
        >>> tree
        {'a': {0: {'b': 1}}}
    """
    for part in path[:-1]:
        inner = tree.get(part)
        tree = inner if isinstance(inner, dict) else tree.setdefault(part, {})
        if not isinstance(tree, dict):
            return
    tree[path[-1]] = value


def plain(tree: Any) -> Any:
    """Return a tree with lists where all names are numbers.

    Example:
        >>> plain({"layers": {0: 8, 1: 4}})
        {'layers': [8, 4]}
    """
    if not isinstance(tree, dict):
        return tree
    values = {name: plain(value) for name, value in tree.items()}
    return (
        [values[name] for name in sorted(values)]
        if values and all(isinstance(n, int) for n in values)
        else values
    )
