"""Why a run failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.model.ending import Ending
from runvitals.model.failure import C_OUTPUT, NOTHING_RECORDED, failure_of
from runvitals.model.run import Event, Rank
from runvitals.model.run_state import State
from runvitals.monitoring.environment import redaction

TRACEBACK = 'Traceback (most recent call last):\n  File "t.py", line 3, in f\nValueError: no\n'


@dataclass
class Ended:
    """A run that has ended."""

    ending: Ending
    ranks: list[Rank] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    ended_ms: int | None = 9000

    @property
    def state(self) -> State:
        return self.ending.state


@dataclass
class Output:
    """What a process printed."""

    text: str
    stream: str = "stderr"
    rank: int | None = None
    time_ms: int = 1000
    host: str = "a"


def failure(run: Ended, *pieces: Output) -> Any:
    return failure_of(run, pieces, redaction.text)


@pytest.mark.parametrize("state", ["finished", "stopped", "running"])
def test_a_run_that_did_not_fail(state: State) -> None:
    assert failure(Ended(Ending(state, 130 if state == "stopped" else None)), Output(TRACEBACK)) is None


def test_an_exception_that_was_printed() -> None:
    found = failure(Ended(Ending("failed", 1)), Output("1 %\r2 %\rstarting\n" + TRACEBACK))
    assert (found.title, found.exception, found.message) == ("ValueError: no", "ValueError", "no")
    assert found.lines[0].text == "starting"
    assert found.lines[-1].text == "ValueError: no"
    assert found.hint is None


def test_an_exception_that_was_recorded_but_not_printed() -> None:
    data = {"type": "ValueError", "message": "no", "traceback": TRACEBACK}
    event = Event(5000, "exception", "error", "ValueError: no", "a", None, data)
    found = failure(Ended(Ending("failed", 1), events=[event]))
    assert found.title == "ValueError: no"
    assert [line.text for line in found.lines] == TRACEBACK.splitlines()
    assert found.hint is None


@pytest.mark.parametrize(
    ("ending", "title", "hint"),
    [
        (Ending("crashed", None, 9, True), "SIGKILL: out of memory", NOTHING_RECORDED),
        (Ending("crashed", None, 9, False), "SIGKILL: killed, by a user, a scheduler or the system",
         NOTHING_RECORDED),
        (Ending("crashed", None, 11), "SIGSEGV: segmentation fault", NOTHING_RECORDED),
        (Ending("failed", 3), "Exit code 3", NOTHING_RECORDED),
        (Ending("failed"), "It failed, by what its client reported; the client gave no reason",
         NOTHING_RECORDED),
        (Ending("crashed"), "The program ended without announcing it", NOTHING_RECORDED),
    ],
)  # fmt: skip
def test_nothing_was_recorded(ending: Ending, title: str, hint: str) -> None:
    found = failure(Ended(ending))
    assert (found.title, found.hint, found.lines) == (title, hint, [])


def test_a_crash_of_which_only_c_could_tell() -> None:
    assert failure(Ended(Ending("crashed", None, 6)), Output("step 1\n")).hint == C_OUTPUT
    said = failure(Ended(Ending("crashed", None, 6)), Output("x.c:3: Assertion `n' failed.\n"))
    assert (said.title, said.hint) == ("x.c:3: Assertion `n' failed. (SIGABRT)", None)


def test_the_rank_that_failed_first() -> None:
    ranks = [
        Rank("a", 1, 0, ended_ms=8000, signal=15),
        Rank("a", 2, 1, ended_ms=8900, exit_code=1),
        Rank("b", 3, 2, ended_ms=8500, exit_code=7),
    ]
    late = Output(TRACEBACK, rank=1, time_ms=8800)
    first = Output("checkpoint is truncated\n", rank=2, host="b", time_ms=8400)
    found = failure(Ended(Ending("failed", 7), ranks), first, late)
    assert (found.rank, found.host, found.exit_code, found.time_ms) == (2, "b", 7, 8500)
    assert [line.text for line in found.lines] == ["checkpoint is truncated"]


def test_a_rank_failed_and_the_others_wait() -> None:
    run = Ended(Ending("running"), [Rank("a", 1, 0), Rank("a", 2, 1, ended_ms=8900, exit_code=1)])
    assert failure(run, Output(TRACEBACK, rank=1)).title == "ValueError: no"


def test_secrets_and_control_characters() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBg\nwNtXyzAbCdEf\n-----END RSA PRIVATE KEY-----\n"
    text = (
        f"{key}\x1b[31mred\x1b[0m \x1b]0;title\x07PASSWORD=hunter22\n{TRACEBACK[:-4]}TOKEN=hunter22\u202e\n"
    )
    found = failure(Ended(Ending("failed", 1)), Output(text))
    assert [line.text for line in found.lines[:2]] == ["***", "red PASSWORD=***"]
    assert found.title == "ValueError: TOKEN=***"
    assert "hunter22" not in repr(found)
    assert "\x1b" not in repr(found)


@given(st.lists(st.text(max_size=2000), max_size=30), st.booleans())
def test_it_is_bounded(texts: list[str], as_exception: bool) -> None:
    event = Event(
        1, "exception", "error", "", "a", None, {"type": texts[0] if texts else 5, "message": "m" * 9999}
    )
    run = Ended(Ending("failed", 1), events=[event] if as_exception else [])
    found = failure(run, *map(Output, texts))
    assert len(found.title) <= 400
    assert len(found.lines) <= 20
    assert all(len(line.text) <= 300 and "\n" not in line.text for line in found.lines)
