"""Writers that have joined, and the lists of keys that they send: what the catalogue says of both, kept in
memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from runvitals.model.names import STEP
from runvitals.model.state import TRAIN
from runvitals.server.ingest.envelope import About, Envelope
from runvitals.server.ingest.errors import out_of_range
from runvitals.server.ingest.group_commit import Together
from runvitals.store.metadata import (
    KeyList,
    MetadataStore,
    RegisteredWriter,
    SectionUpdate,
    WatchedProcess,
    WriterRegistration,
)
from runvitals.store.supervised_thread import SupervisedThread

_MOST_MEMBERS = 100_000


@dataclass(slots=True)
class Member:
    """A writer that has joined.

    `stored_as`: for each list of keys it has sent, and whether with steps, the list it is stored under; the
    catalogue knows that it has these.
    """

    who: RegisteredWriter
    stored_as: dict[tuple[int, bool], KeyList] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Newcomer:
    joining: WriterRegistration
    about: About | None
    now_ms: int


@dataclass(frozen=True, slots=True)
class _NewList:
    """A list of keys that a writer sends for the first time; its texts, or its number where it has one."""

    writer_id: int
    keys: tuple[str, ...] | KeyList
    has_step: bool


def joining(envelope: Envelope, oldest_ms: int | None = None) -> WriterRegistration:
    """How an envelope's writer joins.

    Args:
        oldest_ms: of its rows: when its life began, at the latest, where it does not say so.

    Raises:
        Refused: 422 for a name or number that is not allowed.
    """
    about = envelope.about or About()
    one = WriterRegistration(
        run=envelope.run,
        writer=envelope.writer,
        project=envelope.project,
        role=about.role,
        host=about.host,
        pid=about.pid,
        rank=about.rank,
        interval_s=about.interval_s,
        started_ms=oldest_ms if about.started_ms is None else about.started_ms,
    )
    try:
        one.check()
    except ValueError as error:
        raise out_of_range(str(error)) from None
    return one


class Members:
    """Writers by run and name, the most recent ones."""

    def __init__(self, catalogue: MetadataStore) -> None:
        self._catalogue = catalogue
        self._members: dict[tuple[str, str], Member] = {}
        self._joins = Together("joins", self._join, (ValueError,))
        self._lists = Together("key-lists", self._note_lists, (ValueError,))

    @property
    def threads(self) -> list[SupervisedThread]:
        return [self._joins.thread, self._lists.thread]

    def close(self) -> None:
        self._joins.close()
        self._lists.close()

    def find(self, run: str, writer: str) -> Member | None:
        return self._members.get((run, writer))

    async def join(self, envelope: Envelope, oldest_ms: int | None, now_ms: int) -> Member:
        """The writer of an envelope, made where it is not there. Durable."""
        who = await self._joins.ask(_Newcomer(joining(envelope, oldest_ms), envelope.about, now_ms))
        while len(self._members) >= _MOST_MEMBERS:
            self._members.pop(next(iter(self._members)))
        return self._members.setdefault((envelope.run, envelope.writer), Member(who))

    async def note_list(
        self, member: Member, keys: tuple[str, ...] | KeyList, has_step: bool
    ) -> tuple[KeyList, KeyList]:
        """Note that a writer sends these keys. Durable.

        Returns:
            the list of these keys, and the one to store samples under, which may have the step as well.
        """
        sent, stored = await self._lists.ask(_NewList(member.who.writer_id, keys, has_step))
        member.stored_as[sent.id, has_step] = stored
        return sent, stored

    def forget(self, run_ids: Iterable[int]) -> None:
        """Runs that are gone for good: who still writes to one joins again, and so makes it anew."""
        gone = set(run_ids)
        for name, member in list(self._members.items()):  # a copy: other threads let writers join meanwhile
            if member.who.run_id in gone:
                self._members.pop(name, None)

    def _join(self, newcomers: Sequence[_Newcomer]) -> list[RegisteredWriter]:
        joined = self._catalogue.writers.join(
            [one.joining for one in newcomers], max(one.now_ms for one in newcomers)
        )
        processes: list[WatchedProcess] = []
        updates: list[SectionUpdate] = []
        for who, one in zip(joined, newcomers, strict=True):
            about = one.about
            if about is None:
                continue
            if about.role == TRAIN and about.pid is not None:
                processes.append(
                    WatchedProcess(
                        who.run_id, who.host, about.pid, about.rank, about.local_rank, about.world_size
                    )
                )
            facts = {"boot_id": about.boot_id, "labels": about.labels}
            known = {name: fact for name, fact in facts.items() if fact is not None}
            if known:
                updates.append(SectionUpdate(who.run_id, "writers", {one.joining.writer: known}, one.now_ms))
        self._catalogue.writers.note_processes(processes)
        self._catalogue.sections.merge(updates)
        return joined

    def _note_lists(self, news: Sequence[_NewList]) -> list[tuple[KeyList, KeyList]]:
        metrics = self._catalogue.metrics
        numbered: dict[tuple[tuple[str, ...] | KeyList, bool], tuple[KeyList, KeyList]] = {}
        for one in news:
            if (one.keys, one.has_step) in numbered:
                continue
            sent = one.keys if isinstance(one.keys, KeyList) else metrics.schema(one.keys)
            stored = sent
            if one.has_step:
                keys = metrics.keys(sent.metric_ids)
                stored = metrics.schema([*(keys[number] for number in sent.metric_ids), STEP])
            numbered[one.keys, one.has_step] = sent, stored
        answers = [numbered[one.keys, one.has_step] for one in news]
        metrics.record((one.writer_id, stored.id) for one, (_, stored) in zip(news, answers, strict=True))
        return answers
