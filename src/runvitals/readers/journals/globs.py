"""Globs: `*` matches any text, `?` one character, `[…]` one of a set, `[!…]` one not in the set.

Matching takes time proportional to the lengths of glob and text, for any glob: between two `*`, the leftmost
match is always sufficient, so there is no backtracking.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

MAX_LENGTH = 512
"""Maximum length of a glob; keys have the same limit."""
MAX_GLOBS = 100
"""Maximum number of globs in one request."""
_WILDCARDS = frozenset("*?[")


def is_glob(text: str) -> bool:
    """Return whether a text contains a wildcard."""
    return not _WILDCARDS.isdisjoint(text)


def check_globs(texts: Sequence[str]) -> None:
    """Check the length and the number of globs.

    Raises:
        ValueError: a text that is too long, or too many globs among them.
    """
    for text in texts:
        if len(text) > MAX_LENGTH:
            raise ValueError(
                f"pattern {text[:60]}… is too long: {len(text):,} characters, expected at most {MAX_LENGTH}"
            )
    globs = sum(map(is_glob, texts))
    if globs > MAX_GLOBS:
        raise ValueError(f"too many globs: {globs:,}, expected at most {MAX_GLOBS} in one request")


class Glob:
    """A compiled glob.

    Raises:
        ValueError: the glob is too long.

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
        """Return whether the whole text matches."""
        if self._last is None:
            return self._first.fullmatch(text) is not None
        match = self._first.match(text)
        for part in self._between:
            if match is None:
                return False
            match = part.search(text, match.end())
        if match is None:
            return False
        at = len(text) - self._last_length
        return at >= match.end() and self._last.match(text, at) is not None


@lru_cache(256)
def star_glob(text: str) -> Glob:
    """Return a compiled glob in which only `*` is special, cached."""
    return Glob(text.replace("[", "[[]").replace("?", "[?]"))


@lru_cache(256)
def glob(text: str) -> Glob:
    """Return a compiled glob, cached."""
    return Glob(text)


def _parts(text: str) -> list[tuple[str, int]]:
    """The parts between the `*`, each as a regular expression and the number of characters it matches."""
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
            expression = "."
        elif end > 0:
            expression = _one_of(text[at:end])
            at = end + 1
        else:
            expression = re.escape(letter)
        texts, length = parts[-1]
        texts.append(expression)
        parts[-1] = texts, length + 1
    return [("".join(texts), length) for texts, length in parts]


def _end_of_set(text: str, start: int) -> int:
    """Return the position of the `]` that closes a set starting at `start`; -1 if there is none."""
    first = start + 1 if text[start : start + 1] == "!" else start
    return text.find("]", first + 1)


def _one_of(letters: str) -> str:
    """Return a set as a regular expression. An empty range (`[z-a]`) matches nothing."""
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
