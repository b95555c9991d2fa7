"""The leader sees for alert rules what other servers have stored, each sample once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from runvitals.server.alerts.sample_queue import SampleQueue
from runvitals.server.alerts.samples_of_others import SamplesOfOthers
from runvitals.store.samples.interface import StoreUnavailable
from tests.store.samples.conformance import T0, batch
from tests.store.samples.model import Model


class MayBeAway(Model):
    is_away = False

    def read(self, *arguments: Any) -> Any:
        if self.is_away:
            raise StoreUnavailable("ClickHouse cannot be reached")
        return super().read(*arguments)


class Leader:
    """A server that leads, or not."""

    def __init__(self) -> None:
        self.leads = True
        self.store = MayBeAway()
        self.others = SamplesOfOthers(self.store, lambda: self.leads)
        self.others.queue = SampleQueue()
        self.others.queue.is_used = self.others.queue.has_rules = True

    def hears(self, seq: int, times: Sequence[int], run: int = 1) -> None:
        """Another server has stored samples, with the number of the batch as value."""
        self.store.append([batch(seq, list(times), [float(seq)] * len(times), run=run)])
        self.others.add({run: T0 + times[-1]})

    def new(self) -> list[tuple[int, int, float]]:
        """What it reads: runs, times and values."""
        self.others._turn()
        return [
            (news.run, t - T0, value)
            for news in self.others.queue.take()
            for t, value in zip(news.t.tolist(), news.values[:, 0].tolist(), strict=True)
        ]


def test_each_sample_is_seen_once() -> None:
    leader = Leader()
    leader.hears(1, [0, 1])
    leader.hears(1, [0], run=2)
    assert sorted(leader.new()) == [(1, 0, 1.0), (1, 1, 1.0), (2, 0, 1.0)]
    leader.hears(2, [2, 3])
    assert leader.new() == [(1, 2, 2.0), (1, 3, 2.0)]
    assert leader.new() == []


def test_the_last_samples_of_a_run_are_seen_although_clickhouse_was_away_then() -> None:
    leader = Leader()
    leader.hears(1, [0, 1])
    leader.store.is_away = True
    with pytest.raises(StoreUnavailable):
        leader.new()
    leader.store.is_away = False
    assert leader.new() == [(1, 0, 1.0), (1, 1, 1.0)]


def test_a_server_that_does_not_lead_reads_nothing() -> None:
    leader = Leader()
    leader.leads = False
    leader.hears(1, [0])
    assert leader.new() == []
