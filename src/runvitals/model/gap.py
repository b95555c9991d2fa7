"""The NaN that fills a table where a row has no value for a key. A NaN that was logged has other bits."""

from __future__ import annotations

from struct import pack, unpack

GAP_BITS = 0x7FF8_0000_0067_6170
GAP: float = unpack("<d", pack("<Q", GAP_BITS))[0]
