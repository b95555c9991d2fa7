"""What is let in, and how much of it at once."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
_DAY_MS = 86_400_000
_YEAR_2000_MS = 946_684_800_000


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Args:
        body_bytes: of a request as it is sent.
        message_bytes: of a request without its content encoding. A list of numbers takes 20 times as much
            memory while it is decoded.
        unpacked_bytes: of all times and values in a request.
        envelopes: in one request.
        keys: in one envelope.
        records: in one envelope.
        oldest_ms: no time before this one: who sends seconds instead of milliseconds learns of it.
        ahead_ms: no time so far in the future: such samples would hide the newest ones, and never grow old.
        requests_in_flight: more are told to come again later.
        bytes_in_flight: of all requests together, with their times and values.
        body_s: the longest that a request's body may take to arrive.
        thread_bytes: a longer body is decoded in a thread, so that shorter ones need not wait for it; so is
            one that is longer than this once it is unpacked, or whose times and values are.
    """

    body_bytes: int = 8 * MIB
    message_bytes: int = 16 * MIB
    unpacked_bytes: int = 64 * MIB
    envelopes: int = 1000
    keys: int = 10_000
    records: int = 10_000
    oldest_ms: int = _YEAR_2000_MS
    ahead_ms: int = _DAY_MS
    requests_in_flight: int = 4096
    bytes_in_flight: int = 256 * MIB
    body_s: float = 30.0
    thread_bytes: int = 128 * 1024
