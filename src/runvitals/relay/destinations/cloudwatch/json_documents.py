"""Extracts JSON documents from a stream of bytes that may contain other text."""

from __future__ import annotations

from collections.abc import Iterator

# A report of 32 processes with 20 models each is 430 kB.
MAX_BYTES = 16 << 20


class JsonDocuments:
    r"""Finds JSON documents on one line, as neuron-monitor prints them, or on several, as `jq` does.

    Those on several lines go from a line `{` to a line `}`. Whether they are valid JSON is not checked.

    Attributes:
        malformed: lines that were too long, and incomplete documents.

    Example:
        >>> documents = JsonDocuments()
        >>> list(documents.feed(b'{"a": 1}\n{"b"')), list(documents.feed(b': 2}\n'))
        ([b'{"a": 1}'], [b'{"b": 2}'])
    """

    def __init__(self, longest_bytes: int = MAX_BYTES) -> None:
        self.malformed = 0
        self._longest_bytes = longest_bytes
        self._line: list[bytes] = []
        self._line_bytes = 0
        self._passing_over = False
        self._block: list[bytes] = []
        self._block_bytes = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the documents completed by these bytes."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._extend(end)
            yield from self._end_of_line()
        self._extend(rest)

    def end(self) -> Iterator[bytes]:
        """Yield the document that is complete without a newline at the end of the stream."""
        if self._line:
            yield from self._end_of_line()
        if self._block:
            self._drop_block()

    def _extend(self, piece: bytes) -> None:
        if not piece or self._passing_over:
            return
        self._line.append(piece)
        self._line_bytes += len(piece)
        if self._line_bytes > self._longest_bytes:
            self.malformed += 1
            self._passing_over = True
            self._line, self._line_bytes = [], 0

    def _end_of_line(self) -> Iterator[bytes]:
        line = b"".join(self._line).rstrip(b"\r")
        self._line, self._line_bytes = [], 0
        if self._passing_over:
            self._passing_over = False
            self._block = []  # the line that was too long may have been part of it
        elif self._block:
            yield from self._in_block(line)
        elif line == b"{":
            self._block, self._block_bytes = [line], 1
        elif line.strip():
            yield line

    def _in_block(self, line: bytes) -> Iterator[bytes]:
        """Yield a line of a multi-line document. All but the first and last line are indented or empty."""
        if line == b"}":
            block, self._block = b"\n".join([*self._block, line]), []
            yield block
        elif line[:1] in (b" ", b"\t", b"") and self._block_bytes + len(line) <= self._longest_bytes:
            self._block.append(line)
            self._block_bytes += len(line)
        else:
            self._drop_block()
            if line == b"{":
                self._block, self._block_bytes = [line], 1
            elif line.strip():
                yield line

    def _drop_block(self) -> None:
        self.malformed += 1
        self._block = []
