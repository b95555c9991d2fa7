"""A run's lanes: under which numbers the store has its series, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runvitals.model.names import STEP
from runvitals.server.views import Chosen
from runvitals.store.catalogue import Catalogue, Writer
from runvitals.store.catalogue.states import MONITOR, TRAIN


@dataclass(frozen=True, slots=True)
class Life:
    """One writer of a lane: of a monitor's lane one for each of its lives."""

    writer: str
    started_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class Lane:
    """What the store has under one number.

    Args:
        lives: the oldest first.
        sampled: key → the metric's number, of series.
        logged: the same of what was logged, and of STEP and TRUE_TIME.
    """

    id: int
    host: str
    role: str
    rank: int | None
    lives: tuple[Life, ...]
    sampled: Mapping[str, int]
    logged: Mapping[str, int]

    def is_chosen(self, chosen: Chosen, hosts_of_rank: frozenset[str]) -> bool:
        """Whether a choice by host, rank and writer has this lane."""
        if chosen.host is not None and self.host != chosen.host:
            return False
        if chosen.writer is not None:
            return any(chosen.wants_writer(life.writer) for life in self.lives)
        if chosen.rank is None:
            return True
        return self.rank == chosen.rank if self.role == TRAIN else self.host in hosts_of_rank


def lanes(catalogue: Catalogue, run_id: int, writers: Sequence[Writer]) -> list[Lane]:
    """The lanes of a run: those of monitors first, then by when they began."""
    lists = catalogue.metrics.lists_of_run(run_id)
    numbers = {number for some in lists.values() for one in some for number in one}
    keys = catalogue.metrics.keys(numbers)
    of_lane: dict[int, list[Writer]] = {}
    for one in sorted(writers, key=lambda w: (w.role != MONITOR, w.started_ms, w.name)):
        of_lane.setdefault(one.lane_id, []).append(one)
    return [
        _lane(some, [one for w in some for one in lists.get(w.id, ())], keys) for some in of_lane.values()
    ]


def _lane(writers: Sequence[Writer], lists: Sequence[tuple[int, ...]], keys: Mapping[int, str]) -> Lane:
    first = writers[0]
    sampled: dict[str, int] = {}
    logged: dict[str, int] = {}
    for numbers in lists:
        named = {keys[number]: number for number in numbers if number in keys}
        (logged if STEP in named or first.role == TRAIN else sampled).update(named)
    return Lane(
        id=first.lane_id,
        host=first.host,
        role=first.role,
        rank=first.rank,
        lives=tuple(Life(one.name, one.started_ms, one.last_ms) for one in writers),
        sampled=dict(sorted(sampled.items())),
        logged=logged,
    )
