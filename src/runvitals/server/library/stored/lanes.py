"""The lanes of a run: the numbers of its series in the sample store, with their hosts and writers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runvitals.model.names import STEP
from runvitals.model.state import MONITOR, TRAIN
from runvitals.server.library.run_library import SeriesSelection
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.metrics import KeyList
from runvitals.server.runs.storage.run_states import StoredWriter


@dataclass(frozen=True, slots=True)
class LaneWriter:
    """A writer of a lane. A monitor that was restarted is a new writer of the same lane."""

    writer: str
    started_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class Lane:
    """The series of one host of a run, or of one training process.

    Args:
        id: the number in the sample store.
        writers: the oldest first.
        sampled: key → number of the metric, of sampled series.
        logged: the same of logged values, and of STEP and TRUE_TIME.
    """

    id: int
    host: str
    role: str
    rank: int | None
    writers: tuple[LaneWriter, ...]
    sampled: Mapping[str, int]
    logged: Mapping[str, int]
    lists: tuple[int, ...] = ()

    def is_selected(self, selection: SeriesSelection, hosts_of_rank: frozenset[str]) -> bool:
        """Return whether a selection by host, rank and writer includes this lane."""
        if selection.host is not None and self.host != selection.host:
            return False
        if selection.writer is not None:
            return any(selection.matches_writer(writer.writer) for writer in self.writers)
        if selection.rank is None:
            return True
        return self.rank == selection.rank if self.role == TRAIN else self.host in hosts_of_rank


def lanes(
    metadata_store: MetadataStore, run_id: int, writers: Sequence[StoredWriter], before: Sequence[Lane] = ()
) -> list[Lane]:
    """Return the lanes of a run: those of monitors first, then by start time.

    Args:
        before: the lanes of the previous refresh, from which unchanged key lists are reused.
    """
    lists = metadata_store.metrics.lists_of_run(run_id)
    of_lane: dict[int, list[StoredWriter]] = {}
    for writer in sorted(writers, key=lambda w: (w.role != MONITOR, w.started_ms, w.name)):
        of_lane.setdefault(writer.lane_id, []).append(writer)
    lanes_by_id = {lane.id: lane for lane in before}
    return [
        _lane(
            metadata_store,
            lane_writers,
            [key_list for w in lane_writers for key_list in lists.get(w.id, ())],
            lanes_by_id.get(number),
        )
        for number, lane_writers in of_lane.items()
    ]


def _lane(
    metadata_store: MetadataStore,
    writers: Sequence[StoredWriter],
    lists: Sequence[KeyList],
    before: Lane | None,
) -> Lane:
    first = writers[0]
    numbers = tuple(key_list.id for key_list in lists)
    if before is not None and before.lists == numbers:
        sampled, logged = before.sampled, before.logged
    else:
        sampled, logged = _keys(metadata_store, lists, first.role)
    return Lane(
        id=first.lane_id,
        host=first.host,
        role=first.role,
        rank=first.rank,
        writers=tuple(LaneWriter(writer.name, writer.started_ms, writer.last_ms) for writer in writers),
        sampled=sampled,
        logged=logged,
        lists=numbers,
    )


def _keys(
    metadata_store: MetadataStore, lists: Sequence[KeyList], role: str
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the sampled keys and the logged names, with their numbers."""
    keys = metadata_store.metrics.keys({number for key_list in lists for number in key_list.metric_ids})
    sampled: dict[str, int] = {}
    logged: dict[str, int] = {}
    for key_list in lists:
        numbers = {keys[number]: number for number in key_list.metric_ids if number in keys}
        (logged if STEP in numbers or role == TRAIN else sampled).update(numbers)
    return dict(sorted(sampled.items())), logged
