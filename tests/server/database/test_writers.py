"""Registration of writers, heartbeats, ends and watched processes."""

from __future__ import annotations

import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runvitals.model.ending import Ending
from runvitals.model.errors import UnknownRun
from runvitals.model.filter import Filter
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import RegisteredWriter, WriterRegistration
from runvitals.server.runs.storage.writers import StoredProcess, WriterEnd, WriterHeartbeat
from tests.patience import PATIENCE_S
from tests.server.database.runs import T0, joined


def project_of(metadata_store: MetadataStore, uid: str) -> str:
    run = metadata_store.runs.find(uid, T0)
    assert run is not None
    return run.project


def test_registration_is_idempotent(metadata_store: MetadataStore) -> None:
    registrations = [
        WriterRegistration("a", "monitor.n.1", "p"),
        WriterRegistration("b", "monitor.n.1", "p"),
        WriterRegistration("a", "train.n.7.1", "p"),
    ]
    first = metadata_store.writers.join(registrations, T0)
    assert first[0].run_id == first[2].run_id != first[1].run_id
    assert len({writer.writer_id for writer in first}) == 3
    assert metadata_store.writers.join([*registrations, *reversed(registrations)], T0 + 1) == [
        *first,
        *reversed(first),
    ]
    assert metadata_store.writers.join([], T0) == []


def test_role_and_host_from_the_name_or_given(metadata_store: MetadataStore) -> None:
    by_name = joined(metadata_store, "abc", writer="train.node1.example.org.4711.19f3a")
    joined(
        metadata_store,
        "abc",
        writer="curl",
        role="client",
        host="laptop",
        pid=1,
        rank=2,
        interval_s=60.0,
        started_ms=5,
    )
    first_writer, two = sorted(
        metadata_store.writers.of_runs([by_name.run_id])[by_name.run_id], key=lambda writer: writer.id
    )
    assert (first_writer.role, first_writer.host, first_writer.pid, first_writer.started_ms) == (
        "train",
        "node1.example.org",
        None,
        T0,
    )
    assert (two.role, two.host, two.pid, two.rank, two.interval_s) == ("client", "laptop", 1, 2, 60.0)
    assert (two.started_ms, two.last_ms, two.heard_ms, two.ending) == (5, 5, T0, None)


