"""Why a run of the metadata store failed, for messages about it."""

from __future__ import annotations

from typing import NamedTuple

from runvitals.journal.records import STREAMS
from runvitals.model.ending import Ending
from runvitals.model.failure import CONSOLE_BYTES, EXCEPTION, Failure, failure_of
from runvitals.model.run import Event, Rank
from runvitals.model.run_state import State
from runvitals.monitoring.environment import redaction
from runvitals.server.metadata_store import MetadataStore

_PROCESSES = 1000
_EXCEPTIONS = 100


class _EndedRun(NamedTuple):
    """What `failure_of` needs to know of a run."""

    ending: Ending
    ended_ms: int | None
    ranks: list[Rank]
    events: list[Event]

    @property
    def state(self) -> State:
        """The state of the run."""
        return self.ending.state


class _Output(NamedTuple):
    """A record of output and the process that printed it."""

    time_ms: int
    stream: str
    text: str
    host: str
    rank: int | None


def failure_of_run(
    store: MetadataStore, run_id: int, ending: Ending, ended_ms: int | None, with_output: bool
) -> Failure | None:
    """Return why a run failed; None if it has not.

    Args:
        ending: its state, and how it ended.
        with_output: whether the text may have what it printed, exceptions included.
    """
    ranks = [
        Rank(
            process.host, process.pid, process.rank, exit_code=process.exit_code, signal=process.signal,
            out_of_memory=process.out_of_memory, ended_ms=process.ended_ms,
        )
        for process in store.writers.processes(run_id)[:_PROCESSES]
    ]  # fmt: skip
    run = _EndedRun(ending, ended_ms, ranks, _exceptions(store, run_id) if with_output else [])
    return failure_of(run, _output(store, run_id) if with_output else [], redaction.text)


def _exceptions(store: MetadataStore, run_id: int) -> list[Event]:
    processes = _processes(store, run_id)
    return [
        Event(event.time_ms, event.name, event.level, event.text, *processes[event.writer_id], event.data)
        for event in store.events.of_run(run_id, limit=_EXCEPTIONS, name=EXCEPTION)
        if event.writer_id in processes
    ]


def _output(store: MetadataStore, run_id: int) -> list[_Output]:
    processes = _processes(store, run_id)
    return [
        _Output(piece.time_ms, STREAMS[piece.stream], piece.text, *processes[piece.writer_id])
        for piece in store.console.tail(run_id, CONSOLE_BYTES).pieces
        if piece.writer_id in processes
    ]


def _processes(store: MetadataStore, run_id: int) -> dict[int | None, tuple[str, int | None]]:
    """By writer: its host and rank."""
    return {writer.id: (writer.host, writer.rank) for writer in store.writers.of_runs([run_id])[run_id]}
