"""Limits of records and requests. Loads nothing: training processes import this."""

from __future__ import annotations

NAME_CHARACTERS = 512
"""Characters of a metric's name, and of a key in facts such as `config`; at least 1."""
LABEL_CHARACTERS = 256
"""Characters of the name of a project, a host, a role."""
TEXT_CHARACTERS = 256 * 1024
"""Characters of a text."""
DEPTH = 100
"""Levels of nested mappings and lists in a record's object; `config` itself is the first."""
ROW_NAMES = 50_000
"""Names in a row of `log()`, and keys in an envelope."""
RECORD_VALUES = 100_000
"""Numbers, texts, mappings and lists in a record, on all levels together."""
RECORD_BYTES = 4 * 1024 * 1024
"""Bytes of a record's JSON."""
INTEGER_BITS = 1023
"""Integers of this many bits are still finite as float64."""
STEP = 1 << 53
"""The largest step; the smallest is its negative. float64 represents every integer between them."""
INT64 = 1 << 63

TIME_MS = 253_370_764_800_000
"""Times are ms UTC, from 0 (1970-01-01) to just before this one (9999-01-01), so that calendars have them."""
OLDEST_SENT_MS = 946_684_800_000
"""2000-01-01: the server rejects older times, so that a client that sends seconds gets an error."""
AHEAD_MS = 86_400_000
"""Times may be this far ahead of the server's clock. Later ones would hide the newest samples."""

ENVELOPES = 1000
"""Envelopes in a request to the server."""
ENVELOPE_RECORDS = 10_000
REQUEST_BYTES = 8 * 1024 * 1024
"""Bytes of a request as sent."""
MESSAGE_BYTES = 16 * 1024 * 1024
"""Bytes of a request after its content encoding is removed."""
UNPACKED_BYTES = 64 * 1024 * 1024
"""Bytes of all times and values of a request."""

FILE_BYTES = 2 * 1024 * 1024 * 1024
"""Bytes of a file that a run logs or saves."""
RUN_FILES_BYTES = 20 * 1024 * 1024 * 1024
"""Bytes of all files that one process of a run stores."""
MEDIA_ITEMS = 1000
"""Items in a MEDIA record, such as the images of a gallery."""
ITEM_FILES = 10_000
"""Files that one item names, such as the images in the cells of a table."""
PIECE_BYTES = 1024 * 1024
"""Bytes of a file in the first request of an upload, and of many small files in one request."""
SMALL_FILE_BYTES = 64 * 1024
"""Files up to this size are sent many in one request, of at most `PIECE_BYTES`."""
