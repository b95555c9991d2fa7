"""From envelopes to the catalogue and the store, and back to what became of them.

What an envelope says beside its samples is written first: that can be written twice without harm. The samples
come last, with the envelope's number, and the answer after them. So a server that dies at any moment has
either acknowledged all of an envelope, or will get it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

import numpy as np
from sqlalchemy.exc import SQLAlchemyError

from runvitals.server.ingest.envelope import Ack, Envelope
from runvitals.server.ingest.errors import Refused, out_of_range, unavailable
from runvitals.server.ingest.group_commit import Together
from runvitals.server.ingest.heartbeats import Presence
from runvitals.server.ingest.limits import Limits
from runvitals.server.ingest.logged_rows import logged_rows
from runvitals.server.ingest.metadata_records import Notes
from runvitals.server.ingest.sample_commits import Commits
from runvitals.server.ingest.validation import Preparation, Prepared
from runvitals.server.ingest.writers import Member, Members
from runvitals.server.library import Version
from runvitals.store.metadata import KeyList, MetadataStore, UnknownRun
from runvitals.store.metadata.log_summaries import fold
from runvitals.store.samples.contract import SampleBatch, SampleStore, StoreError
from runvitals.store.supervised_thread import SupervisedThread

_MOST_HEARD = 100_000
_NEVER_HEARD = Version(0, 0)
_NO_TIMES, _NO_VALUES = np.empty(0, np.int64), np.empty((0, 0))

log = logging.getLogger("runvitals.server")


class Recorder:
    """Takes envelopes in.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(
        self, store: SampleStore, catalogue: MetadataStore, clock: Callable[[], int], limits: Limits
    ) -> None:
        self._catalogue = catalogue
        self._clock = clock
        self.members = Members(catalogue)
        self.presence = Presence(catalogue, clock)
        self.commits = Commits(store)
        self._preparation = Preparation(catalogue.metrics, self.members, limits)
        self._heard: dict[int, Version] = {}
        self._notes = Together("notes", self._write_notes, (ValueError, UnknownRun))

    @property
    def threads(self) -> list[SupervisedThread]:
        """The threads that write to the catalogue."""
        return [self._notes.thread, *self.members.threads, self.presence.thread]

    def close(self) -> None:
        """Finish what was begun. No more envelopes may come."""
        self._notes.close()
        self.members.close()
        self.presence.close()

    def forget(self, run_ids: Collection[int]) -> None:
        """Runs that are gone for good: who still writes to one makes it anew. For any thread."""
        self.members.forget(run_ids)
        self.presence.forget(run_ids)

    def version(self, run_id: int) -> Version:
        """Changes with whatever is taken in of a run."""
        return self._heard.get(run_id, _NEVER_HEARD)

    def _note(self, run_id: int, has_facts: bool) -> None:
        before = self._heard.pop(run_id, _NEVER_HEARD)
        self._heard[run_id] = Version(before.all + 1, before.facts + has_facts)
        if len(self._heard) > _MOST_HEARD:
            self._heard.pop(next(iter(self._heard)))

    def prepared(self, envelopes: Sequence[Envelope], room_bytes: int) -> list[Prepared]:
        """Look at envelopes; nothing is written yet.

        Args:
            room_bytes: what all their times and values may take.

        Raises:
            Refused: naming the first that cannot be stored; 503 where nothing can be, because the file of the
                catalogue was deleted or replaced.
        """
        # Requests that are submitted to the store together share one check of the file.
        problem = None if self.commits.gathering else self._catalogue.problem()
        if problem is not None:
            raise unavailable(problem)
        now_ms = self._clock()
        found: list[Prepared] = []
        for index, envelope in enumerate(envelopes):
            try:
                one = self._preparation.prepared(envelope, now_ms, room_bytes)
            except Refused as error:
                error.index = index
                raise
            found.append(one)
            if one.columns is not None:
                room_bytes -= one.columns.nbytes
        return found

    def record_samples(
        self, prepared: Sequence[Prepared], settle: Callable[[list[Ack] | None], None]
    ) -> bool:
        """Store envelopes of writers and keys that are known, which hold nothing but samples.

        Args:
            settle: is told what became of them once they are durable; None: they were not stored.

        Returns:
            False where there is more to write than samples; nothing is written.
        """
        acks: list[Ack] = []
        batches: list[SampleBatch] = []
        heard: list[tuple[int, int, int]] = []
        for one in prepared:
            envelope, keys, columns = one.envelope, one.keys, one.columns
            member = self.members.find(envelope.run, envelope.writer)
            if member is None or one.notes is not None or columns is None or not isinstance(keys, KeyList):
                return False
            stored = member.stored_as.get((keys.id, columns.has_step))
            run_id, seq = member.who.run_id, envelope.seq
            if stored is None or seq is None or run_id in self.presence.deleted:
                return False
            stop = run_id in self.presence.stopped
            acks.append(Ack(envelope.run, envelope.writer, seq, False, keys.id, stop, False))
            batches.append(_batch(one, member, stored))
            heard.append((run_id, member.who.writer_id, columns.last_ms))
        now_ms = self._clock()
        for run_id, writer_id, last_ms in heard:
            self.presence.heard(run_id, writer_id, now_ms, last_ms)

        def done(answer: tuple[bool, ...] | BaseException) -> None:
            if not isinstance(answer, tuple):
                settle(None)
                return
            for ack, fresh in zip(acks, answer, strict=True):
                ack.stored = fresh
            for run_id, _, _ in heard:
                self._note(run_id, False)
            settle(acks)

        self.commits.hand_over(batches, done)
        return True

    async def record(self, prepared: Sequence[Prepared]) -> list[Ack]:
        """Store envelopes, all or none; what became of them, once all is durable.

        Raises:
            Refused: 503 where the store or the catalogue cannot be written; nothing was acknowledged.
        """
        try:
            return await self._record(prepared)
        except StoreError as error:
            raise unavailable(f"the store cannot be written: {error}") from error
        except SQLAlchemyError as error:
            log.exception("the catalogue cannot be written")
            raise unavailable(f"the catalogue cannot be written: {type(error).__name__}") from error
        except UnknownRun as error:  # it was deleted for good a moment ago
            self.members.forget(
                member.who.run_id
                for one in prepared
                if (member := self.members.find(one.envelope.run, one.envelope.writer)) is not None
            )
            raise unavailable(str(error)) from error
        except ValueError as error:
            raise out_of_range(str(error)) from error

    async def _record(self, prepared: Sequence[Prepared]) -> list[Ack]:
        now_ms = self._clock()
        acks: list[Ack] = []
        batches: list[SampleBatch] = []
        carriers: list[Ack] = []
        written: list[Notes] = []
        heard: dict[int, bool] = {}
        for one in prepared:
            envelope = one.envelope
            member = self.members.find(envelope.run, envelope.writer)
            is_new = member is None
            if member is None:
                member = await self.members.join(envelope, _oldest_ms(one, now_ms), now_ms)
                if member.who.deleted:
                    self.presence.thrown_away(member.who.run_id)
            run_id = member.who.run_id
            gone = run_id in self.presence.deleted
            sent, stored = (None, None) if gone else await self._schemas(one, member)
            ack = Ack(
                envelope.run,
                envelope.writer,
                envelope.seq,
                stored=False,
                schema=sent.id if sent else None,
                stop=run_id in self.presence.stopped,
                deleted=gone,
            )
            acks.append(ack)
            self.presence.heard(run_id, member.who.writer_id, now_ms, _last_ms(one))
            if gone:
                continue
            heard[run_id] = heard.get(run_id, False) or is_new or one.notes is not None
            if one.notes is not None:
                written.append(one.notes.of(member.who))
            rows = logged_rows(one, member.who, sent, self._catalogue.metrics.keys) if sent else None
            if rows is not None:
                written.append(Notes(rows=rows))
            if envelope.seq is not None:
                batches.append(_batch(one, member, stored))
                carriers.append(ack)
        if written:
            await self._notes.ask(written)
        if batches:
            for ack, fresh in zip(carriers, await self.commits.add(batches), strict=True):
                ack.stored = fresh
        for run_id, has_facts in heard.items():
            self._note(run_id, has_facts)
        return acks

    async def _schemas(self, one: Prepared, member: Member) -> tuple[KeyList | None, KeyList | None]:
        """The list of an envelope's keys, and the one its samples are stored under."""
        keys = one.keys
        if keys is None:
            return None, None
        has_step = one.columns is not None and one.columns.has_step
        if isinstance(keys, KeyList):
            known = member.stored_as.get((keys.id, has_step))
            if known is not None:
                return keys, known
        sent, stored = await self.members.note_list(member, keys, has_step)
        if one.raw_keys:
            self._preparation.keep(one.raw_keys, sent)
        return sent, stored

    def _write_notes(self, asked: Sequence[Sequence[Notes]]) -> list[None]:
        """Write what many envelopes say; the ends last, so that who sees a run ended sees all of it."""
        every = [notes for some in asked for notes in some]
        self._catalogue.sections.merge([update for notes in every for update in notes.updates])
        rows = [notes.rows for notes in every if notes.rows is not None]
        if rows:
            self._catalogue.write(lambda connection: fold(connection, rows))
        for seen in (one for notes in every for one in notes.seen):
            self._catalogue.devices.note(*seen)
        self._catalogue.writers.note_processes([one for notes in every for one in notes.processes])
        self._catalogue.events.add([event for notes in every for event in notes.events])
        self._catalogue.console.add([piece for notes in every for piece in notes.printed])
        self._catalogue.writers.end([end for notes in every for end in notes.ends])
        return [None] * len(asked)


def _last_ms(one: Prepared) -> int:
    last_ms = 0 if one.columns is None else one.columns.last_ms
    return last_ms if one.notes is None else max(last_ms, one.notes.last_ms)


def _oldest_ms(one: Prepared, now_ms: int) -> int | None:
    """Of its rows, as far as they are not ahead of now; None where it has none."""
    if one.columns is None or not len(one.columns.t):
        return None
    return min(now_ms, int(one.columns.t.min()))


def _batch(one: Prepared, member: Member, stored: KeyList | None) -> SampleBatch:
    """The batch of an envelope: without rows where it has none, so that its number is remembered."""
    seq = one.envelope.seq
    assert seq is not None
    who = member.who
    if one.columns is None or stored is None:
        return SampleBatch(who.lane_id, who.writer_id, seq, (), _NO_TIMES, _NO_VALUES)
    return SampleBatch(
        who.lane_id,
        who.writer_id,
        seq,
        stored.metric_ids,
        one.columns.t,
        one.columns.values,
        one.columns.body,
    )
