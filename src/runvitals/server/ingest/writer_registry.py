"""Registers the writers that send envelopes and the lists of keys that they send.

The metadata store has them durably; this module caches them, so that most envelopes need no lookup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from runvitals.model.names import STEP
from runvitals.model.state import TRAIN
from runvitals.server.http.request_errors import out_of_range
from runvitals.server.ingest.envelope import AdmittedEnvelope, Envelope, WriterDescription
from runvitals.server.ingest.metadata_commits import GroupCommit
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.metrics import KeyList
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import (
    MAX_INTERVAL_S,
    UNKNOWN_SENDER,
    RegisteredWriter,
    Sender,
    WriterRegistration,
)
from runvitals.server.runs.storage.writers import StoredProcess
from runvitals.store.supervised_thread import SupervisedThread

_MAX_WRITERS = 100_000
WriterKey = tuple[int | None, str, str]
"""The entity of its run, the run and its name."""


@dataclass(slots=True)
class KnownWriter:
    """A registered writer.

    `stored_as`: maps (id of a list of keys, whether rows have a step) to the list that the samples are stored
    under. All of these are registered in the metadata store.
    """

    registered: RegisteredWriter
    stored_as: dict[tuple[int, bool], KeyList] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _NewWriter:
    registration: WriterRegistration
    description: WriterDescription | None
    now_ms: int


@dataclass(frozen=True, slots=True)
class _NewKeyList:
    """A list of keys that a writer sends for the first time.

    The keys, or the list if it is already stored.
    """

    writer_id: int
    keys: tuple[str, ...] | KeyList
    has_step: bool


def registration(
    envelope: Envelope, oldest_ms: int | None = None, sender: Sender = UNKNOWN_SENDER
) -> WriterRegistration:
    """The registration of an envelope's writer.

    Args:
        oldest_ms: time of the envelope's oldest row: the start of the writer, unless the envelope has it.

    Raises:
        HttpRejection: 422 for an invalid name or number.
    """
    about = envelope.about or WriterDescription()
    writer = WriterRegistration(
        run=envelope.run,
        writer=envelope.writer,
        project=envelope.project,
        role=about.role,
        host=about.host,
        pid=about.pid,
        rank=about.rank,
        interval_s=about.interval_s,
        started_ms=oldest_ms if about.started_ms is None else about.started_ms,
        sender=sender,
    )
    try:
        writer.check()
    except ValueError as error:
        raise out_of_range(str(error)) from None
    return writer


def writer_key(envelope: Envelope, admitted: AdmittedEnvelope) -> WriterKey:
    """Return the owner, run and writer id, which together are unique."""
    return admitted.sender.entity_id, envelope.run, envelope.writer


def sent_interval_s(envelope: Envelope) -> float | None:
    """The longest normal time between two heartbeats, if an envelope tells one that is valid."""
    interval_s = None if envelope.about is None else envelope.about.interval_s
    return interval_s if interval_s is not None and 0 < interval_s <= MAX_INTERVAL_S else None


class WriterRegistry:
    """Registers writers, and caches the most recent ones by the entity of their run, run and name."""

    def __init__(self, metadata_store: MetadataStore) -> None:
        self._metadata_store = metadata_store
        self._writers: dict[WriterKey, KnownWriter] = {}
        self._registrations = GroupCommit("writer-registrations", self._commit_writers, (ValueError,))
        self._key_lists = GroupCommit("key-lists", self._commit_key_lists, (ValueError,))

    @property
    def threads(self) -> list[SupervisedThread]:
        """Return the threads that register writers and key lists."""
        return [self._registrations.thread, self._key_lists.thread]

    def close(self) -> None:
        """Stop both threads, once their queues are empty."""
        self._registrations.close()
        self._key_lists.close()

    def find(self, envelope: Envelope, admitted: AdmittedEnvelope | None) -> KnownWriter | None:
        """The writer of an envelope, if it is registered and the envelope is known to be admitted."""
        if admitted is None:
            return None
        return self._writers.get(writer_key(envelope, admitted))

    async def register(
        self, envelope: Envelope, admitted: AdmittedEnvelope, oldest_ms: int | None, now_ms: int
    ) -> KnownWriter:
        """Register the writer of an envelope, and its run if it is new. Durable."""
        sender = admitted.sender
        joining = registration(envelope, oldest_ms, sender)
        if joining.project is None and admitted.project is not None:
            joining = replace(joining, project=admitted.project)
        registered = await self._registrations.submit(_NewWriter(joining, envelope.about, now_ms))
        while len(self._writers) >= _MAX_WRITERS:
            self._writers.pop(next(iter(self._writers)))
        return self._writers.setdefault(writer_key(envelope, admitted), KnownWriter(registered))

    async def register_keys(
        self, writer: KnownWriter, keys: tuple[str, ...] | KeyList, has_step: bool
    ) -> tuple[KeyList, KeyList]:
        """Register a list of keys that a writer sends. Durable.

        Returns:
            the list of these keys, and the list to store samples under, which includes the step if
            `has_step`.
        """
        sent, stored = await self._key_lists.submit(_NewKeyList(writer.registered.writer_id, keys, has_step))
        writer.stored_as[sent.id, has_step] = stored
        return sent, stored

    def forget(self, run_ids: Iterable[int]) -> None:
        """Drop the writers of runs that were deleted permanently. One that still sends is registered anew."""
        forgotten = set(run_ids)
        # A copy, because other threads register writers concurrently.
        for name, writer in list(self._writers.items()):
            if writer.registered.run_id in forgotten:
                self._writers.pop(name, None)

    def _commit_writers(self, writers: Sequence[_NewWriter]) -> list[RegisteredWriter]:
        registered = self._metadata_store.writers.join(
            [writer.registration for writer in writers], max(writer.now_ms for writer in writers)
        )
        processes: list[StoredProcess] = []
        updates: list[SectionUpdate] = []
        for stored, new in zip(registered, writers, strict=True):
            about = new.description
            if about is None or stored.purged:
                continue
            if about.role == TRAIN and about.pid is not None:
                processes.append(
                    StoredProcess(
                        stored.run_id, stored.host, about.pid, about.rank, about.local_rank, about.world_size
                    )
                )
            facts = {"boot_id": about.boot_id, "labels": about.labels}
            told_facts = {name: fact for name, fact in facts.items() if fact is not None}
            if told_facts:
                by_writer = {new.registration.writer: told_facts}
                updates.append(SectionUpdate(stored.run_id, "writers", by_writer, new.now_ms))
        self._metadata_store.writers.record_processes(processes)
        self._metadata_store.sections.merge(updates)
        return registered

    def _commit_key_lists(self, new_lists: Sequence[_NewKeyList]) -> list[tuple[KeyList, KeyList]]:
        metrics = self._metadata_store.metrics
        unknown = list({new.keys for new in new_lists if not isinstance(new.keys, KeyList)})
        registered = dict(zip(unknown, metrics.schemas(unknown), strict=True))
        sent = [new.keys if isinstance(new.keys, KeyList) else registered[new.keys] for new in new_lists]
        of_rows_with_step = list(
            {key_list for key_list, new in zip(sent, new_lists, strict=True) if new.has_step}
        )
        keys = metrics.keys({number for key_list in of_rows_with_step for number in key_list.metric_ids})
        stepped = metrics.schemas(
            [(*(keys[number] for number in key_list.metric_ids), STEP) for key_list in of_rows_with_step]
        )
        with_step = dict(zip(of_rows_with_step, stepped, strict=True))
        results = [
            (key_list, with_step[key_list] if new.has_step else key_list)
            for key_list, new in zip(sent, new_lists, strict=True)
        ]
        metrics.record_schemas(
            (new.writer_id, stored.id) for new, (_, stored) in zip(new_lists, results, strict=True)
        )
        return results
