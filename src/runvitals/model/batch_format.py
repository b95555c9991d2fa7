"""Constants of a batch body (`runvitals.model.batch_body`), for clients without NumPy and zstandard."""

from __future__ import annotations

import struct

NONE, ZSTD, ZLIB = 0, 1, 2
"""Packing of times and values."""
HEADER = struct.Struct("<BI")
"""Packing, and number of rows."""
GAP_BITS = 0x7FF8_0000_0067_6170
GAP: float = struct.unpack("<d", struct.pack("<Q", GAP_BITS))[0]
"""The NaN that fills a table where a row has no value for a key. A NaN that was logged has other bits."""
