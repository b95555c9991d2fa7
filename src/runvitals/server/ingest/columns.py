"""The times and values of an envelope as arrays, from any of the forms that clients send."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from runvitals.base.buckets import Floats, Integers
from runvitals.model import batch_body
from runvitals.model.batch_format import GAP
from runvitals.model.limits import STEP as MAX_STEP
from runvitals.server.http.body_limits import Limits
from runvitals.server.http.request_errors import HttpRejection, malformed, out_of_range, too_large
from runvitals.server.ingest.envelope import ArrayEnvelope, WireEnvelope
from runvitals.store.samples.interface import extent

_ITEM = 8


@dataclass(frozen=True, slots=True)
class EnvelopeColumns:
    """The rows of an envelope: `t` in ms UTC, `values` of shape (rows, columns).

    The last column is the step if `has_step`. `body`: the same rows as the sample store packs them, if the
    client sent them so. `first_ms`, `last_ms`: the oldest and newest time.
    """

    t: Integers
    values: Floats
    body: bytes | None
    has_step: bool
    first_ms: int
    last_ms: int

    @property
    def nbytes(self) -> int:
        """The size of all times and values."""
        return self.t.nbytes + self.values.nbytes


def decode_columns(
    envelope: WireEnvelope, count: int, now_ms: int, limits: Limits, max_bytes: int
) -> EnvelopeColumns | None:
    """Decode the rows of an envelope with `count` keys; None if it has no rows.

    Args:
        max_bytes: maximum size of the times and values.

    Raises:
        HttpRejection: 400 if fields are missing or their lengths differ, 413 if they are too large, 422 for
            times or steps out of range.
    """
    if envelope.body is not None:
        t, values = _unpack_body(envelope, envelope.body, count, max_bytes)
    elif envelope.t is not None:
        t = _times(envelope.t)
        values = _values(envelope.v, len(t), count)
    elif envelope.v is not None or envelope.step is not None:
        raise malformed("t, the times of the rows, is missing")
    else:
        return None
    if not len(t):
        return None
    steps = None if envelope.step is None else _steps(envelope.step, len(t))
    return _columns(t, values, steps, envelope.body, now_ms, limits)


def check_columns(envelope: ArrayEnvelope, now_ms: int, limits: Limits) -> EnvelopeColumns | None:
    """Return the rows of an envelope, None without rows; raise 422 for times or steps out of range."""
    if not len(envelope.t):
        return None
    return _columns(envelope.t, envelope.values, envelope.steps, None, now_ms, limits)


def _columns(
    t: Integers, values: Floats, steps: Floats | None, body: bytes | None, now_ms: int, limits: Limits
) -> EnvelopeColumns:
    oldest, newest = extent(t)
    _check_times(oldest, newest, now_ms, limits)
    if steps is None:
        return EnvelopeColumns(t, values, body, False, oldest, newest)
    with_steps = np.column_stack((values, _checked_steps(steps)))
    return EnvelopeColumns(t, with_steps, None, True, oldest, newest)


def _unpack_body(
    envelope: WireEnvelope, packed: bytes, count: int, max_bytes: int
) -> tuple[Integers, Floats]:
    if envelope.t is not None or envelope.v is not None:
        raise malformed("t and v are not allowed together with body, which has the times and values")
    if len(packed) < batch_body.HEADER_BYTES:
        raise malformed(f"body: expected at least {batch_body.HEADER_BYTES} bytes, got {len(packed)}")
    size = batch_body.rows(packed) * (1 + count) * _ITEM
    if size > max_bytes:
        raise too_large(
            f"body: {size} bytes of times and values; at most {max_bytes} more are allowed in this request"
        )
    try:
        return batch_body.unpack(packed, count)
    except ValueError as error:
        raise malformed(f"body with {count} keys: {error}") from None


def _times(t: bytes | list[int]) -> Integers:
    if isinstance(t, bytes):
        if len(t) % _ITEM:
            raise malformed(f"t: expected int64 values of {_ITEM} bytes each, got {len(t)} bytes")
        return np.frombuffer(t, "<i8")
    try:
        return np.array(t, np.int64)
    except OverflowError:
        raise out_of_range(f"t: invalid time {max(t, key=abs)}; expected ms UTC") from None


def _values(v: bytes | list[list[float | None]] | None, rows: int, count: int) -> Floats:
    if v is None:
        if count:
            raise malformed("v, the values, is missing")
        return np.empty((rows, 0))
    if isinstance(v, bytes):
        if len(v) != rows * count * _ITEM:
            raise malformed(
                f"v: expected {rows * count * _ITEM} bytes ({count} keys × {rows} rows of float64), "
                f"got {len(v)}"
            )
        columns: Floats = np.frombuffer(v, "<f8").reshape(count, rows).T
        return columns
    if len(v) != count:
        raise malformed(f"v: expected {count} lists, one per key, got {len(v)}")
    for index, column in enumerate(v):
        if len(column) != rows:
            raise malformed(f"v[{index}]: expected {rows} values, one per time in t, got {len(column)}")
    listed: Floats = np.array(v, np.float64).reshape(count, rows)
    for index, column in enumerate(v):
        if None in column:  # a gap, unlike a NaN that was logged
            listed[index, [value is None for value in column]] = GAP
    by_row: Floats = listed.T
    return by_row


def _steps(step: bytes | list[float], rows: int) -> Floats:
    if isinstance(step, bytes):
        if len(step) != rows * _ITEM:
            raise malformed(f"step: expected {rows * _ITEM} bytes ({rows} float64), got {len(step)}")
        return np.frombuffer(step, "<f8")
    if len(step) != rows:
        raise malformed(f"step: expected {rows} numbers, one per time in t, got {len(step)}")
    return np.array(step, np.float64)


def _checked_steps(steps: Floats) -> Floats:
    wrong = ~(np.abs(steps) <= MAX_STEP)
    if wrong.any():
        raise out_of_range(f"step: invalid value {steps[wrong][0]}; expected a number from -2^53 to 2^53")
    return steps


def _check_times(oldest_ms: int, newest_ms: int, now_ms: int, limits: Limits) -> None:
    if oldest_ms < limits.oldest_ms or newest_ms > now_ms + limits.ahead_ms:
        wrong = oldest_ms if oldest_ms < limits.oldest_ms else newest_ms
        raise _time_error("t", wrong, now_ms, limits)


def check_time(field: str, time_ms: int, now_ms: int, limits: Limits) -> None:
    """Raise HttpRejection 422 for a time out of range."""
    if not limits.oldest_ms <= time_ms <= now_ms + limits.ahead_ms:
        raise _time_error(field, time_ms, now_ms, limits)


def _time_error(field: str, time_ms: int, now_ms: int, limits: Limits) -> HttpRejection:
    hint = " (is it in seconds?)" if limits.oldest_ms <= time_ms * 1000 <= now_ms + limits.ahead_ms else ""
    latest = f"{now_ms + limits.ahead_ms}, {limits.ahead_ms / 3_600_000:g} h from now"
    return out_of_range(
        f"{field}: invalid time {time_ms}{hint}; expected ms UTC from {limits.oldest_ms} to {latest}"
    )
