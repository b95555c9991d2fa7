"""A clock that is set while a server runs, or while it does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.server.clock import Clock, Due
from runvitals.server.ingest.heartbeats import Heartbeats
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.run_states import hosts
from runvitals.server.runs.storage.writer_registration import RegisteredWriter, WriterRegistration
from runvitals.server.runs.storage.writers import WriterHeartbeat
from tests.empty_metadata import new_metadata_store

DAY = 86_400_000
NOW = 1_790_812_800_000
YEAR_1971, YEAR_2037 = 31_536_000_000, 2_114_380_800_000


class Machine:
    """A machine's two clocks. `wait` lets time pass, `set` sets the wall clock."""

    def __init__(self) -> None:
        self.wall_ms, self.steady_ms = NOW, 5000

    def wait(self, ms: int) -> None:
        self.wall_ms += ms
        self.steady_ms += ms

    def clock(self) -> Clock:
        return Clock(lambda: self.wall_ms, lambda: self.steady_ms)


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def metadata_store(tmp_path: Path) -> Iterator[MetadataStore]:
    with new_metadata_store(tmp_path / "catalogue.db") as opened:
        yield opened


def joined(metadata_store: MetadataStore, run: str, now_ms: int) -> RegisteredWriter:
    (who,) = metadata_store.writers.join([WriterRegistration(run, "monitor.node1.1", started_ms=NOW)], now_ms)
    return who


def state(metadata_store: MetadataStore, run: str, now_ms: int) -> str:
    found = metadata_store.runs.find(run, now_ms)
    assert found is not None
    (host,) = hosts(metadata_store.writers.of_runs([found.id])[found.id], now_ms)
    assert host.ending.state == found.state
    return found.state


def test_a_clock_that_is_slewed_is_followed(machine: Machine) -> None:
    clock = machine.clock()
    for _ in range(1000):
        machine.wait(1000)
        machine.wall_ms += 5
        assert clock() == machine.wall_ms
    assert clock.jumped_ms() == 0


@pytest.mark.parametrize("set_to", [YEAR_1971, NOW - DAY, NOW - 60_000, NOW + 60_000, YEAR_2037])
def test_states_of_runs_survive_a_clock_change(
    machine: Machine, metadata_store: MetadataStore, set_to: int
) -> None:
    clock = machine.clock()
    dead = joined(metadata_store, "dead", clock())
    metadata_store.writers.record_heartbeats([WriterHeartbeat(dead.writer_id, clock(), clock())])
    machine.wait(3_600_000)
    heartbeats = Heartbeats(metadata_store, clock)
    heartbeats.close()
    alive, dying = (joined(metadata_store, name, clock()) for name in ("alive", "dying"))
    for who in (alive, dying):
        heartbeats.record(who.run_id, who.writer_id, clock(), clock())

    machine.wall_ms = set_to
    states = [state(metadata_store, name, clock()) for name in ("dead", "alive", "dying")]
    assert states == ["lost", "running", "running"]  # before anything was done about it
    heartbeats.record(alive.run_id, alive.writer_id, clock(), clock())
    heartbeats._turn()
    assert clock() == set_to
    assert [state(metadata_store, name, clock()) for name in ("dead", "alive", "dying")] == states
    row = metadata_store.runs.find("alive", clock())
    assert row is not None
    assert 0 <= row.duration_ms <= 2 * 3_600_000

    for _ in range(20):
        machine.wait(1000)
        heartbeats.record(alive.run_id, alive.writer_id, clock(), clock())
        heartbeats._turn()
    states = [state(metadata_store, name, clock()) for name in ("dead", "alive", "dying")]
    assert states == ["lost", "running", "lost"]
    machine.wait(20_000)
    assert state(metadata_store, "alive", clock()) == "lost"


def test_a_wrong_clock_of_an_earlier_server_leaves_no_run_running(
    machine: Machine, metadata_store: MetadataStore
) -> None:
    who = joined(metadata_store, "dead", YEAR_2037)
    metadata_store.writers.record_heartbeats([WriterHeartbeat(who.writer_id, YEAR_2037, YEAR_2037)])
    clock = machine.clock()
    assert state(metadata_store, "dead", clock()) == "running"
    Heartbeats(metadata_store, clock).close()
    machine.wait(60_000)
    assert state(metadata_store, "dead", clock()) == "lost"


def test_what_a_server_does_again_and_again_goes_on_when_the_clock_is_set_back() -> None:
    due = Due()
    assert due.at(YEAR_2037)
    due.wait(YEAR_2037, DAY)
    assert [due.at(YEAR_2037), due.at(YEAR_2037 + DAY - 1), due.at(YEAR_2037 + DAY)] == [False, False, True]
    assert due.at(NOW)
    due.wait(NOW, DAY)
    due.at_once()
    assert due.at(NOW)


def test_a_clock_set_ahead_deletes_nothing_by_age(machine: Machine) -> None:
    clock = machine.clock()
    machine.wait(DAY)
    machine.wall_ms = YEAR_2037
    assert clock.earliest() == NOW + DAY
    clock.follow(clock.jumped_ms())
    assert clock() == YEAR_2037
    assert clock.earliest() == NOW + DAY
    machine.wall_ms = YEAR_1971
    clock.follow(clock.jumped_ms())
    assert clock.earliest() == YEAR_1971
