"""Writes envelopes to the metadata store and the sample store, and returns their acks.

Metadata is written first, because writing it twice is harmless. Samples follow with the sequence number of
the envelope, then the ack. If the server is killed at any moment, an envelope has either been acknowledged as
a whole or is sent again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from runvitals.model.errors import UnknownRun
from runvitals.model.limits import OLDEST_SENT_MS
from runvitals.model.names import project_name
from runvitals.server.access.principals import Principal
from runvitals.server.http.body_limits import Limits
from runvitals.server.http.request_errors import HttpRejection, out_of_range, unavailable
from runvitals.server.ingest.artifact_commits import ArtifactCommits
from runvitals.server.ingest.envelope import Ack, AdmittedEnvelope, Envelope, SentEnvelope
from runvitals.server.ingest.envelope_registration import EnvelopeRegistration, RegisteredEnvelope
from runvitals.server.ingest.heartbeats import Heartbeats
from runvitals.server.ingest.metadata_commits import GroupCommit
from runvitals.server.ingest.metadata_records import EnvelopeMetadata
from runvitals.server.ingest.row_statistics import RowStatistics, logged_columns
from runvitals.server.ingest.sample_commits import SampleCommits
from runvitals.server.ingest.sender_rights import IngestRights
from runvitals.server.ingest.summary_recovery import restore_summaries_at_start
from runvitals.server.ingest.usage_marks import UsageCollector, envelope_bytes
from runvitals.server.ingest.validation import EnvelopeValidator, ValidEnvelope
from runvitals.server.ingest.writer_registry import KnownWriter, WriterRegistry, sent_interval_s
from runvitals.server.library.run_library import RunVersion
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.events import StoredEvent
from runvitals.server.runs.storage.metrics import KeyList
from runvitals.server.runs.storage.pending_summaries import IDLE_S
from runvitals.server.runs.storage.writer_registration import RegisteredWriter
from runvitals.server.usage.settings import organisation_calendar
from runvitals.store.errors import MetadataStoreUnavailable, QueryFailed
from runvitals.store.samples.interface import SampleBatch, SampleStore, StoreError
from runvitals.store.supervised_thread import SupervisedThread

_MAX_VERSIONS = 100_000
_SUMMARIES_S = 1.0
_FIRST_VERSION = RunVersion(0, 0)
_NO_TIMES, _NO_VALUES = np.empty(0, np.int64), np.empty((0, 0))

_Sender = tuple[RegisteredWriter, ValidEnvelope]

log = logging.getLogger("runvitals.server")


@dataclass(slots=True)
class _PendingRequest:
    """A request whose envelopes are being written.

    `batches`: its samples, each with its ack in `batch_acks`, with its writer and envelope in `received`, and
    in `gathered` with its rows for the summary of the run unless they are in `metadata`. `runs`: ids of the
    runs that it changes, and whether it changes their facts.
    """

    acks: list[Ack] = field(default_factory=list)
    metadata: list[EnvelopeMetadata] = field(default_factory=list)
    batches: list[SampleBatch] = field(default_factory=list)
    batch_acks: list[Ack] = field(default_factory=list)
    received: list[tuple[RegisteredWriter, ValidEnvelope]] = field(default_factory=list)
    gathered: list[RowStatistics | None] = field(default_factory=list)
    runs: dict[int, bool] = field(default_factory=dict)


class Recorder:
    """Validates and stores envelopes.

    Args:
        clock: the time now, ms UTC.

    Attributes:
        artifacts: makes versions of what runs log.
        on_change: called with each run that an envelope changes, and whether it changes its facts.
    """

    def __init__(
        self,
        sample_store: SampleStore,
        metadata_store: MetadataStore,
        clock: Callable[[], int],
        limits: Limits,
    ) -> None:
        self._metadata_store = metadata_store
        self._clock = clock
        self.writers = WriterRegistry(metadata_store)
        self.usage = UsageCollector(lambda: organisation_calendar(metadata_store))
        self.heartbeats = Heartbeats(metadata_store, clock, self.usage)
        self.sample_commits = SampleCommits(sample_store)
        self.artifacts = ArtifactCommits(metadata_store, clock)
        self._validator = EnvelopeValidator(metadata_store.metrics, self.writers, limits)
        self._registration = EnvelopeRegistration(self.writers, self.heartbeats, self._validator)
        self._versions: dict[int, RunVersion] = {}
        self._all_versions = 0
        self._versions_lock = Lock()
        self.on_change: Callable[[int, bool], None] | None = None
        self._metadata_commits = GroupCommit("metadata", self._commit_metadata, (ValueError, UnknownRun))
        restore_summaries_at_start(sample_store, metadata_store)
        self._summaries = SupervisedThread(
            "summaries", self._write_summaries, every_s=_SUMMARIES_S, longest_pause_s=_SUMMARIES_S
        )
        self._summaries.start()

    @property
    def threads(self) -> list[SupervisedThread]:
        """The threads that write to the metadata store."""
        commits = self._metadata_commits.thread
        return [commits, *self.writers.threads, self.heartbeats.thread, self._summaries]

    def close(self) -> None:
        """Finish what was submitted. No more envelopes may follow."""
        self._metadata_commits.close()
        self.writers.close()
        self.heartbeats.close()
        self._summaries.close()

    def _write_summaries(self) -> bool:
        """Add gathered rows to the summaries of their runs; a turn of the thread."""
        is_last = self._summaries.closing.is_set()
        self._metadata_store.pending_summaries.flush()
        self._metadata_store.pending_summaries.close_idle(0.0 if is_last else IDLE_S)
        return not is_last

    def forget(self, run_ids: Collection[int]) -> None:
        """Drop runs that were deleted for good; a writer that still sends creates its run anew."""
        self.writers.forget(run_ids)
        self.heartbeats.forget(run_ids)

    def version(self, run_id: int) -> RunVersion:
        """A version of the run's data that changes with every envelope of the run."""
        version, added = self._versions.get(run_id, _FIRST_VERSION), self._all_versions
        return RunVersion(version.all + added, version.facts + added) if added else version

    def note_change(self, run_id: int, has_facts: bool) -> None:
        """Something new of a run was stored here: tell open pages, also of other servers. Thread-safe."""
        self.changed_elsewhere(run_id, has_facts)
        if self.on_change is not None:
            self.on_change(run_id, has_facts)

    def changed_elsewhere(self, run_id: int, has_facts: bool) -> None:
        """Another server has stored something of a run. Thread-safe."""
        with self._versions_lock:
            before = self._versions.pop(run_id, _FIRST_VERSION)
            self._versions[run_id] = RunVersion(before.all + 1, before.facts + has_facts)
            if len(self._versions) > _MAX_VERSIONS:
                self._versions.pop(next(iter(self._versions)))

    def all_changed(self) -> None:
        """Any run may have changed. Thread-safe."""
        with self._versions_lock:
            self._all_versions += 1

    def validate(
        self, envelopes: Sequence[Envelope], access: IngestRights, max_bytes: int
    ) -> list[ValidEnvelope]:
        """Validate envelopes; writes nothing.

        Args:
            access: what the request may send.
            max_bytes: maximum size of all their times and values.

        Raises:
            HttpRejection: with the index of the first invalid envelope; 503 if the metadata store's file
                was deleted or replaced.
        """
        # Requests that are submitted to the sample store together share one check of the file.
        problem = None if self.sample_commits.gathering else self._metadata_store.problem()
        if problem is not None:
            raise unavailable(problem)
        now_ms = self._clock()
        checked: list[ValidEnvelope] = []
        for index, envelope in enumerate(envelopes):
            try:
                valid = self._validator.validate(envelope, access, now_ms, max_bytes)
            except HttpRejection as error:
                error.index = index
                raise
            checked.append(valid)
            if valid.columns is not None:
                max_bytes -= valid.columns.nbytes
        return checked

    def record_samples(
        self,
        envelopes: Sequence[ValidEnvelope],
        access: IngestRights,
        on_done: Callable[[list[Ack] | None], None],
    ) -> bool:
        """Store envelopes that have only samples, of registered writers and keys.

        Args:
            access: what the request may send.
            on_done: called with the acks once the samples are durable, or with None if they were not stored.

        Returns:
            False if there is more to write than samples; nothing was written then, and `on_done` is not
            called.
        """
        acks: list[Ack] = []
        batches: list[SampleBatch] = []
        gathered: list[RowStatistics | None] = []
        senders: list[_Sender] = []
        for valid in envelopes:
            envelope, keys, columns = valid.envelope, valid.keys, valid.columns
            writer = self.writers.find(envelope, access.known(envelope))
            if (
                writer is None
                or writer.registered.purged
                or valid.metadata is not None
                or columns is None
                or not isinstance(keys, KeyList)
            ):
                return False
            stored_keys = writer.stored_as.get((keys.id, columns.has_step))
            run_id, seq = writer.registered.run_id, envelope.seq
            if stored_keys is None or seq is None or run_id in self.heartbeats.deleted:
                return False
            rows = logged_columns(valid, writer.registered, keys)
            if rows is not None and not self._gathers(writer.registered, envelope, keys.id):
                return False
            gathered.append(rows)
            acks.append(self._ack(envelope, run_id, keys))
            batches.append(_batch(valid, writer, stored_keys))
            senders.append((writer.registered, valid))
        self._heard(senders)

        def settle(result: tuple[bool, ...] | BaseException) -> None:
            if not isinstance(result, tuple):
                on_done(None)
                return
            self._note_stored(acks, gathered, senders, result)
            on_done(acks)

        self.sample_commits.submit(batches, settle)
        return True

    def _heard(self, senders: Sequence[_Sender]) -> None:
        """Note that the writers of envelopes are alive."""
        now_ms = self._clock()
        for sender, valid in senders:
            self.heartbeats.record(
                sender.run_id, sender.writer_id, now_ms, valid.last_ms, sent_interval_s(valid.envelope)
            )

    def _note_stored(
        self,
        acks: Sequence[Ack],
        gathered: Sequence[RowStatistics | None],
        senders: Sequence[_Sender],
        are_new: Sequence[bool],
    ) -> None:
        """Note that envelopes with samples only are durable."""
        for ack, rows, is_new, (sender, valid) in zip(acks, gathered, are_new, senders, strict=True):
            ack.stored = is_new
            if is_new:
                self._note_usage(sender, valid)
                self._gather(rows)
            self.note_change(sender.run_id, False)

    def _note_usage(self, sender: RegisteredWriter, valid: ValidEnvelope) -> None:
        run_id, lane_id, columns = sender.run_id, sender.lane_id, valid.columns
        first_ms = valid.last_ms if columns is None else columns.first_ms
        # Doors send names of runs with the earliest time, so that changes by users count: no day is meant.
        if first_ms > OLDEST_SENT_MS:
            self.usage.mark(run_id, lane_id, first_ms, valid.last_ms)
        self.usage.receive(run_id, envelope_bytes(valid), 0 if columns is None else columns.values.size)

    async def record(self, envelopes: Sequence[ValidEnvelope], access: IngestRights) -> list[Ack]:
        """Store envelopes, all or none. Returns their acks once everything is durable.

        Args:
            access: what the request may send.

        Raises:
            HttpRejection: 403 if the request may not send one of them; 503 if a store cannot be written to;
                nothing was acknowledged.
        """
        try:
            return await self._record_only_samples(envelopes, access) or await self._record(envelopes, access)
        except StoreError as error:
            raise unavailable(f"could not write to the sample store: {error}") from error
        except QueryFailed as error:
            is_away = isinstance(error, MetadataStoreUnavailable)
            log.error("could not write to the metadata store: %s", error, exc_info=not is_away)
            reason = str(error) if is_away else type(error).__name__
            raise unavailable(f"could not write to the metadata store: {reason}") from error
        except UnknownRun as error:  # it was deleted permanently a moment ago
            self.writers.forget(
                writer.registered.run_id
                for valid in envelopes
                if (writer := self.writers.find(valid.envelope, access.known(valid.envelope))) is not None
            )
            raise unavailable(str(error)) from error
        except ValueError as error:
            raise out_of_range(str(error)) from error

    async def _record_only_samples(
        self, envelopes: Sequence[ValidEnvelope], access: IngestRights
    ) -> list[Ack] | None:
        """Like `record_samples`; None if nothing was stored."""
        done: asyncio.Future[list[Ack] | None] = asyncio.get_running_loop().create_future()

        def settle(acks: list[Ack] | None) -> None:
            if not done.done():  # else its request was cancelled
                done.set_result(acks)

        return await done if self.record_samples(envelopes, access, settle) else None

    async def _record(self, envelopes: Sequence[ValidEnvelope], access: IngestRights) -> list[Ack]:
        now_ms = self._clock()
        request = _PendingRequest()
        admitted = await access.admit([_to_sent(valid) for valid in envelopes])
        registered = await self._registration.register(envelopes, admitted, now_ms)
        for envelope, rights in zip(registered, admitted, strict=True):
            self._add(request, envelope, rights.principal, now_ms)
        if request.metadata:
            await self._metadata_commits.submit(request.metadata)
        if request.batches:
            stored = await self.sample_commits.commit(request.batches)
            for ack, rows, is_new, sent in zip(
                request.batch_acks, request.gathered, stored, request.received, strict=True
            ):
                ack.stored = is_new
                if is_new:
                    self._note_usage(*sent)
                    self._gather(rows)
        for run_id, has_facts in request.runs.items():
            self.note_change(run_id, has_facts)
        return request.acks

    def _add(
        self,
        request: _PendingRequest,
        registration: RegisteredEnvelope,
        sender: Principal | None,
        now_ms: int,
    ) -> None:
        """Add what is to be written of an envelope to its request."""
        valid, envelope, registered = (
            registration.valid,
            registration.valid.envelope,
            registration.writer.registered,
        )
        run_id, sent_keys = registered.run_id, registration.sent_keys
        if (
            registration.newly is not None
            and not registered.deleted
            and registration.newly.ignored_attribution is not None
        ):
            request.metadata.append(_ignored_attribution(run_id, registration.newly, now_ms))
        ack = self._ack(envelope, run_id, sent_keys)
        ack.deleted = registration.deleted
        request.acks.append(ack)
        if registered.purged:
            return
        self.heartbeats.record(run_id, registered.writer_id, now_ms, valid.last_ms, sent_interval_s(envelope))
        if registration.deleted:
            return
        has_facts = registration.newly is not None or registration.has_new_keys or valid.metadata is not None
        request.runs[run_id] = request.runs.get(run_id, False) or has_facts
        if valid.metadata is not None:
            request.metadata.append(valid.metadata.assigned_to(registered, sender))
        rows = logged_columns(valid, registered, sent_keys) if sent_keys else None
        if rows is not None and not self._gathers(registered, envelope, rows.names):
            request.metadata.append(EnvelopeMetadata(rows=rows))
            rows = None
        if envelope.seq is not None:
            request.batches.append(_batch(valid, registration.writer, registration.stored_keys))
            request.batch_acks.append(ack)
            request.received.append((registered, valid))
            request.gathered.append(rows)

    def _ack(self, envelope: Envelope, run_id: int, keys: KeyList | None) -> Ack:
        """The ack of an envelope, until it is known whether it was stored now."""
        return Ack(
            envelope.run,
            envelope.writer,
            envelope.seq,
            stored=False,
            schema=None if keys is None else keys.id,
            stop=run_id in self.heartbeats.stop_requested,
            deleted=False,
            commands=self.heartbeats.commands.get(run_id, ()),
        )

    def _gather(self, rows: RowStatistics | None) -> None:
        if rows is not None:
            self._metadata_store.pending_summaries.gather(rows)

    def _gathers(self, registered: RegisteredWriter, envelope: Envelope, names: int) -> bool:
        """Return whether rows with a list of names are gathered for the summary of their run."""
        return self._metadata_store.pending_summaries.gathers(registered.run_id, envelope.writer, names)

    def _commit_metadata(self, requests: Sequence[Sequence[EnvelopeMetadata]]) -> list[None]:
        """Write the metadata of many requests; endings last, so that a run that has ended is complete."""
        every = [metadata for request in requests for metadata in request]
        store = self._metadata_store
        updates = [update for metadata in every for update in metadata.updates]
        # Rules for summaries apply to later rows.
        store.pending_summaries.flush({update.run_id for update in updates if update.section == "metrics"})
        store.sections.merge(updates)
        rows = [metadata.rows for metadata in every if metadata.rows is not None]
        if rows:
            store.pending_summaries.add(rows)
        for observed in (observed for metadata in every for observed in metadata.devices):
            store.devices.record(*observed)
        store.writers.record_processes([process for metadata in every for process in metadata.processes])
        store.events.add([event for metadata in every for event in metadata.events])
        store.console.add([line for metadata in every for line in metadata.console])
        # First: a record that is stored is not looked at again.
        store.events.add(
            [event for metadata in every for event in self.artifacts.add(metadata.media, metadata.sender)]
        )
        store.media.add([media for metadata in every for media in metadata.media])
        store.writers.record_ends([end for metadata in every for end in metadata.ends])
        return [None] * len(requests)


