"""The rule of a run's state, from its processes to the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import pytest

from runvitals.model.ending import Ending, ProcessExit
from runvitals.model.host import Host, hosts_of
from runvitals.model.run_state import State
from runvitals.model.state import (
    ENDED_STATES,
    STATES,
    deciding_writers,
    host_ending,
    is_ended,
    silence_ms,
    worst,
)

UNANNOUNCED = ProcessExit(None, None)
UNANNOUNCED.unannounced = True


@dataclass(frozen=True)
class Writer:
    """A writer; without an ending it is alive unless `is_silent`."""

    role: str
    host: str
    ending: Ending | None = None
    is_silent: bool = False
    started_ms: int = 0
    last_ms: int = 0
    interval_s: float | None = None


def monitor(host: str, state: State | None = None, is_silent: bool = False) -> Writer:
    return Writer("monitor", host, Ending(state) if state else None, is_silent)


def train(host: str, state: State | None = None, is_silent: bool = False) -> Writer:
    return Writer("train", host, Ending(state) if state else None, is_silent)


def client(host: str, is_silent: bool = False) -> Writer:
    return Writer("api", host, None, is_silent)


def state_of(writers: list[Writer]) -> State:
    return worst(host.ending for host in hosts_of(writers, lambda writer: not writer.is_silent)).state


@pytest.mark.parametrize(
    ("writers", "state"),
    [
        # One host: its newest monitor decides.
        ([monitor("a")], "running"),
        ([monitor("a", is_silent=True)], "lost"),
        ([monitor("a", "finished", is_silent=True)], "finished"),
        ([monitor("a", "failed"), monitor("a")], "running"),
        ([monitor("a"), monitor("a", "failed")], "failed"),
        ([monitor("a", "crashed"), monitor("a", is_silent=True)], "lost"),
        ([monitor("a"), monitor("a", is_silent=True)], "lost"),
        # Only monitors decide, if there are any.
        ([monitor("a", "finished"), train("a")], "finished"),
        ([monitor("a", "finished"), train("b", "crashed")], "finished"),
        # Training processes without a monitor: the newest one that recorded its end.
        ([train("a")], "running"),
        ([train("a", "failed")], "failed"),
        ([train("a", "failed"), train("a", "finished")], "finished"),
        ([train("a", "failed"), train("a")], "failed"),
        ([train("a", is_silent=True), train("a")], "running"),
        ([train("a"), client("a", is_silent=True)], "running"),
        # Clients of the API only.
        ([client("a")], "running"),
        ([client("a", is_silent=True)], "lost"),
        ([client("a", is_silent=True), client("b")], "running"),
        # Several hosts: running while any is, then the worst.
        ([monitor("a", "crashed"), monitor("b")], "running"),
        ([monitor("a", "finished"), monitor("b", is_silent=True)], "lost"),
        ([monitor("a", "failed"), monitor("b", is_silent=True)], "failed"),
        ([monitor("a", "stopped"), monitor("b", is_silent=True)], "lost"),
        ([monitor("a", "finished"), monitor("b", "stopped")], "stopped"),
        ([monitor("a", "failed"), monitor("b", "crashed")], "crashed"),
        ([], "lost"),
    ],
)
def test_the_state_of_a_run(writers: list[Writer], state: State) -> None:
    assert state_of(writers) == state


def test_hosts_span_all_their_monitors() -> None:
    writers = [
        Writer("monitor", "b", Ending("failed", 1), started_ms=10, last_ms=90, interval_s=1.0),
        Writer("monitor", "a", started_ms=20, last_ms=50, interval_s=1.0),
        Writer("monitor", "b", started_ms=60, last_ms=70, interval_s=2.0),
        Writer("train", "c", Ending("failed", 1), started_ms=5),
    ]
    assert hosts_of(writers, lambda writer: True) == [
        Host("b", Ending("running"), 10, 90, 2.0, 2),
        Host("a", Ending("running"), 20, 50, 1.0, 1),
    ]
    assert [host.monitors for host in hosts_of(writers[3:], lambda writer: True)] == [0]


def test_writers_of_the_deciding_role_in_their_order() -> None:
    writers = [train("a"), monitor("b"), monitor("a"), monitor("b", "failed")]
    assert deciding_writers(iter(writers)) == {"b": [writers[1], writers[3]], "a": [writers[2]]}


@pytest.mark.parametrize(
    ("process_exit", "state"),
    [
        (ProcessExit(0, None), "finished"),
        (ProcessExit(1, None), "failed"),
        (ProcessExit(None, 9), "crashed"),
        (ProcessExit(None, 1), "stopped"),
        (ProcessExit(None, 2), "stopped"),
        (ProcessExit(None, 15), "stopped"),
        (ProcessExit(130, None), "stopped"),
        (ProcessExit(143, None), "stopped"),
        (ProcessExit(None, None), "finished"),
        (UNANNOUNCED, "crashed"),
    ],
)
def test_the_state_of_a_process(process_exit: ProcessExit, state: State) -> None:
    assert process_exit.state == state


def test_the_worst_process_decides_for_its_host() -> None:
    killed = ProcessExit(None, 9)
    killed.out_of_memory = True
    exits = [ProcessExit(0, None), ProcessExit(3, None), killed, ProcessExit(None, 15)]
    assert host_ending(exits) == Ending("crashed", signal=9, out_of_memory=True)
    assert host_ending(iter(exits[:2])) == Ending("failed", 3, out_of_memory=False)
    assert host_ending([]) == Ending("finished", 0, out_of_memory=False)


@pytest.mark.parametrize(
    ("process_exit", "state"),
    [
        (ProcessExit(0, None), "stopped"),
        (ProcessExit(1, None), "stopped"),
        (ProcessExit(None, 15), "stopped"),
        (ProcessExit(None, 11), "crashed"),
    ],
    ids=["finished", "failed", "terminated", "crashed"],
)
def test_after_a_requested_stop_only_a_crash_is_not_stopped(process_exit: ProcessExit, state: State) -> None:
    ending = host_ending([process_exit], stop_requested=True)
    assert (ending.state, ending.exit_code) == (state, process_exit.exit_code)


def test_the_first_of_equally_bad_endings_is_the_runs() -> None:
    assert worst([Ending("finished", 0), Ending("failed", 3), Ending("failed", 4)]) == Ending("failed", 3)


def test_how_long_a_monitor_may_be_silent() -> None:
    assert [silence_ms(interval_s) for interval_s in (None, 0.1, 2.0, 15.0)] == [
        10_000,
        10_000,
        10_000,
        75_000,
    ]


def test_every_state_is_listed_once() -> None:
    assert sorted(STATES) == sorted(get_args(State))
    assert set(ENDED_STATES) == set(STATES) - {"running", "lost"}
    assert {state for state in (*STATES, "preempted", None) if is_ended(state)} == set(ENDED_STATES)
