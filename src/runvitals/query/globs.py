"""Globs: `*` any text, `?` one character, `[…]` one of some, `[!…]` one of the others.

Time grows with the lengths of glob and text and no faster, whatever the glob: between two `*` the leftmost
place is as good as any, so nothing is ever tried again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

MOST_LENGTH = 512
"""Of one glob: as long as a key may be."""
MOST_GLOBS = 100
"""In one question."""
_WILDCARDS = frozenset("*?[")


def is_glob(text: str) -> bool:
    """Whether a text has a wildcard."""
    return not _WILDCARDS.isdisjoint(text)


def check_globs(texts: Sequence[str]) -> None:
    """
    Raises:
        ValueError: a text that is too long, or too many globs among them.
    """
    for text in texts:
        if len(text) > MOST_LENGTH:
            raise ValueError(f"{text[:60]}…: at most {MOST_LENGTH} characters are allowed, not {len(text):,}")
    globs = sum(map(is_glob, texts))
    if globs > MOST_GLOBS:
        raise ValueError(f"{globs:,} globs: at most {MOST_GLOBS} are allowed in one question")


class Glob:
    """A glob, to be compared with many texts.

    Raises:
        ValueError: it is too long.

    Example:
        >>> [key for key in ("gpu.0.temp", "gpu.12.temp", "cpu") if Glob("gpu.?.*")(key)]
        ['gpu.0.temp']
    """

    def __init__(self, text: str) -> None:
        check_globs([text])
        (first, _), *others = parts = _parts(text)
        self._first = re.compile(first, re.DOTALL)
        self._between = [re.compile(part, re.DOTALL) for part, _ in others[:-1]]
        last, self._last_length = parts[-1]
        self._last = re.compile(last, re.DOTALL) if others else None

    def __call__(self, text: str) -> bool:
        if self._last is None:
            return self._first.fullmatch(text) is not None
        found = self._first.match(text)
        for part in self._between:
            if found is None:
                return False
            found = part.search(text, found.end())
        if found is None:
            return False
        at = len(text) - self._last_length
        return at >= found.end() and self._last.match(text, at) is not None


@lru_cache(256)
def glob(text: str) -> Glob:
    """A glob, made once for texts that come again."""
    return Glob(text)


def _parts(text: str) -> list[tuple[str, int]]:
    """What stands between the `*`, each as a regular expression and how many characters it means."""
    parts: list[tuple[list[str], int]] = [([], 0)]
    at = 0
    while at < len(text):
        letter = text[at]
        at += 1
        if letter == "*":
            parts.append(([], 0))
            continue
        end = _end_of_set(text, at) if letter == "[" else -1
        if letter == "?":
            said = "."
        elif end > 0:
            said = _one_of(text[at:end])
            at = end + 1
        else:
            said = re.escape(letter)
        texts, length = parts[-1]
        texts.append(said)
        parts[-1] = texts, length + 1
    return [("".join(texts), length) for texts, length in parts]


def _end_of_set(text: str, start: int) -> int:
    """Where the `]` of a set is that begins at `start`; -1 if it has none and is no set."""
    first = start + 1 if text[start : start + 1] == "!" else start
    return text.find("]", first + 1)


def _one_of(letters: str) -> str:
    """A set as a regular expression. Of an empty range (`[z-a]`) there is no character."""
    no = letters.startswith("!")
    chosen: list[str] = []
    letters = letters[no:]
    at = 0
    while at < len(letters):
        low, high = letters[at], letters[at]
        if letters[at + 1 : at + 2] == "-" and at + 2 < len(letters):
            high = letters[at + 2]
            at += 2
        at += 1
        if low <= high:
            chosen.append(f"{re.escape(low)}-{re.escape(high)}")
    if not chosen:
        return "." if no else "(?!)"
    return f"[{'^' if no else ''}{''.join(chosen)}]"
