"""What is dropped for its age or its size, and when runs in the trash are removed for good."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import numpy as np
import pytest

from runvitals.server.audit.audit_file import AuditFile
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.background.housekeeping import Housekeeping, RetentionPolicy
from runvitals.server.build import ServerOptions, build_server
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.health.self_metrics import SelfMetrics
from runvitals.server.http import cached_read
from runvitals.server.library.stored.statistics_updater import StatisticsUpdater
from runvitals.server.mail.mailer import Mailer
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.server.usage.rollup import UsageRollup
from tests.readers.journals.journals import T0
from tests.server.client import Client
from tests.server.stored_runs import StoredServer

DAY_MS = 86_400_000


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredServer]:
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    server = StoredServer(tmp_path)
    server.now_ms = T0 + 200 * DAY_MS
    yield server
    server.close()


def run(server: StoredServer, name: str, days_ago: int, values: int = 1000) -> int:
    """A run of so long ago, with samples and a summary; its number."""
    start_ms = server.now_ms - days_ago * DAY_MS
    (who,) = server.metadata_store.writers.join(
        [WriterRegistration(name, "curl", "digits", started_ms=start_ms)], start_ms
    )
    t = start_ms + 1000 * np.arange(values, dtype=np.int64)
    server.append(who, ("cpu",), t, np.random.default_rng(1).random((values, 1)))
    server.metadata_store.sections.merge([SectionUpdate(who.run_id, "summary", {"loss": 0.5}, start_ms)])
    server.store.flush()
    return who.run_id


def wait(condition: Callable[[], bool]) -> None:
    ended = threading.Event()
    for _ in range(1000):
        if condition():
            return
        ended.wait(0.02)
    raise AssertionError("it did not come about")


class Forgotten(list[int]):
    def __call__(self, runs: Collection[int]) -> None:
        self += runs


def housekeeping(server: StoredServer, keeping: RetentionPolicy) -> tuple[Housekeeping, Forgotten]:
    forgotten = Forgotten()
    mailer = Mailer(server.metadata_store, SecretBox({"k": bytes(32)}), lambda: server.now_ms, {})
    new = Housekeeping(server.store, server.metadata_store, keeping, forgotten, lambda: server.now_ms, mailer)
    return new, forgotten


def samples(server: StoredServer, name: str) -> int:
    groups = server.ask(f"runs/{name}/metrics", resolution="raw")["groups"]
    return sum(len(group["t"]) for group in groups)


def test_a_run_whose_samples_are_too_old_is_listed_with_its_summary(
    server: StoredServer, caplog: pytest.LogCaptureFixture
) -> None:
    run(server, "old", 120)
    run(server, "new", 10)
    keeper, _ = housekeeping(server, RetentionPolicy(samples_ms=90 * DAY_MS))
    with caplog.at_level(logging.INFO, "runvitals.server"):
        keeper.run_once()
    assert (samples(server, "old"), samples(server, "new")) == (0, 1000)
    assert [(run["id"], run["summary"]) for run in server.ask("runs")["runs"]] == [
        ("new", {"loss": 0.5}),
        ("old", {"loss": 0.5}),
    ]
    for call in ("series", "statistics", "history", "events"):
        server.ask(f"runs/old/{call}")
    assert keeper.totals.samples == 1000
    (line,) = caplog.records
    assert (line.getMessage(), line.fields["samples"]) == ("dropped samples beyond the maximum age", 1000)  # type: ignore[attr-defined]
    exposition = SelfMetrics().exposition(server.store.stats(), keeper.totals)
    assert "runvitals_housekeeping_dropped_samples_total 1000\n" in exposition
    assert f"runvitals_housekeeping_last_success_timestamp_seconds {server.now_ms / 1000}\n" in exposition


def test_the_oldest_samples_beyond_the_maximum_size_are_dropped(server: StoredServer) -> None:
    for number, days_ago in enumerate((100, 60, 5)):
        run(server, f"run{number}", days_ago, 50_000)
    server.store.compact()
    most = server.store.stats().size_bytes * 3 // 4
    keeper, _ = housekeeping(server, RetentionPolicy(size_bytes=most))
    keeper.run_once()
    assert server.store.stats().size_bytes <= most
    assert samples(server, "run0") == 0
    assert samples(server, "run2") == 50_000
    assert keeper.totals.bytes > 0


def test_the_trash_is_emptied_after_some_days(server: StoredServer) -> None:
    number, kept = run(server, "bad", 3), run(server, "good", 3)
    keeper, forgotten = housekeeping(server, RetentionPolicy(trash_ms=30 * DAY_MS))
    assert server.request("DELETE", "/api/v1/runs/bad", json={}).status_code == 200
    server.now_ms += 29 * DAY_MS
    keeper.run_once()
    assert forgotten == []
    assert server.request("POST", "/api/v1/runs/bad/restore", json={}).status_code == 200
    assert samples(server, "bad") == 1000
    server.request("DELETE", "/api/v1/runs/bad", json={})
    server.now_ms += 31 * DAY_MS
    keeper.run_once()
    assert forgotten == [number]
    assert server.request("POST", "/api/v1/runs/bad/restore", json={}).status_code == 404
    assert server.store.stats().runs == 1
    assert server.metadata_store.runs.get([number, kept], server.now_ms).keys() == {kept}
    assert keeper.totals.runs == 1


def test_the_setting_says_how_long_runs_stay_in_the_trash(server: StoredServer) -> None:
    number = run(server, "bad", 3)
    keeper, forgotten = housekeeping(server, RetentionPolicy())
    server.metadata_store.accounts.settings.put({"trash_days": 7}, CLI, server.now_ms)
    server.request("DELETE", "/api/v1/runs/bad", json={})
    server.now_ms += 6 * DAY_MS
    keeper.run_once()
    assert forgotten == []
    server.now_ms += 2 * DAY_MS
    keeper.run_once()
    assert forgotten == [number]


def test_ages_are_checked_once_an_hour(server: StoredServer) -> None:
    keeper, _ = housekeeping(server, RetentionPolicy(samples_ms=90 * DAY_MS))
    keeper.run_once()
    run(server, "old", 120)
    server.now_ms += 30 * 60_000
    keeper.run_once()
    assert samples(server, "old") == 1000
    server.now_ms += 31 * 60_000
    keeper.run_once()
    assert samples(server, "old") == 0


def test_the_names_of_all_threads_are_documented(server: StoredServer, tmp_path: Path) -> None:
    keeper, _ = housekeeping(server, RetentionPolicy())
    serving = build_server(server.store, server.metadata_store, ServerOptions(clock=lambda: server.now_ms))
    clock, audit = (lambda: server.now_ms), server.metadata_store.accounts.audit
    statistics = StatisticsUpdater(server.store, server.metadata_store, clock)
    audit_file = AuditFile(str(tmp_path / "audit.jsonl"), audit, clock)
    usage = UsageRollup(server.store, server.metadata_store, clock)
    serving.services.health.threads += [keeper.thread, statistics.thread, audit_file.thread, usage.thread]
    client = Client(tmp_path)
    client.app = serving
    names = re.findall(r'runvitals_thread_failing\{thread="([^"]+)"', client.get("/metrics").text)
    serving.close()
    guide = (Path(__file__).parents[3] / "docs" / "operations" / "monitoring.md").read_text()
    documented = re.findall(r"`([a-z-]+)`", " ".join(re.findall(r"^\| (`[a-z-]+`.*?) \|", guide, re.M)))
    assert sorted([*names, "store-cold"]) == sorted(documented)  # this one with --cold-storage only


def test_failures_are_reported_and_retried(
    server: StoredServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread continues after any failure."""
    run(server, "old", 120)
    keeper, _ = housekeeping(server, RetentionPolicy(samples_ms=90 * DAY_MS))
    failing = build_server(server.store, server.metadata_store, ServerOptions(clock=lambda: server.now_ms))
    failing.services.health.threads.append(keeper.thread)
    client = Client(tmp_path)
    client.app = failing

    def full(t_ms: int) -> None:
        raise OSError("/data: no space left")

    with monkeypatch.context() as patched:
        patched.setattr(server.store, "drop_before", full)
        with keeper:
            wait(lambda: keeper.thread.problem is not None)
            ready = client.get("/readyz")
            assert ready.status_code == 200
            assert ready.json()["warnings"] == ["housekeeping: /data: no space left"]
            assert 'runvitals_thread_failing{thread="housekeeping"} 1\n' in client.get("/metrics").text
            assert 'runvitals_thread_failing{thread="store-sealer"} 0\n' in client.get("/metrics").text
            patched.undo()
            wait(lambda: keeper.thread.problem is None)
    assert caplog.text.count("thread housekeeping failed and will retry: /data: no space left") == 1
    assert samples(server, "old") == 0
    failing.close()


