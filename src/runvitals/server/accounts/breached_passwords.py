"""A list of stolen passwords in a file of the operator's: nothing leaves the server.

The file has SHA-1 hashes in hexadecimal, one a line, sorted, each optionally followed by `:` and a count: the
form in which Have I Been Pwned publishes them (https://haveibeenpwned.com/Passwords). Hashes may be cut to
their first characters, at least 10, to save disk.
"""

from __future__ import annotations

import hashlib
import os
from typing import Final

MIN_HASH_CHARACTERS: Final = 10
_MAX_LINE_LENGTH: Final = 64
_HEXADECIMAL: Final = frozenset(b"0123456789ABCDEF")


class BreachedPasswords:
    """The list in a file, which is searched where it is: 20 reads for 10 million lines.

    Raises:
        OSError: the file cannot be read.
        ValueError: its first line is no hash.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        with open(path, "rb") as file:
            first = _hash_of(file.readline(_MAX_LINE_LENGTH))
        if first is None:
            raise ValueError(
                f"{path}: the first line is no hash; expected at least {MIN_HASH_CHARACTERS} hexadecimal "
                "digits of a SHA-1 sum"
            )

    def __contains__(self, password: str) -> bool:
        # SHA-1 is the published form of these lists; nothing is protected by it.
        digest = hashlib.sha1(password.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
        key = digest.upper().encode("ascii")
        with open(self._path, "rb") as file:
            low, high = 0, os.fstat(file.fileno()).st_size
            while low < high:
                middle = (low + high) // 2
                start = _line_start(file.fileno(), middle)
                line = os.pread(file.fileno(), _MAX_LINE_LENGTH, start)
                end = start + len(line.partition(b"\n")[0]) + 1
                line_hash = _hash_of(line)
                if line_hash is None:
                    raise ValueError(f"{self._path}: the line at byte {start} is no hash")
                if key.startswith(line_hash):
                    return True
                if line_hash < key:
                    low = end
                else:
                    high = start
        return False


def _line_start(descriptor: int, position: int) -> int:
    """Return the start of the line that the byte at `position` belongs to."""
    first = max(0, position - _MAX_LINE_LENGTH)
    before = os.pread(descriptor, position - first, first)
    newline = before.rfind(b"\n")
    return first + newline + 1


def _hash_of(line: bytes) -> bytes | None:
    digits = line.partition(b"\n")[0].partition(b":")[0].strip().upper()
    if len(digits) < MIN_HASH_CHARACTERS or not _HEXADECIMAL.issuperset(digits):
        return None
    return digits
