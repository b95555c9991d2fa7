"""Searches the output of a run: matching lines with those around them, in one pass over all of it."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from runvitals.base.regular_expressions import MAX_LENGTH, finder
from runvitals.model.console_text import shown_text
from runvitals.model.tracebacks import ERROR_LINE
from runvitals.server.library.run_library import ConsolePiece

MOST_AROUND: Final = 20
"""Lines before a match, and after it."""
_MOST_PENDING: Final = 256 * 1024  # characters of a line that has not ended
_CHECK_EVERY: Final = 64 * 1024  # characters
_OF_WHOLE_TEXT: Final = (r"\A", r"\z")
_ESCAPE: Final = "\x1b"


class LineTest(NamedTuple):
    """Whether a line matches.

    Args:
        line: of a line as it is shown.
        may_match: of several lines as they were printed; False only if none of them matches.
    """

    line: Callable[[str], bool]
    may_match: Callable[[str], bool]


def contains(words: str) -> LineTest:
    """Lines that contain a text, in any case."""
    lowercase = words.lower()

    def test(text: str) -> bool:
        return lowercase in text.lower()

    return LineTest(test, lambda text: _ESCAPE in text or test(text))


def matches(pattern: str, max_length: int = MAX_LENGTH) -> LineTest:
    """Lines in which a regular expression of RE2 is found.

    Raises:
        ValueError: an invalid expression.
    """
    line = finder(pattern, max_length)
    if any(anchor in pattern for anchor in _OF_WHOLE_TEXT):
        return LineTest(line, lambda text: True)
    several = finder(f"(?m:{pattern})", max_length + len("(?m:)"))
    return LineTest(line, lambda text: _ESCAPE in text or several(text))


def is_error() -> LineTest:
    """Lines that report an error."""
    return matches(ERROR_LINE, len(ERROR_LINE))


class LinePosition(NamedTuple):
    """Where a line is in the output of all processes; `rank` is -1 for none."""

    time_ms: int
    rank: int
    number: int
    host: str

    @classmethod
    def parse(cls, text: str) -> LinePosition:
        """Return the position that a cursor names.

        Raises:
            ValueError: it is none.
        """
        numbers = text.split("~", 3)
        if len(numbers) != 4:
            raise ValueError(f"after={text[:60]!r}: expected `next` of the previous page")
        return cls(int(numbers[0]), int(numbers[1]), int(numbers[2]), numbers[3])

    def __str__(self) -> str:
        return "~".join(map(str, self))


class ConsoleMatch(NamedTuple):
    """A line that matches.

    Args:
        number: of the line in the output of its process, from 0.
        before, after: the lines around it, of the same process.
    """

    time_ms: int
    host: str
    rank: int | None
    number: int
    stream: str
    text: str
    before: list[str]
    after: list[str]

    @property
    def position(self) -> LinePosition:
        """Where it is in the output of all processes."""
        return LinePosition(self.time_ms, -1 if self.rank is None else self.rank, self.number, self.host)


@dataclass(slots=True)
class ConsoleMatches:
    """The newest lines that match, of those before a position.

    Attributes:
        newest: a heap; `newest_first` has an order.
        total: how many lines match, wherever they are.
        searched: characters.
        complete: False if the time or the text that one search may take was used up.
    """

    most: int
    before: LinePosition | None
    newest: list[tuple[LinePosition, ConsoleMatch]] = field(default_factory=list)
    total: int = 0
    searched: int = 0
    complete: bool = True
    has_older: bool = False

    def add(self, match: ConsoleMatch) -> None:
        """Count a match, and keep it if it is among the newest."""
        self.total += 1
        if self.before is not None and match.position >= self.before:
            return
        entry = (match.position, match)
        if len(self.newest) < self.most:
            heapq.heappush(self.newest, entry)
        else:
            self.has_older = True
            heapq.heappushpop(self.newest, entry)

    def newest_first(self) -> list[ConsoleMatch]:
        """Return the matches, the newest first."""
        return [match for _, match in sorted(self.newest, key=lambda entry: entry[0], reverse=True)]


@dataclass(slots=True)
class _Process:
    """The output of a process as it is read."""

    host: str
    rank: int | None
    begun: dict[str, tuple[int, str]] = field(default_factory=dict)
    number: int = 0
    recent: deque[str] = field(default_factory=deque)
    recent_lines: int = 0
    unfinished: list[tuple[ConsoleMatch, int]] = field(default_factory=list)


def search(
    pieces: Iterable[ConsolePiece],
    test: LineTest,
    around: int,
    matches: ConsoleMatches,
    ends: Callable[[int], bool],
) -> None:
    """Add the matching lines of the output.

    Args:
        pieces: those of one process in order.
        around: how many lines before and after a match are returned with it.
        ends: called with the number of characters so far; True ends the search.
    """
    processes: dict[tuple[str, int | None], _Process] = {}
    checked = 0
    for piece in pieces:
        matches.searched += len(piece.text)
        if matches.searched - checked > _CHECK_EVERY:
            checked = matches.searched
            if ends(checked):
                matches.complete = False
                break
        name = piece.host, piece.rank
        process = processes.get(name)
        if process is None:
            process = processes[name] = _Process(*name)
        begun_ms, begun = process.begun.pop(piece.stream, (piece.time_ms, ""))
        ended_lines, newline, last_line = (begun + piece.text).rpartition("\n")
        if last_line:
            time_ms = piece.time_ms if newline else begun_ms
            process.begun[piece.stream] = time_ms, last_line[-_MOST_PENDING:]
        if newline:
            _read(process, ended_lines, begun_ms, piece, test, around, matches)
    for process in processes.values():
        for stream, (time_ms, text) in process.begun.items():
            last = ConsolePiece(time_ms, stream, text, process.host, process.rank)
            _read(process, text, time_ms, last, test, around, matches)


def _read(
    process: _Process,
    ended_lines: str,
    begun_ms: int,
    piece: ConsolePiece,
    test: LineTest,
    around: int,
    matches: ConsoleMatches,
) -> None:
    """Read some whole lines; only to count them if none of them matches, and none is after a match."""
    if not process.unfinished and not test.may_match(ended_lines):
        process.number += ended_lines.count("\n") + 1
        _remember(process, ended_lines, around)
        return
    for index, raw in enumerate(ended_lines.split("\n")):
        text = shown_text(raw)
        _add_after(process, text)
        if test.line(text):
            time_ms = begun_ms if index == 0 else piece.time_ms
            before = _before(process, around)
            line = (time_ms, process.host, process.rank, process.number, piece.stream, text)
            match = ConsoleMatch(*line, before, [])
            matches.add(match)
            if around:
                process.unfinished.append((match, around))
        process.number += 1
        _remember(process, raw, around)


def _add_after(process: _Process, text: str) -> None:
    for match, _ in process.unfinished:
        match.after.append(text)
    process.unfinished = [
        (match, lines_left - 1) for match, lines_left in process.unfinished if lines_left > 1
    ]


def _remember(process: _Process, ended_lines: str, around: int) -> None:
    """Keep as many of the newest lines as are shown before a match."""
    if not around:
        return
    process.recent.append(ended_lines)
    process.recent_lines += ended_lines.count("\n") + 1
    while len(process.recent) > 1:
        first = process.recent[0].count("\n") + 1
        if process.recent_lines - first < around:
            break
        process.recent.popleft()
        process.recent_lines -= first


def _before(process: _Process, around: int) -> list[str]:
    lines: list[str] = []
    for ended_lines in reversed(process.recent):
        needed = around - len(lines)
        if needed <= 0:
            break
        lines = ended_lines.rsplit("\n", needed)[-needed:] + lines
    return [shown_text(line) for line in lines]
