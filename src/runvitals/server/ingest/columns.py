"""Times and values of an envelope as arrays, however they were sent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from runvitals.buckets import Floats, Integers
from runvitals.model import batch_body
from runvitals.model.limits import STEP as MOST_STEP
from runvitals.server.ingest.envelope import Envelope
from runvitals.server.ingest.errors import Refused, malformed, out_of_range, too_large
from runvitals.server.ingest.limits import Limits
from runvitals.store.samples.contract import extent

_ITEM = 8


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows of an envelope: `t` ms UTC, `values` rows × columns; the last column is the step if `has_step`.

    `body`: the same as the store packs it, if the sender did. `last_ms`: the newest time.
    """

    t: Integers
    values: Floats
    body: bytes | None
    has_step: bool
    last_ms: int

    @property
    def nbytes(self) -> int:
        return self.t.nbytes + self.values.nbytes


def columns(envelope: Envelope, count: int, now_ms: int, limits: Limits, room_bytes: int) -> Columns | None:
    """The rows of an envelope of `count` keys; None where it has none.

    Args:
        room_bytes: what the times and values may take.

    Raises:
        Refused: 400 for what does not fit together, 413 for too much, 422 for times that are not allowed.
    """
    if envelope.body is not None:
        t, values = _of_body(envelope, envelope.body, count, room_bytes)
    elif envelope.t is not None:
        t = _times(envelope.t)
        values = _values(envelope.v, len(t), count)
    elif envelope.v is not None or envelope.step is not None:
        raise malformed("v and step need t, the rows' times")
    else:
        return None
    if not len(t):
        return None
    oldest, newest = extent(t)
    _check_times(oldest, newest, now_ms, limits)
    if envelope.step is None:
        return Columns(t, values, envelope.body, False, newest)
    return Columns(t, np.column_stack((values, _steps(envelope.step, len(t)))), None, True, newest)


def _of_body(envelope: Envelope, packed: bytes, count: int, room_bytes: int) -> tuple[Integers, Floats]:
    if envelope.t is not None or envelope.v is not None:
        raise malformed("body holds the times and values: t and v are not allowed beside it")
    if len(packed) < batch_body.HEAD_BYTES:
        raise malformed(f"body: at least {batch_body.HEAD_BYTES} bytes are needed, not {len(packed)}")
    size = batch_body.rows(packed) * (1 + count) * _ITEM
    if size > room_bytes:
        raise too_large(
            f"body has {size} bytes unpacked; there is room for {room_bytes} more in this request"
        )
    try:
        return batch_body.unpack(packed, count)
    except ValueError as error:
        raise malformed(f"body of {count} keys: {error}") from None


def _times(t: bytes | list[int]) -> Integers:
    if isinstance(t, bytes):
        if len(t) % _ITEM:
            raise malformed(f"t: whole int64 are needed, not {len(t)} bytes")
        return np.frombuffer(t, "<i8")
    try:
        return np.array(t, np.int64)
    except OverflowError:
        raise out_of_range(f"t: {max(t, key=abs)} is no time in ms UTC") from None


def _values(v: bytes | list[list[float | None]] | None, rows: int, count: int) -> Floats:
    if v is None:
        if count:
            raise malformed("t and keys need v, the values")
        return np.empty((rows, 0))
    if isinstance(v, bytes):
        if len(v) != rows * count * _ITEM:
            raise malformed(
                f"v: {count} keys × {rows} rows of float64 are {rows * count * _ITEM} bytes, not {len(v)}"
            )
        columns: Floats = np.frombuffer(v, "<f8").reshape(count, rows).T
        return columns
    if len(v) != count:
        raise malformed(f"v: one list for each of the {count} keys is needed, not {len(v)}")
    for index, column in enumerate(v):
        if len(column) != rows:
            raise malformed(f"v[{index}]: {rows} values are needed, as many as t has, not {len(column)}")
    listed: Floats = np.array(v, np.float64).reshape(count, rows).T
    return listed


def _steps(step: bytes | list[float], rows: int) -> Floats:
    if isinstance(step, bytes):
        if len(step) != rows * _ITEM:
            raise malformed(f"step: {rows} float64 are {rows * _ITEM} bytes, not {len(step)}")
        return _checked_steps(np.frombuffer(step, "<f8"))
    if len(step) != rows:
        raise malformed(f"step: {rows} numbers are needed, as many as t has, not {len(step)}")
    return _checked_steps(np.array(step, np.float64))


def _checked_steps(steps: Floats) -> Floats:
    wrong = ~(np.abs(steps) <= MOST_STEP)
    if wrong.any():
        raise out_of_range(f"step: {steps[wrong][0]} is not allowed; a number from -2^53 to 2^53 is")
    return steps


def _check_times(oldest_ms: int, newest_ms: int, now_ms: int, limits: Limits) -> None:
    if oldest_ms < limits.oldest_ms or newest_ms > now_ms + limits.ahead_ms:
        wrong = oldest_ms if oldest_ms < limits.oldest_ms else newest_ms
        raise _not_now("t", wrong, now_ms, limits)


def check_time(what: str, time_ms: int, now_ms: int, limits: Limits) -> None:
    """
    Raises:
        Refused: 422 for a time that is not allowed.
    """
    if not limits.oldest_ms <= time_ms <= now_ms + limits.ahead_ms:
        raise _not_now(what, time_ms, now_ms, limits)


def _not_now(what: str, time_ms: int, now_ms: int, limits: Limits) -> Refused:
    seconds = " (is it in seconds?)" if limits.oldest_ms <= time_ms * 1000 <= now_ms + limits.ahead_ms else ""
    allowed = f"ms UTC from {limits.oldest_ms} to {now_ms + limits.ahead_ms}"
    return out_of_range(
        f"{what}: {time_ms}{seconds}: {allowed} is allowed, {limits.ahead_ms / 3_600_000:g} h from now"
    )