def test_projects_are_renamed_and_deleted(server: StoredServer) -> None:
    run(server, "a", 2)
    run(server, "b", 1)
    renamed = server.request("PATCH", "/api/v1/projects/digits", json={"name": "hand digits"})
    assert renamed.json() == {"project": "hand digits", "done": "rename", "runs": None}
    assert [project["name"] for project in server.ask("projects")] == ["hand digits"]
    assert server.ask("runs/a")["project"] == "hand digits"
    assert server.request("PATCH", "/api/v1/projects/nope", json={"name": "x"}).status_code == 404
    assert server.request("PATCH", "/api/v1/projects/hand%20digits", json={"name": ""}).status_code == 422
    assert server.request("PATCH", "/api/v1/projects/hand%20digits", json={"name": "a/b"}).status_code == 422
    server.metadata_store.writers.join([WriterRegistration("c", "curl", "other")], server.now_ms)
    conflict = server.request("PATCH", "/api/v1/projects/other", json={"name": "hand digits"})
    assert (conflict.status_code, conflict.json()["error"]) == (
        409,
        "the project 'hand digits' already exists",
    )
    gone = server.request("DELETE", "/api/v1/projects/hand%20digits", json={})
    assert gone.json() == {"project": "hand digits", "done": "delete", "runs": 2}
    assert [run["id"] for run in server.ask("runs")["runs"]] == ["c"]
