"""A run with damaged samples: the intact ones are served, and every response reports the damage."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import numpy as np
import pytest

from runvitals.server.charts.routes.tables import samples
from runvitals.server.charts.routes.tables.formats import Format
from runvitals.server.charts.routes.tables.responses import IncompleteTable, metrics_table
from runvitals.server.http import cached_read
from runvitals.server.library.run_library import SeriesSelection
from runvitals.server.library.stored import run as stored_run
from runvitals.server.runs.storage.events import StoredEvent
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from tests.server.stored_runs import StoredServer

T0 = 1_790_812_800_000
KEYS = ("cpu", "memory", "network.receivedBytes")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredServer]:
    """A run in chunks of 2,000 s. The oldest chunk of each metric except `memory` is damaged."""
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    server = StoredServer(tmp_path / "server")
    server.now_ms = T0 + 7_000_000
    (who,) = server.metadata_store.writers.join(
        [WriterRegistration("abc", "monitor.node1.1", "digits", started_ms=T0)], T0
    )
    values = np.random.default_rng(1).random((6000, 3)).cumsum(axis=0)
    server.append(who, KEYS, T0 + 1000 * np.arange(6000), values)
    server.append(who, ("lost",), T0 + 1000 * np.arange(2000), values[:2000, :1])
    server.store.flush()
    for metric in (1, 3, 4):
        _damage(tmp_path, metric)
    yield server
    server.close()


def _damage(folder: Path, metric: int, number: int = 0) -> None:
    """Damage a chunk of a metric; number 0 is the oldest."""
    with (
        closing(sqlite3.connect(folder / "server" / "store" / "samples-2026-10.db")) as connection,
        connection,
    ):
        connection.execute(
            "UPDATE data SET data = CAST(substr(data, 1, 40) || x'00ff' AS BLOB) WHERE id = "
            "(SELECT data FROM chunk WHERE metric = ? ORDER BY t0 LIMIT 1 OFFSET ?)",
            (metric, number),
        )


WHAT = (
    "samples of cpu on node1 from 2026-10-01T00:00:00Z to 2026-10-01T00:33:19Z cannot be read: "
    "a chunk: the checksum does not match"
)


def test_series_are_listed(server: StoredServer) -> None:
    response = server.get("/api/v1/runs/abc/series")
    assert response.status_code == 200
    assert {series["key"] for series in response.json()} >= set(KEYS)
    assert WHAT in response.headers["runvitals-problems"]
    assert server.ask("runs/abc/metrics", keys="lost")["groups"] == []


@pytest.mark.parametrize(
    "how", [{"max_points": 500}, {"resolution": "raw"}, {"keys": "cpu", "max_points": 10_000}]
)
def test_intact_samples_are_charted(server: StoredServer, how: dict[str, str]) -> None:
    metrics = server.ask("runs/abc/metrics", **how)
    assert WHAT in metrics["problems"]
    whole = [group for group in metrics["groups"] if "cpu" in group["series"]]
    assert sum(len(group["t"]) for group in whole) > 250


def test_a_chart_of_intact_samples_has_no_problems(server: StoredServer) -> None:
    metrics = server.ask("runs/abc/metrics", keys="memory", resolution="raw")
    assert len(metrics["groups"][0]["t"]) == 6000
    assert metrics["problems"] == []


def test_statistics_cover_readable_samples(server: StoredServer) -> None:
    response = server.get("/api/v1/runs/abc/statistics")
    assert response.status_code == 200
    assert {statistic["key"]: statistic["n"] for statistic in response.json()}["memory"] == 6000
    assert {statistic["key"]: statistic["n"] for statistic in response.json()}["cpu"] == 4000
    assert WHAT in response.headers["runvitals-problems"]


def test_tables_and_the_run_report_damage(server: StoredServer) -> None:
    table = server.get("/api/v1/runs/abc/metrics?format=csv&resolution=raw")
    assert table.status_code == 200
    assert WHAT in server.ask("runs/abc")["problems"]
    for call in ("history", "events", "console"):
        assert server.get(f"/api/v1/runs/abc/{call}").status_code == 200
    assert server.ask("runs")["runs"][0]["id"] == "abc"


def test_the_newest_of_many_events_are_returned_and_older_ones_are_paged(server: StoredServer) -> None:
    (who,) = server.metadata_store.writers.join(
        [WriterRegistration("busy", "monitor.node1.1", started_ms=T0)], T0
    )
    events = [StoredEvent(who.run_id, T0 + n, "marker", text=str(n)) for n in range(12_000)]
    lost = StoredEvent(who.run_id, T0 - 1, "records_lost", data={"count": 7})
    server.metadata_store.events.add([lost, *events])
    run = server.ask("runs/busy")
    assert [event["text"] for event in run["events"]] == [str(n) for n in range(2000, 12_000)]
    assert run["problems"] == ["2,001 older events are left out: /events?skip=10000 returns them"]
    assert run["lost_records"] == 7
    assert [event["text"] for event in server.ask("runs/busy/events", limit=3)] == ["11997", "11998", "11999"]
    older = server.ask("runs/busy/events", skip=10_000)
    assert [event["text"] for event in older] == ["", *(str(n) for n in range(2000))]


def test_very_many_series_are_returned_in_pages(
    server: StoredServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_run, "_MAX_SERIES", 100)
    monkeypatch.setattr(stored_run, "_MAX_NEWEST", 20)
    (who,) = server.metadata_store.writers.join([WriterRegistration("wide", "curl", started_ms=T0)], T0)
    keys = tuple(f"name.{n:04}" for n in range(240))
    for n, key in enumerate(keys):
        server.append(who, (key,), np.array([T0 + n]), np.ones((1, 1)))
    for _ in ("in memory", "sealed"):
        pages = [server.get(f"/api/v1/runs/wide/series?skip={skip}") for skip in (0, 100, 200)]
        assert [key for page in pages for key in (series["key"] for series in page.json())] == list(keys)
        assert (
            pages[0].headers["runvitals-problems"] == "140 more series are left out: select some with `keys`"
        )
        assert "runvitals-problems" not in pages[2].headers
        metrics = server.ask("runs/wide/metrics")
        assert sum(len(group["series"]) for group in metrics["groups"]) == 100
        assert metrics["problems"] == ["140 more series are left out: select some with `keys`"]
        few = server.ask("runs/wide/metrics", keys="name.01*")
        assert sum(len(group["series"]) for group in few["groups"]) == 100
        refused = server.get("/api/v1/runs/wide/statistics")
        assert (refused.status_code, "select some with `keys`" in refused.text) == (422, True)
        assert len(server.ask("runs/wide")["last"]["curl"]) == 20
        wide = next(run for run in server.ask("runs", last="name.000*")["runs"] if run["id"] == "wide")
        assert len(wide["last"]["curl"]) == 10
        assert server.ask("runs/wide/metrics", after=metrics["cursor"])["cursor"] == metrics["cursor"]
        server.store.flush()


FORMS = pytest.mark.parametrize("form", ["csv", "arrow", "parquet"])


@FORMS
@pytest.mark.parametrize("how", ["resolution=raw", "max_points=500", "max_points=10000"])
def test_a_table_lists_unreadable_data_in_a_header(server: StoredServer, form: str, how: str) -> None:
    table = server.get(f"/api/v1/runs/abc/metrics?format={form}&{how}&keys=cpu")
    assert table.status_code == 200
    assert table.headers["runvitals-problems"] == WHAT
    whole = server.get(f"/api/v1/runs/abc/metrics?format={form}&{how}&keys=memory")
    assert "runvitals-problems" not in whole.headers


@FORMS
def test_a_table_with_damage_found_later_is_cut_off_at_the_end(
    server: StoredServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Format
) -> None:
    monkeypatch.setattr(samples, "WINDOW_VALUES", 2000)
    answered = bytearray()

    async def ask() -> None:
        run = await server.app.state.services.library.open("abc")
        selection = SeriesSelection(keys=("memory",))
        table = await metrics_table(run, selection, None, None, None, form, server.now_ms)
        assert "runvitals-problems" not in table.headers
        _damage(tmp_path, 2, 1)
        async for piece in table.body_iterator:
            answered.extend(bytes(piece))

    with pytest.raises(IncompleteTable, match=r"samples of memory on node1 from .* cannot be read"):
        anyio.run(ask)
    if form == "csv":
        assert len(answered.splitlines()) == 1 + 4000
    again = server.get(f"/api/v1/runs/abc/metrics?format={form}&resolution=raw&keys=memory")
    assert "samples of memory on node1" in again.headers["runvitals-problems"]


def test_a_history_table_lists_unreadable_data_in_a_header(server: StoredServer, tmp_path: Path) -> None:
    (who,) = server.metadata_store.writers.join(
        [WriterRegistration("abc", "rank.0.node1.2", "digits", started_ms=T0)], T0
    )
    steps = np.stack([np.arange(3000.0), np.random.default_rng(2).random(3000)], axis=1)
    server.append(who, ("_step", "loss"), T0 + 1000 * np.arange(3000), steps)
    server.store.flush()
    metric = server.metadata_store.metrics.schema(("loss",)).metric_ids[0]
    _damage(tmp_path, metric)
    table = server.get("/api/v1/runs/abc/history?format=csv")
    assert table.status_code == 200
    assert "samples of loss on 0.node1" in table.headers["runvitals-problems"]


@pytest.mark.parametrize("call", ["events", "series"])
def test_a_number_out_of_range_is_rejected(server: StoredServer, call: str) -> None:
    assert server.get(f"/api/v1/runs/abc/{call}?skip={10**20}").status_code == 422
