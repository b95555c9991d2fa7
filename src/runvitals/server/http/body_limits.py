"""Limits of the ingest endpoint."""

from __future__ import annotations

from dataclasses import dataclass

from runvitals.model import limits as model

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of requests that send data.

    Args:
        body_bytes: size of a request body as sent.
        message_bytes: size of a request body after decompression. A list of numbers takes 20 times as much
            memory while it is decoded.
        unpacked_bytes: size of all times and values of a request.
        envelopes: number of envelopes in a request.
        keys: number of keys in an envelope.
        records: number of records in an envelope.
        oldest_ms: earlier times are rejected, so that a client that sends seconds instead of milliseconds
            gets an error.
        ahead_ms: times further in the future are rejected: they would hide the newest samples and never
            reach the age at which samples are deleted.
        requests_in_flight: further requests are rejected with Retry-After.
        bytes_in_flight: memory for the bodies, times and values of all requests in flight.
        body_s: time for a request body to arrive.
        thread_bytes: a body is decoded in a thread, so that it does not delay smaller ones, if it is larger
            than this as sent or decompressed, or if its times and values are.
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
