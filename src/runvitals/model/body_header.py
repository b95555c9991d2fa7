"""The header of a batch body (`runvitals.model.batch_body`), for clients without NumPy and zstandard."""

from __future__ import annotations

import struct

NONE, ZSTD, ZLIB = 0, 1, 2
"""How times and values are packed."""
HEADER = struct.Struct("<BI")
"""Packing, and number of rows."""
