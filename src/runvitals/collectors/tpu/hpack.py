"""Headers of HTTP/2, packed as RFC 7541 has it: all of the reading, of the writing what a client needs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# What both sides may remember of earlier headers; we do not ask for another size.
TABLE_BYTES = 4096
# RFC 7541, 4.1: what an entry costs beside its letters.
_ENTRY_BYTES = 32
# No header of ours is sent with an integer of more than 28 bits.
_LONGEST_INTEGER_SHIFT = 28

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

# Bits of each byte's code, and of the code that ends a text, as a digit of base 36. The codes follow from
# them: they are numbered by length, then by byte.
_CODE_LENGTHS = (
    "dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca"
    "d67777777777777777777777878djde6f56565666577666567655677777fbeds"
    "kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn"
    "qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq"
    "u"
)
_END = 256


class HpackError(ValueError):
    """Headers that are not as the RFC has them."""


def encode(headers: Iterable[tuple[str, str]]) -> bytes:
    """A block of headers, each as it is: nothing is remembered, nothing is packed.

    Example:
        >>> encode([("te", "trailers")])
        b'\\x00\\x02te\\x08trailers'
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
    """Reads blocks of one connection, in their order: later ones refer to what earlier ones held.

    Example:
        >>> HpackDecoder().decode(b"\\x88\\x00\\x02te\\x08trailers")
        [(':status', '200'), ('te', 'trailers')]
    """

    __slots__ = ("_limit", "_size", "_table")

    def __init__(self) -> None:
        self._table: list[tuple[str, str]] = []
        self._size = 0
        self._limit = TABLE_BYTES

    def decode(self, block: bytes) -> list[tuple[str, str]]:
        """The headers of a whole block.

        Raises:
            HpackError: it is none; the connection cannot be used any more.
        """
        headers: list[tuple[str, str]] = []
        position = 0
        while position < len(block):
            first = block[position]
            if first & 0x80:  # an entry of a table
                index, position = _integer(block, position, 7)
                headers.append(self._entry(index))
            elif first & 0xC0 == 0x40:  # to be remembered
                header, position = self._literal(block, position, 6)
                self._remember(header)
                headers.append(header)
            elif first & 0xE0 == 0x20:
                size, position = _integer(block, position, 5)
                if size > TABLE_BYTES:
                    raise HpackError(f"a table of {size} bytes, more than the {TABLE_BYTES} there are")
                self._limit = size
                self._evict()
            else:
                header, position = self._literal(block, position, 4)
                headers.append(header)
        return headers

    def _entry(self, index: int) -> tuple[str, str]:
        if 0 < index <= len(_STATIC):
            return _STATIC[index - 1]
        place = index - len(_STATIC) - 1
        if index == 0 or place >= len(self._table):
            raise HpackError(f"entry {index} of a table of {len(_STATIC) + len(self._table)}")
        return self._table[place]

    def _literal(self, block: bytes, position: int, bits: int) -> tuple[tuple[str, str], int]:
        index, position = _integer(block, position, bits)
        if index:
            name = self._entry(index)[0]
        else:
            name, position = _string(block, position)
        value, position = _string(block, position)
        return (name, value), position

    def _remember(self, header: tuple[str, str]) -> None:
        self._table.insert(0, header)
        self._size += len(header[0]) + len(header[1]) + _ENTRY_BYTES
        self._evict()

    def _evict(self) -> None:
        while self._size > self._limit:
            name, value = self._table.pop()
            self._size -= len(name) + len(value) + _ENTRY_BYTES


def _integer(block: bytes, position: int, bits: int) -> tuple[int, int]:
    """(number, where it ends), whose first digit are the lower bits of a byte."""
    if position >= len(block):
        raise HpackError("a block that breaks off")
    most = (1 << bits) - 1
    number = block[position] & most
    position += 1
    if number < most:
        return number, position
    for shift in range(0, _LONGEST_INTEGER_SHIFT, 7):
        if position >= len(block):
            raise HpackError("a number that breaks off")
        digit = block[position]
        position += 1
        number += (digit & 127) << shift
        if not digit & 128:
            return number, position
    raise HpackError("a number that is too long")


def _string(block: bytes, position: int) -> tuple[str, int]:
    packed = position < len(block) and block[position] & 0x80
    size, position = _integer(block, position, 7)
    end = position + size
    if end > len(block):
        raise HpackError(f"a text of {size} bytes that breaks off")
    data = block[position:end]
    return (unpack(data) if packed else data).decode("latin-1"), end


def unpack(data: bytes) -> bytes:
    """Bytes out of their Huffman codes.

    Raises:
        HpackError: a code that is none, or bits at the end that are no padding.
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
                    raise HpackError("a text that says it ended within itself")
                unpacked.append(symbol)
                code, length = 0, 0
            elif length >= 30:
                raise HpackError("a code that is none")
    if length > 7 or code != (1 << length) - 1:
        raise HpackError("a text that ends within a code")
    return bytes(unpacked)


_table: dict[tuple[int, int], int] = {}


def _codes() -> dict[tuple[int, int], int]:
    """(bits, code) -> byte; 30 kB, made when the first packed text comes."""
    if not _table:
        code, before = 0, 0
        for length, symbol in sorted((int(digit, 36), place) for place, digit in enumerate(_CODE_LENGTHS)):
            code <<= length - before
            _table[length, code] = symbol
            code += 1
            before = length
    return _table
