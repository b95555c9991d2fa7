"""What is let in, and how much of it at once."""

from __future__ import annotations

from dataclasses import dataclass

from runvitals.model import limits as model

MIB = 1 << 20


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
        requests_in_flight: more are rejected with Retry-After.
        bytes_in_flight: of all requests together, with their times and values.
        body_s: the longest that a request's body may take to arrive.
        thread_bytes: a longer body is decoded in a thread, so that shorter ones need not wait for it; so is
            one that is longer than this once it is unpacked, or whose times and values are.
    """

    body_bytes: int = model.REQUEST_BYTES
    message_bytes: int = model.MESSAGE_BYTES
    unpacked_bytes: int = model.UNPACKED_BYTES
    envelopes: int = model.ENVELOPES
    keys: int = model.ROW_NAMES
    records: int = model.ENVELOPE_RECORDS
    oldest_ms: int = model.OLDEST_SENT_MS
    ahead_ms: int = model.AHEAD_MS
    requests_in_flight: int = 4096
    bytes_in_flight: int = 256 * MIB
    body_s: float = 30.0
    thread_bytes: int = 128 * 1024
