"""Finds the line of each value in a JSON text, for error messages."""

from __future__ import annotations

import json
from collections.abc import Iterator

Path = tuple[str | int, ...]
"""Keys and indices from the root to a value: `("neuron_runtimes", 0, "period")`."""

_SPACE = " \t\r\n"


def line_numbers(text: str) -> dict[Path, int]:
    r"""Return the line number of every value, from 1; for a member of an object, that of its key.

    Args:
        text: valid JSON.

    Example:
        >>> line_numbers('{\n"a": [1,\n2]}')
        {(): 1, ('a',): 2, ('a', 0): 2, ('a', 1): 3}
    """
    numbers: dict[Path, int] = {}
    line, counted = 1, 0
    for path, position in sorted(_JsonScanner(text).values(), key=lambda value: value[1]):
        line += text.count("\n", counted, position)
        counted = position
        numbers[path] = line
    return numbers


class _JsonScanner:
    """Scans JSON. The text must be valid: errors in it raise arbitrary exceptions."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._decoder = json.JSONDecoder()

    def values(self) -> Iterator[tuple[Path, int]]:
        self._skip()
        yield (), self._position
        yield from self._value(())

    def _value(self, path: Path) -> Iterator[tuple[Path, int]]:
        opening = self._text[self._position]
        if opening not in "{[":
            _, self._position = self._decoder.raw_decode(self._text, self._position)
            return
        self._position += 1
        self._skip()
        index = 0
        while self._text[self._position] not in "}]":
            start = self._position
            step: str | int = index
            if opening == "{":
                step, self._position = self._decoder.raw_decode(self._text, self._position)
                self._skip(":")
            index += 1
            yield (*path, step), start
            yield from self._value((*path, step))
            self._skip(",")
        self._position += 1

    def _skip(self, separator: str = "") -> None:
        """Skip whitespace and the given separator."""
        while self._position < len(self._text) and self._text[self._position] in _SPACE + separator:
            self._position += 1
