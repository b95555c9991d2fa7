"""States of runs, by when the server last heard from their writers."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runvitals.journal import frames
from runvitals.journal.records import Record
from runvitals.model.ending import Ending
from runvitals.model.filter import Filter
from runvitals.model.run_sort import RunSort
from runvitals.readers.journals.run_builder import RunBuilder
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.run_states import hosts
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.server.runs.storage.writers import WriterEnd, WriterHeartbeat
from tests.server.database.runs import T0, joined, uids


def state(metadata_store: MetadataStore, uid: str, now_ms: int) -> str:
    run = metadata_store.runs.find(uid, now_ms)
    assert run is not None
    assert uids(metadata_store, Filter(states=(run.state,)), now_ms=now_ms) == [uid]
    assert sum(metadata_store.runs.counts(Filter(), "state", now_ms).values()) == 1
    return run.state


def test_a_run_is_lost_only_while_the_network_is_down(metadata_store: MetadataStore) -> None:
    writer = joined(metadata_store, "abc", interval_s=5.0).writer_id
    assert state(metadata_store, "abc", T0 + 25_000) == "running"
    assert state(metadata_store, "abc", T0 + 25_001) == "lost"
    metadata_store.writers.record_heartbeats([WriterHeartbeat(writer, T0 + 60_000, T0 + 59_000)])
    assert state(metadata_store, "abc", T0 + 61_000) == "running"


def test_a_heartbeat_may_tell_another_interval(metadata_store: MetadataStore) -> None:
    writer = joined(metadata_store, "abc", interval_s=60.0).writer_id
    for interval_s in (5.0, None):  # None: as before
        metadata_store.writers.record_heartbeats([WriterHeartbeat(writer, T0, T0, interval_s)])
        assert state(metadata_store, "abc", T0 + 25_000) == "running"
        assert state(metadata_store, "abc", T0 + 25_001) == "lost"


def test_the_writers_clock_does_not_matter(metadata_store: MetadataStore) -> None:
    writer = joined(metadata_store, "abc", started_ms=T0 - 3_600_000).writer_id
    metadata_store.writers.record_heartbeats([WriterHeartbeat(writer, T0 + 20_000, T0 - 3_580_000)])
    assert state(metadata_store, "abc", T0 + 21_000) == "running"
    [run] = metadata_store.runs.page(Filter(), RunSort(), T0 + 21_000).runs
    assert (run.started_ms, run.last_ms, run.ended_ms) == (T0 - 3_600_000, T0 - 3_580_000, None)


def test_the_ending_of_a_run(metadata_store: MetadataStore) -> None:
    writer = joined(metadata_store, "abc").writer_id
    metadata_store.writers.record_ends(
        [WriterEnd(writer, Ending("crashed", signal=9, out_of_memory=True), T0 + 4000)]
    )
    run = metadata_store.runs.find("abc", T0 + 5000)
    assert run is not None
    assert run.ending == Ending("crashed", None, 9, True)
    assert (run.ended_ms, run.duration_ms) == (T0 + 4000, 4000)
    assert state(metadata_store, "abc", T0 + 10**9) == "crashed"


def test_a_late_heartbeat_changes_nothing(metadata_store: MetadataStore) -> None:
    who = joined(metadata_store, "abc")
    run_id, writer = who.run_id, who.writer_id
    metadata_store.writers.record_heartbeats(
        [WriterHeartbeat(writer, T0 + 60_000, T0 + 60_000), WriterHeartbeat(writer, T0 + 5000, T0 + 5000)]
    )
    [only] = metadata_store.writers.of_runs([run_id])[run_id]
    assert (only.heard_ms, only.last_ms) == (T0 + 60_000, T0 + 60_000)
    metadata_store.writers.record_heartbeats(
        [WriterHeartbeat(writer + 1, T0, T0)]
    )  # of a run that was deleted for good
    metadata_store.writers.record_heartbeats([])


def test_the_newest_monitor_decides(metadata_store: MetadataStore) -> None:
    first = joined(metadata_store, "abc", writer="monitor.node1.a", started_ms=T0)
    metadata_store.writers.record_ends([WriterEnd(first.writer_id, Ending("failed", exit_code=1), T0 + 1000)])
    second = joined(metadata_store, "abc", writer="monitor.node1.b", started_ms=T0 + 2000, now_ms=T0 + 2000)
    assert state(metadata_store, "abc", T0 + 3000) == "running"
    metadata_store.writers.record_ends(
        [WriterEnd(second.writer_id, Ending("finished", exit_code=0), T0 + 4000)]
    )
    [host] = hosts(metadata_store.writers.of_runs([first.run_id])[first.run_id], T0 + 5000)
    assert (host.name, host.ending.state, host.monitors, host.last_ms) == ("node1", "finished", 2, T0 + 4000)


def test_a_client_of_the_api_has_a_state(metadata_store: MetadataStore) -> None:
    joined(metadata_store, "abc", writer="my-script")
    assert state(metadata_store, "abc", T0) == "running"
    assert state(metadata_store, "abc", T0 + 10_001) == "lost"


WRITER = st.tuples(
    st.sampled_from(["monitor", "train"]),
    st.sampled_from(["node1", "node2", "node3"]),
    st.integers(0, 5),  # when it started, in units of 7 s
    st.integers(0, 5),  # how long after that it was heard from
    st.sampled_from([None, 0.1, 1.0, 4.0]),
    st.sampled_from([None, None, "finished", "failed", "crashed", "stopped"]),
)
RUN = st.lists(WRITER, min_size=1, max_size=6, unique_by=lambda writer: writer[:3])
EXAMPLES = itertools.count()


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs=st.lists(RUN, min_size=4, max_size=12), now=st.integers(0, 12))
def test_the_states_are_those_of_journal_readers(
    metadata_store: MetadataStore, runs: list[list[tuple[Any, ...]]], now: int
) -> None:
    """If clocks agree, and records arrive as they are written."""
    now_ms = T0 + 7000 * now
    by_uid = {f"run-{next(EXAMPLES)}": RunBuilder("abc") for _ in runs}
    joining, signs, ends = [], [], []
    for (uid, facts), run in zip(by_uid.items(), runs, strict=True):
        for role, host, start, lasted, interval_s, end in run:
            started_ms, last_ms = T0 + 7000 * start, T0 + 7000 * (start + lasted)
            name = f"monitor.{host}.{start}" if role == "monitor" else f"train.{host}.7.{start}"
            about = {"role": role, "host": host, "pid": 7, "interval_s": interval_s}
            facts.add(Record(name, frames.START, 0, started_ms, about))
            facts.add(Record(name, frames.EVENT, 1, last_ms, {"name": "marker"}))
            if end is not None:
                facts.add(
                    Record(name, frames.LIFECYCLE, 2, last_ms, {"what": "end", "state": end, "signal": 9})
                )
            joining.append(WriterRegistration(uid, name, pid=7, interval_s=interval_s, started_ms=started_ms))
            signs.append(last_ms)
            ends.append(end)
    writers = [writer.writer_id for writer in metadata_store.writers.join(joining, T0)]
    metadata_store.writers.record_heartbeats(
        [WriterHeartbeat(writer, ms, ms) for writer, ms in zip(writers, signs, strict=True)]
    )
    metadata_store.writers.record_ends(
        [
            WriterEnd(w, Ending(end, signal=9), ms)
            for w, ms, end in zip(writers, signs, ends, strict=True)
            if end
        ]
    )
    for uid, facts in by_uid.items():
        expected, run_row = facts.run(now_ms), metadata_store.runs.find(uid, now_ms)
        assert run_row is not None
        assert run_row.ending == expected.ending
        assert run_row.last_ms == max(writer.last_ms for writer in facts.writers.values())
        for name in ("started_ms", "ended_ms", "duration_ms"):
            assert getattr(run_row, name) == getattr(expected, name)
        seen = hosts(metadata_store.writers.of_runs([run_row.id])[run_row.id], now_ms)
        assert seen == expected.hosts
