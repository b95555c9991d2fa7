"""Limits of what a record may hold. Standard library only: training processes import this."""

from __future__ import annotations

NAME_CHARACTERS = 512
"""Of a metric's name, and of a key in facts such as `config`; at least 1."""
LABEL_CHARACTERS = 256
"""Of the name of a project, a host, a role."""
TEXT_CHARACTERS = 256 * 1024
"""Of one text."""
DEPTH = 100
"""Levels of mappings and lists in each other within a record's object; `config` itself is the first."""
ROW_NAMES = 50_000
"""Names in one row of `log()`, and keys of one envelope."""
RECORD_VALUES = 100_000
"""Numbers, texts, mappings and lists in one record, all levels together."""
RECORD_BYTES = 4 * 1024 * 1024
"""Of a record's JSON."""
INTEGER_BITS = 1023
"""An integer that is shorter is a finite float64 as well."""
STEP = 1 << 53
"""The largest step, and negative the smallest: float64 holds every whole number between them."""
INT64 = 1 << 63

TIME_MS = 253_370_764_800_000
"""Times are milliseconds UTC from 0, 1970-01-01, to before this one, 9999-01-01: what calendars can show."""
OLDEST_SENT_MS = 946_684_800_000
"""2000-01-01: the server takes nothing older, so that who sends seconds learns of it."""
AHEAD_MS = 86_400_000
"""So far ahead of its own clock the server takes a time. Later ones would hide the newest samples."""

ENVELOPES = 1000
"""In one request to the server."""
ENVELOPE_RECORDS = 10_000
REQUEST_BYTES = 8 * 1024 * 1024
"""Of a request as it is sent."""
MESSAGE_BYTES = 16 * 1024 * 1024
"""Of a request without its content encoding."""
UNPACKED_BYTES = 64 * 1024 * 1024
"""Of all times and values of a request."""