def test_monitors_of_a_host_share_a_lane_and_ranks_do_not(metadata_store: MetadataStore) -> None:
    first = joined(metadata_store, "abc", writer="monitor.node1.a")
    again = joined(metadata_store, "abc", writer="monitor.node1.b")
    others = [
        joined(metadata_store, "abc", writer=name)
        for name in ("monitor.node2.a", "train.node1.7.a", "train.node1.8.a")
    ]
    elsewhere = joined(metadata_store, "other", writer="monitor.node1.a")
    assert first.lane_id == again.lane_id == first.writer_id
    assert [writer.lane_id for writer in (*others, elsewhere)] == [
        writer.writer_id for writer in (*others, elsewhere)
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (WriterRegistration("../up", "monitor.n.1"), "invalid run id '../up'"),
        (WriterRegistration("ok", "a/b"), "invalid writer 'a/b'"),
        (WriterRegistration("ok", "w", host="h" * 257), "host 'hhh.*1 to 256 characters"),
        (WriterRegistration("ok", "w", role=""), "role ''"),
        (WriterRegistration("ok", "w", interval_s=0.0), "interval_s 0.0"),
        (WriterRegistration("ok", "w", interval_s=float("nan")), "interval_s nan"),
        (WriterRegistration("ok", "w", rank=2**63), "rank 9223372036854775808"),
        (WriterRegistration("ok", "w", pid=True), "pid True"),
    ],
)
def test_invalid_names(metadata_store: MetadataStore, wrong: WriterRegistration, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        metadata_store.writers.join([WriterRegistration("fine", "w"), wrong], T0)
    assert metadata_store.runs.find("fine", T0) is None


def test_first_writer_determines_the_project(metadata_store: MetadataStore) -> None:
    joined(metadata_store, "abc", project="digits")
    joined(metadata_store, "abc", writer="w2", project="another")
    assert project_of(metadata_store, "abc") == "digits"


def test_run_moves_from_the_default_project_to_a_named_one(metadata_store: MetadataStore) -> None:
    joined(metadata_store, "abc", project=None)
    assert project_of(metadata_store, "abc") == "default"
    joined(metadata_store, "abc", writer="w2", project="digits")
    assert project_of(metadata_store, "abc") == "digits"


def test_run_moved_to_the_default_project_by_a_user_stays(metadata_store: MetadataStore) -> None:
    registered = joined(metadata_store, "abc", project=None)
    metadata_store.sections.merge([SectionUpdate(registered.run_id, "run", {"project": "default"}, T0)])
    joined(metadata_store, "abc", writer="w2", project="digits")
    assert project_of(metadata_store, "abc") == "default"


def test_project_names(metadata_store: MetadataStore) -> None:
    names = ["ünï 📉", "a\0b", "x" * 300, "'; drop table run; --", "half \udc00"]
    for index, name in enumerate(names):
        joined(metadata_store, f"run-{index}", project=name)
    assert [project_of(metadata_store, f"run-{index}") for index in range(5)] == [
        "ünï 📉",
        "a␀b",
        "x" * 256,
        "'; drop table run; --",
        "half �",
    ]


def test_registration_reports_a_run_in_the_trash(metadata_store: MetadataStore) -> None:
    registered = joined(metadata_store, "abc")
    metadata_store.runs.delete([registered.run_id], T0)
    assert joined(metadata_store, "abc") == replace(registered, deleted=True)
    assert joined(metadata_store, "abc", writer="w2").deleted


def test_invalid_ends(metadata_store: MetadataStore) -> None:
    registered = joined(metadata_store, "abc")
    with pytest.raises(ValueError, match="invalid ending 'lost'; expected one of"):
        metadata_store.writers.record_ends([WriterEnd(registered.writer_id, Ending("lost"), T0)])
    with pytest.raises(ValueError, match="exit_code"):
        metadata_store.writers.record_ends(
            [WriterEnd(registered.writer_id, Ending("failed", exit_code=2**70), T0)]
        )
    metadata_store.writers.record_ends(
        [WriterEnd(4711, Ending("failed"), T0), WriterEnd(registered.writer_id, Ending("failed", 3), T0)]
    )
    run = metadata_store.runs.find("abc", T0)
    assert run is not None
    assert run.ending == Ending("failed", 3)


def test_facts_about_a_process_accumulate(metadata_store: MetadataStore) -> None:
    run_id = joined(metadata_store, "abc").run_id
    metadata_store.writers.record_processes(
        [StoredProcess(run_id, "node1", 8, rank=1), StoredProcess(run_id, "node1", 7, rank=0)]
    )
    metadata_store.writers.record_processes([StoredProcess(run_id, "node1", 8, ended_ms=T0, exit_code=1)])
    metadata_store.writers.record_processes(
        [StoredProcess(run_id, "node1", 8, out_of_memory=False), StoredProcess(run_id, "n2", 8)]
    )
    assert metadata_store.writers.processes(run_id) == [
        StoredProcess(run_id, "node1", 7, rank=0),
        StoredProcess(run_id, "node1", 8, rank=1, ended_ms=T0, exit_code=1, out_of_memory=False),
        StoredProcess(run_id, "n2", 8),
    ]
    with pytest.raises(UnknownRun, match="no run with id 4711"):
        metadata_store.writers.record_processes([StoredProcess(4711, "node1", 7)])
    with pytest.raises(ValueError, match="signal"):
        metadata_store.writers.record_processes([StoredProcess(run_id, "node1", 7, signal=2**64)])


EXAMPLES = itertools.count()
NAMES = st.tuples(st.sampled_from("abc"), st.sampled_from(["monitor.n.1", "monitor.n.2", "train.n.7.1"]))


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests=st.lists(st.lists(NAMES, min_size=1, max_size=5), min_size=2, max_size=6))
def test_concurrent_registration(
    metadata_store: MetadataStore, requests: list[list[tuple[str, str]]]
) -> None:
    """There is one of each, regardless of the order in which they are registered."""
    example = next(EXAMPLES)
    joining = [
        [
            WriterRegistration(f"{example}-{run}", writer, f"{example}-{run}", started_ms=T0)
            for run, writer in names
        ]
        for names in requests
    ]
    with ThreadPoolExecutor(len(joining)) as threads:
        results = list(threads.map(lambda group: metadata_store.writers.join(group, T0), joining))
    known: dict[tuple[str, str], RegisteredWriter] = {}
    for group, result in zip(joining, results, strict=True):
        for registration, got in zip(group, result, strict=True):
            assert known.setdefault((registration.run, registration.writer), got) == got
    assert len({registered.writer_id for registered in known.values()}) == len(known)
    by_run = {
        run: {registered.run_id for (name, _), registered in known.items() if name == run} for run, _ in known
    }
    assert all(len(ids) == 1 for ids in by_run.values())
    assert all(metadata_store.runs.count(Filter(project=run), T0) == 1 for run in by_run)
    lanes = {
        (run, registered.lane_id)
        for (run, writer), registered in known.items()
        if writer.startswith("monitor")
    }
    assert len(lanes) == len({run for run, writer in known if writer.startswith("monitor")})


PROCESS = """
import sys
from runvitals.server.metadata_store import open_metadata_store
from runvitals.server.runs.storage.writer_registration import WriterRegistration
with open_metadata_store(sys.argv[1]) as metadata_store:
    for place in range(20):
        joined = metadata_store.writers.join(
            [WriterRegistration(f"run-{place}", f"monitor.{sys.argv[2]}.1", "shared")], 1000
        )
        print(joined[0].run_id, metadata_store.metrics.ids([f"key.{place}"])[f"key.{place}"])
"""


def test_two_servers_share_a_metadata_store(address: str) -> None:
    """Processes that open it, bring it to the newest revision, and write, all at once."""
    command = [sys.executable, "-c", PROCESS, address]
    servers = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in ("n1", "n2")]
    output = [server.communicate(timeout=PATIENCE_S)[0] for server in servers]
    assert [server.returncode for server in servers] == [0, 0]
    assert output[0] == output[1]
    assert len(output[0].splitlines()) == 20


def test_concurrent_writers_of_one_run_keep_each_others_changes(metadata_store: MetadataStore) -> None:
    """Hosts of one run are heard from and end in threads of their own; the run's row knows of all."""
    writers = metadata_store.writers.join(
        [WriterRegistration("abc", f"monitor.node{n}.1") for n in range(6)], T0
    )

    def live(number: int) -> None:
        writer_id = writers[number].writer_id
        for beat in range(4):
            metadata_store.writers.record_heartbeats(
                [WriterHeartbeat(writer_id, T0 + 1000 * beat, T0 + 1000 * beat + number)]
            )
        if number:
            metadata_store.writers.record_ends(
                [WriterEnd(writer_id, Ending("crashed" if number == 3 else "finished"), T0)]
            )

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(live, range(6)))
    run = metadata_store.runs.find("abc", T0 + 4000)
    assert run is not None
    assert (run.state, run.last_ms) == ("running", T0 + 3005)
    later = metadata_store.runs.find("abc", T0 + 14_000)
    assert later is not None
    assert later.state == "crashed"
