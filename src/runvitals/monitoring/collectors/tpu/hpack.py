"""HTTP/2 header compression (HPACK, RFC 7541): all of the decoder, and the encoder that a client needs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# The size of the dynamic table; we do not negotiate another.
TABLE_BYTES = 4096
# RFC 7541, 4.1: the overhead of an entry.
_ENTRY_BYTES = 32
# Integers above 28 bits are rejected.
_MAX_INTEGER_SHIFT = 28

# RFC 7541, appendix A.
_STATIC_ENTRIES = (
    ":authority|:method=GET|:method=POST|:path=/|:path=/index.html|:scheme=http|:scheme=https|"
    ":status=200|:status=204|:status=206|:status=304|:status=400|:status=404|:status=500|"
    "accept-charset|accept-encoding=gzip, deflate|accept-language|accept-ranges|accept|"
    "access-control-allow-origin|age|allow|authorization|cache-control|content-disposition|"
    "content-encoding|content-language|content-length|content-location|content-range|content-type|"
    "cookie|date|etag|expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|"
    "if-unmodified-since|last-modified|link|location|max-forwards|proxy-authenticate|"
    "proxy-authorization|range|referer|refresh|retry-after|server|set-cookie|"
    "strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate"
)
_STATIC = [(name, value) for name, _, value in (e.partition("=") for e in _STATIC_ENTRIES.split("|"))]

# Code length in bits of each byte, and of the end-of-string code, as base-36 digits. The codes follow from
# the lengths: they are numbered by length, then by byte.
_CODE_LENGTHS = (
    "dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca"
    "d67777777777777777777777878djde6f56565666577666567655677777fbeds"
    "kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn"
    "qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq"
    "u"
)
_END = 256


class HpackError(ValueError):
    """A header block that violates the RFC."""


def encode(headers: Iterable[tuple[str, str]]) -> bytes:
    r"""Encode a header block without indexing and without Huffman codes.

    Example:
        >>> encode([("te", "trailers")])
        b'\x00\x02te\x08trailers'
    """
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in headers)


def _text(text: str) -> bytes:
    data = text.encode("ascii")
    if len(data) < 127:
        return bytes((len(data),)) + data
    rest = len(data) - 127
    digits = bytearray((127,))
    while rest >= 128:
        digits.append(rest & 127 | 128)
        rest >>= 7
    digits.append(rest)
    return bytes(digits) + data


class HpackDecoder:
    r"""Decodes the header blocks of one connection, in order: later blocks refer to earlier ones.

    Example:
        >>> HpackDecoder().decode(b"\x88\x00\x02te\x08trailers")
        [(':status', '200'), ('te', 'trailers')]
    """

    __slots__ = ("_limit", "_size", "_table")

    def __init__(self) -> None:
        self._table: list[tuple[str, str]] = []
        self._size = 0
        self._limit = TABLE_BYTES

    def decode(self, block: bytes) -> list[tuple[str, str]]:
        """Decode a complete header block.

        Raises:
            HpackError: it is invalid; the connection cannot be used any more.
        """
        headers: list[tuple[str, str]] = []
        position = 0
        while position < len(block):
            first = block[position]
            if first & 0x80:  # indexed
                index, position = _integer(block, position, 7)
                headers.append(self._entry(index))
            elif first & 0xC0 == 0x40:  # literal with indexing
                header, position = self._literal(block, position, 6)
                self._add_entry(header)
                headers.append(header)
            elif first & 0xE0 == 0x20:
                size, position = _integer(block, position, 5)
                if size > TABLE_BYTES:
                    raise HpackError(f"table size {size} exceeds {TABLE_BYTES} bytes")
                self._limit = size
                self._evict()
            else:
                header, position = self._literal(block, position, 4)
                headers.append(header)
        return headers

    def _entry(self, index: int) -> tuple[str, str]:
        if 0 < index <= len(_STATIC):
            return _STATIC[index - 1]
        position = index - len(_STATIC) - 1
        if index == 0 or position >= len(self._table):
            raise HpackError(f"invalid index {index} in a table of {len(_STATIC) + len(self._table)} entries")
        return self._table[position]

    def _literal(self, block: bytes, position: int, bits: int) -> tuple[tuple[str, str], int]:
        index, position = _integer(block, position, bits)
        if index:
            name = self._entry(index)[0]
        else:
            name, position = _string(block, position)
        value, position = _string(block, position)
        return (name, value), position

    def _add_entry(self, header: tuple[str, str]) -> None:
        self._table.insert(0, header)
        self._size += len(header[0]) + len(header[1]) + _ENTRY_BYTES
        self._evict()

    def _evict(self) -> None:
        while self._size > self._limit:
            name, value = self._table.pop()
            self._size -= len(name) + len(value) + _ENTRY_BYTES


def _integer(block: bytes, position: int, bits: int) -> tuple[int, int]:
    """Decode an integer with a prefix of `bits` bits. Returns the number and the position after it."""
    if position >= len(block):
        raise HpackError("incomplete header block")
    most = (1 << bits) - 1
    number = block[position] & most
    position += 1
    if number < most:
        return number, position
    for shift in range(0, _MAX_INTEGER_SHIFT, 7):
        if position >= len(block):
            raise HpackError("incomplete integer")
        digit = block[position]
        position += 1
        number += (digit & 127) << shift
        if not digit & 128:
            return number, position
    raise HpackError("integer is too long")


def _string(block: bytes, position: int) -> tuple[str, int]:
    packed = position < len(block) and block[position] & 0x80
    size, position = _integer(block, position, 7)
    end = position + size
    if end > len(block):
        raise HpackError(f"incomplete string of {size} bytes")
    data = block[position:end]
    return (unpack(data) if packed else data).decode("latin-1"), end


def unpack(data: bytes) -> bytes:
    """Decode Huffman codes.

    Raises:
        HpackError: an invalid code or invalid padding.
    """
    table = _codes()
    unpacked = bytearray()
    code, length = 0, 0
    for byte in data:
        for bit in range(7, -1, -1):
            code = code << 1 | byte >> bit & 1
            length += 1
            symbol = table.get((length, code))
            if symbol is not None:
                if symbol == _END:
                    raise HpackError("end-of-string code within a string")
                unpacked.append(symbol)
                code, length = 0, 0
            elif length >= 30:
                raise HpackError("invalid Huffman code")
    if length > 7 or code != (1 << length) - 1:
        raise HpackError("string ends within a Huffman code")
    return bytes(unpacked)


_table: dict[tuple[int, int], int] = {}


def _codes() -> dict[tuple[int, int], int]:
    """(bits, code) -> byte. Takes 30 kB, created for the first Huffman-coded string."""
    if not _table:
        code, before = 0, 0
        for length, symbol in sorted(
            (int(digit, 36), position) for position, digit in enumerate(_CODE_LENGTHS)
        ):
            code <<= length - before
            _table[length, code] = symbol
            code += 1
            before = length
    return _table