def _to_sent(valid: ValidEnvelope) -> SentEnvelope:
    if valid.metadata is None:
        return SentEnvelope(valid.envelope)
    moves = (update.values for update in valid.metadata.updates if update.section == "run")
    return SentEnvelope(
        valid.envelope, tuple(project_name(values["project"]) for values in moves if "project" in values)
    )


def _ignored_attribution(run_id: int, admitted: AdmittedEnvelope, now_ms: int) -> EnvelopeMetadata:
    text = admitted.ignored_attribution or ""
    return EnvelopeMetadata(events=[StoredEvent(run_id, now_ms, "attribution_ignored", "warning", text)])


def _batch(valid: ValidEnvelope, writer: KnownWriter, stored_keys: KeyList | None) -> SampleBatch:
    """The samples of an envelope; an empty batch if it has none, so that its sequence number is stored."""
    seq = valid.envelope.seq
    assert seq is not None
    registered, columns = writer.registered, valid.columns
    if columns is None or stored_keys is None:
        return SampleBatch(registered.lane_id, registered.writer_id, seq, (), _NO_TIMES, _NO_VALUES)
    return SampleBatch(
        registered.lane_id,
        registered.writer_id,
        seq,
        stored_keys.metric_ids,
        columns.t,
        columns.values,
        columns.body,
    )
