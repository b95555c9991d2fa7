"""Finds in a program's output the exception that ended it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

_MARK: Final = "Traceback (most recent call last):"
_EXCEPTION: Final = re.compile(r"([A-Za-z_][\w.]*)(?:: ?(.*))?$", re.DOTALL)
_RANK: Final = re.compile(r"\[rank(\d+)\]: ?$")
_CHAINED: Final = ("During handling of the above exception", "The above exception was the direct cause")
_MOST_LINES: Final = 400  # of a traceback
_MOST_OF_MESSAGE: Final = 20  # lines
_NEAR: Final = 10  # lines
_MOST_ODD: Final = 20  # lines of other origin within a traceback
# Exceptions of launchers that only say that one of their processes has failed.
_OF_LAUNCHERS: Final = ("ChildFailedError", "ProcessExitedException", "CalledProcessError")
# How reports of fatal errors begin, and what lines that are such reports contain.
_BEGINNINGS: Final = (
    r"Fatal Python error: .+|terminate called after throwing an instance of .+|\bwhat\(\):\s*.+"
    r"|free\(\): invalid .+|slurmstepd: error: .+|thread '.*' panicked at .+|panic: .+"
)
_CONTENTS: Final = (
    r"\b(?:double free or corruption|corrupted size vs\. prev_size|CUDA error: |NCCL (?:error|WARN) "
    r"|oom[-_ ]kill|Assertion [`'].+ failed|bus error|segmentation fault)"
)
_BEGINS: Final = re.compile(_BEGINNINGS)
_CONTAINS: Final = re.compile(_CONTENTS, re.IGNORECASE)
_LEVELS: Final = (
    r"\b(?:ERROR|FATAL|CRITICAL|SEVERE)\b|^\[?[EF]\d{4} \d\d:\d\d:\d\d"
    r"|\blevel\W{1,4}(?:error|fatal|critical)\b|^(?i:error|fatal)(?:\[\w+\])?: "
)
ERROR_LINE: Final = rf"Traceback \(most recent call last\):|{_LEVELS}|{_BEGINNINGS}|(?i:{_CONTENTS})"
"""A line that reports an error, for RE2: a traceback begins, a logger says so, or a program ends."""


class FoundException(NamedTuple):
    """An exception in the output.

    Args:
        kind: the name of its class, with its module as Python prints it.
        message: may have several lines, or none.
        first, last: the lines of the traceback, by their places in the output.
        column: where it begins in its first line, after a progress bar whose line did not end.
        rank: of the process, where its lines name it.
    """

    kind: str
    message: str
    first: int
    last: int
    column: int
    rank: int | None


def find_exception(lines: Sequence[str]) -> FoundException | None:
    """Return the exception that probably ended the program; None if there is no complete traceback.

    The last one. Of the ranks of a job that print to one place, the first one that failed.

    Example:
        >>> find_exception([_MARK, '  File "a.py", line 1, in f', "ValueError: no"])[:2]
        ('ValueError', 'no')
    """
    exceptions: list[FoundException] = []
    at = 0
    while at < len(lines):
        exception = _read(lines, at) if _MARK in lines[at] else None
        if exception is not None:
            exceptions.append(exception)
            at = exception.last
        at += 1
    own = [exception for exception in exceptions if not exception.kind.endswith(_OF_LAUNCHERS)] or exceptions
    of_ranks = [exception for exception in own if exception.rank is not None]
    if of_ranks and len({exception.rank for exception in of_ranks}) > 1:
        return of_ranks[0]
    return own[-1] if own else None


def fatal_line(lines: Sequence[str]) -> tuple[int, str] | None:
    """Return where a library or the system last reports why it ends the program, and what it says."""
    for at in range(len(lines) - 1, -1, -1):
        begun = _BEGINS.search(lines[at])
        if begun is not None or _CONTAINS.search(lines[at]):
            return at, (begun[0] if begun is not None else lines[at]).strip()
    return None


def _read(lines: Sequence[str], start: int) -> FoundException | None:
    """Return the exception whose traceback begins in a line, or the last of those that it caused."""
    prefix, column = _prefix_of(lines[start]), 0
    if not any(line.startswith(prefix) for line in lines[start + 1 : start + _NEAR]):
        column, prefix = len(prefix), ""
    rank = _RANK.search(prefix)
    name: re.Match[str] | None = None
    last = start
    odd = 0
    for at in range(start + 1, min(len(lines), start + _MOST_LINES)):
        if not lines[at].startswith(prefix):
            continue  # of another process
        text = lines[at][len(prefix) :]
        if name is not None and text.startswith(_CHAINED):
            name = None
        elif name is not None and (_MARK in text or at - last > _MOST_OF_MESSAGE):
            break
        elif name is None and text and not text.startswith((" ", "\t")) and _MARK not in text:
            name = _EXCEPTION.match(text)
            last = at
            odd += name is None
            if odd > _MOST_ODD:
                return None
    if name is None:
        return None
    number = int(rank[1]) if rank else None
    return FoundException(name[1], (name[2] or "").strip(), start, last, column, number)


def _prefix_of(line: str) -> str:
    """Return what precedes every line of a traceback: `[rank3]: `, or `  | ` in a group of exceptions."""
    prefix = line[: line.index(_MARK)]
    return (
        prefix.removesuffix("+ Exception Group ") + "| " if prefix.endswith("+ Exception Group ") else prefix
    )
