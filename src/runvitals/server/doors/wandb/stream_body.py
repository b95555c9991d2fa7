"""Decodes the body of a request to `file_stream`. See docs/guides/receive-from/wandb.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from runvitals.server.http.request_errors import malformed

HISTORY: Final = "wandb-history.jsonl"
EVENTS: Final = "wandb-events.jsonl"
SUMMARY: Final = "wandb-summary.json"
CONSOLE: Final = "output.log"
_MAX_LINES: Final = 1 << 50
_decode_line = msgspec.json.Decoder(dict[str, Any]).decode


class StreamFile(msgspec.Struct):
    """Lines of a file, from the line `offset` on."""

    offset: int = 0
    content: list[str] = []


class StreamBody(msgspec.Struct):
    """A request. Clients send further fields, which change nothing."""

    files: dict[str, StreamFile] | None = None
    complete: bool | None = None
    exitcode: int | None = None
    preempting: bool | None = None

    def file(self, name: str) -> StreamFile:
        """Return a file by name; without lines if it was not sent."""
        return (self.files or {}).get(name) or StreamFile()


class NewLines(NamedTuple):
    """Lines that are not stored yet: the number of the first one, and their texts."""

    first: int
    lines: Sequence[str]

    @property
    def end(self) -> int:
        """The number of the line after them."""
        return self.first + len(self.lines)


_decode_body = msgspec.json.Decoder(StreamBody).decode


def decode_body(data: bytes) -> StreamBody:
    """Decode the body of a request to a file stream.

    Raises:
        HttpRejection: 400 if it is no request to a stream.
    """
    try:
        body = _decode_body(data or b"{}")
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise malformed(f"the body is no request to file_stream: {error}") from None
    for name, file in (body.files or {}).items():
        if not 0 <= file.offset <= _MAX_LINES:
            raise malformed(f"{name[:100]}: invalid offset {file.offset}; expected a number of lines")
    return body


def new_lines(file: StreamFile, stored: int, is_later: Callable[[str], bool]) -> NewLines:
    """Return those of a file's lines that are not stored: a client sends lines again if it got no response.

    Args:
        stored: how many lines of the file are.
        is_later: whether a line with the number of a stored one is another line nevertheless. Then so are
            those after it.

    Example:
        >>> new_lines(StreamFile(4, ["e", "f", "g"]), 6, is_later=lambda line: False)
        NewLines(first=6, lines=['g'])
    """
    stored_lines = min(max(0, stored - file.offset), len(file.content))
    stored_lines = next(
        (index for index in range(stored_lines) if is_later(file.content[index])), stored_lines
    )
    return NewLines(file.offset + stored_lines, file.content[stored_lines:])


def parse_line(line: str) -> dict[str, Any] | None:
    """Return the object in a line; None if it is none.

    NaN and infinities are allowed, as in Python's JSON.
    """
    try:
        return _decode_line(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        pass
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
