"""In which line of a JSON text each value stands."""

from __future__ import annotations

import json
from collections.abc import Iterator

Path = tuple[str | int, ...]
"""Keys and indices from the root to a value: `("neuron_runtimes", 0, "period")`."""

_SPACE = " \t\r\n"


def lines_of(text: str) -> dict[Path, int]:
    """The line, from 1, of every value; of a member of an object, that of its key.

    Args:
        text: valid JSON.

    Example:
        >>> lines_of('{\\n"a": [1,\\n2]}')
        {(): 1, ('a',): 2, ('a', 0): 2, ('a', 1): 3}
    """
    found: dict[Path, int] = {}
    line, counted = 1, 0
    for path, position in sorted(_Walk(text).values(), key=lambda value: value[1]):
        line += text.count("\n", counted, position)
        counted = position
        found[path] = line
    return found


class _Walk:
    """Walks over valid JSON; a mistake in it would be an exception that says nothing."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._decoder = json.JSONDecoder()

    def values(self) -> Iterator[tuple[Path, int]]:
        self._skip()
        yield (), self._at
        yield from self._value(())

    def _value(self, path: Path) -> Iterator[tuple[Path, int]]:
        opening = self._text[self._at]
        if opening not in "{[":
            _, self._at = self._decoder.raw_decode(self._text, self._at)
            return
        self._at += 1
        self._skip()
        index = 0
        while self._text[self._at] not in "}]":
            start = self._at
            step: str | int = index
            if opening == "{":
                step, self._at = self._decoder.raw_decode(self._text, self._at)
                self._skip(":")
            index += 1
            yield (*path, step), start
            yield from self._value((*path, step))
            self._skip(",")
        self._at += 1

    def _skip(self, sign: str = "") -> None:
        """Over blanks and a sign between them."""
        while self._at < len(self._text) and self._text[self._at] in _SPACE + sign:
            self._at += 1
