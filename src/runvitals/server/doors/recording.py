"""Stores what clients of other systems send, with the checks, limits and rights of our own envelopes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import anyio
import numpy as np
from cachetools import LRUCache
from starlette.types import Scope

from runvitals.base.buckets import Floats, Integers
from runvitals.server.http.admission import Admission, InFlightRequest
from runvitals.server.http.body_limits import Limits
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.ingest.endpoint import IngestCounters
from runvitals.server.ingest.envelope import Ack, ArrayEnvelope, Envelope, WriterDescription
from runvitals.server.ingest.envelope_recorder import Recorder
from runvitals.server.ingest.sender_rights import IngestRightsSource

_MAX_WRITERS: Final = 50_000
_NUMBERS_PER_MS: Final = 1 << 20

_WriterKey = tuple[str, str, str]

_DECOMPRESSED_AT_ONCE: Final = 4
_RECORDED_AT_ONCE: Final = 500
"""Envelopes. Other requests wait while new runs and writers are registered."""


class WriterNumbers:
    """Numbers the envelopes of clients that do not number their requests.

    The numbers of a writer count up from the time in ms × 2²⁰ at which this server first heard of it, so that
    they never repeat, also after a restart, and the store keeps them as one range for each restart.

    Args:
        clock_ms: the time now, ms UTC. Real time also in tests: a number that repeats is a batch that is not
            stored.
    """

    def __init__(self, clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._clock_ms = clock_ms
        self._last: LRUCache[_WriterKey, int] = LRUCache(_MAX_WRITERS)

    def next(self, entity: str, run: str, writer: str) -> int:
        """Return the next number of a writer."""
        key = (entity, run, writer)
        last = self._last.get(key)
        number = self._clock_ms() * _NUMBERS_PER_MS if last is None else last + 1
        self._last[key] = number
        return number


class DoorRecorder:
    """Stores envelopes that doors have made of their clients' requests.

    Args:
        recorder: validates and stores the envelopes.
        admission: counts the requests in flight, together with those of `/api/v1/ingest`.
        counters: count the requests.
        access: knows what each request may send.

    Example:
        >>> with doors.in_flight(len(body)):
        ...     await doors.record(request.scope, [samples(run, writer, keys, times_ms, columns)], len(body))
    """

    def __init__(
        self,
        recorder: Recorder,
        admission: Admission,
        limits: Limits,
        counters: IngestCounters,
        access: IngestRightsSource,
    ) -> None:
        self._recorder = recorder
        self._admission = admission
        self._counters = counters
        self._access = access
        self._numbers = WriterNumbers()
        self.limits = limits
        self.decompressing = anyio.CapacityLimiter(_DECOMPRESSED_AT_ONCE)

    @contextmanager
    def in_flight(self, body_bytes: int = 0) -> Iterator[InFlightRequest]:
        """Count a request, and the memory that it takes while its body is read and decoded.

        Raise that with `reserve` of what this yields.

        Raises:
            HttpRejection: 429 with Retry-After: too many requests or bytes are in flight.
        """
        try:
            admitted = self._admission.admit()
            try:
                admitted.reserve(body_bytes)
                yield admitted
            finally:
                admitted.release()
        except HttpRejection as error:
            self._counters.count_rejected(error.status)
            raise

    def note_deleted(self, run_id: int, deleted: bool) -> None:
        """Note that a run, by its number, went to the trash or came back, which else takes seconds."""
        heartbeats = self._recorder.heartbeats
        (heartbeats.add_deleted if deleted else heartbeats.remove_deleted)(run_id)

    async def record(self, scope: Scope, envelopes: Sequence[Envelope], body_bytes: int) -> list[Ack]:
        """Store envelopes, all or none. Returns their acks once everything is durable.

        An envelope without a number gets the writer's next one. All are checked before the first is stored.
        Of many, the first ones may have been stored when others are to be sent again.

        Args:
            scope: of the request, which has been authenticated.
            body_bytes: size of the body that they came in, for the server's own metrics.

        Raises:
            HttpRejection: as of `/api/v1/ingest`: 400, 413 and 422 for invalid envelopes, 401 and 403
                for what the key may not send, 429 and 503 to try again later.
        """
        started_s = time.monotonic()
        access = self._access.of_request(scope)
        for envelope in envelopes:
            if envelope.seq is None and not _is_heartbeat(envelope):
                envelope.seq = self._numbers.next(envelope.entity or "", envelope.run, envelope.writer)
        valid = self._recorder.validate(envelopes, access, self.limits.unpacked_bytes)
        acks: list[Ack] = []
        for first in range(0, len(valid), _RECORDED_AT_ONCE):
            batch = valid[first : first + _RECORDED_AT_ONCE]
            acks += await self._recorder.record(batch, access)
        points = sum(checked.columns.values.size for checked in valid if checked.columns is not None)
        self._counters.count_ingested(len(envelopes), points, body_bytes, time.monotonic() - started_s)
        return acks

    def run_of(self, scope: Scope, envelope: Envelope) -> int | None:
        """Return the number of the run of an envelope.

        None unless its writer is registered and the request is known to be allowed to send it. Looks nothing
        up in the database.
        """
        writer = self._recorder.writers.find(envelope, self._access.of_request(scope).known(envelope))
        return None if writer is None or writer.registered.purged else writer.registered.run_id


def samples(
    run: str,
    writer: str,
    keys: Sequence[str],
    times_ms: Sequence[int] | Integers,
    columns: Floats,
    *,
    project: str | None = None,
    entity: str | None = None,
    about: WriterDescription | None = None,
    steps: Sequence[float] | Integers | None = None,
    seq: int | None = None,
) -> Envelope:
    """Return an envelope with samples. It takes the arrays as they are: nobody may change them afterwards.

    Args:
        times_ms: UTC, one for each row.
        columns: of shape (rows, keys); NaN where a row has no value.
        about: describes the writer when it is new.
        steps: one for each row, if the rows were logged by a training process.

    Example:
        >>> samples("r1", "monitor.node1.0", ["cpu"], [1_760_000_000_000], np.array([[12.5]])).seq is None
        True
    """
    return ArrayEnvelope(
        run,
        writer,
        seq,
        project,
        entity,
        about,
        keys=tuple(keys),
        t=np.asarray(times_ms, np.int64),
        values=np.asarray(columns, np.float64),
        steps=None if steps is None else np.asarray(steps, np.float64),
    )


def records(
    run: str,
    writer: str,
    entries: Sequence[tuple[int, str, dict[str, Any]]],
    *,
    project: str | None = None,
    entity: str | None = None,
    about: WriterDescription | None = None,
    seq: int | None = None,
) -> Envelope:
    """Return an envelope with records: (number, kind, value), as docs/reference/ingest.md describes them.

    The number identifies an event or a console line of the writer: one that repeats is not stored again.
    """
    return Envelope(run, writer, seq, project, entity, about, records=list(entries))


def heartbeat(run: str, writer: str, *, project: str | None = None, entity: str | None = None) -> Envelope:
    """Return an envelope that says that the writer is alive; its ack says whether a user asked to stop."""
    return Envelope(run, writer, None, project, entity)


def _is_heartbeat(envelope: Envelope) -> bool:
    return not isinstance(envelope, ArrayEnvelope) and not envelope.records
