"""Lists of runs with filters, columns and groups: a store answers as journals do."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.server.http import cached_read
from runvitals.server.library.stored.statistics_updater import StatisticsUpdater
from runvitals.server.runs.routes import models, run_list_models
from runvitals.server.runs.storage.sections import SectionUpdate
from tests.readers.journals.journals import T0, Monitor, Trainer
from tests.server.client import Client
from tests.server.stored_runs import StoredServer

HOUR_MS = 3_600_000


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredServer]:
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    server = StoredServer(tmp_path / "server")
    yield server
    server.close()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, StoredServer]]:
    """A local server and a shared one with the same four runs, which tests do not change."""
    folder = tmp_path_factory.mktemp("runs")
    _run(folder, "a", 0, {"lr": 0.1, "model": "resnet50"}, gpu=(10.0, 30.0), tags=["baseline", "best"])
    _run(folder, "b", 1, {"lr": 0.01, "model": "vit"}, gpu=(80.0, 100.0), state="failed", exit_code=1)
    about = {"name": "Debug run", "notes": "only a Debug\nrun", "group": "sweep"}
    _run(folder, "c", 2, {"lr": "high"}, gpu=None, host="node2", project="other", **about)
    _run(folder, "d", 3, {"lr": 0.1}, gpu=(50.0, 60.0), host="node2", state="crashed", signal=9)
    server = StoredServer(folder / "server")
    for run_id in "abcd":
        server.take(folder, run_id)
    StatisticsUpdater(server.store, server.metadata_store, lambda: server.now_ms).update()
    yield Client(folder), server
    server.close()


def _run(
    folder: Path,
    run_id: str,
    number: int,
    config: dict[str, Any],
    gpu: tuple[float, float] | None,
    state: str = "finished",
    host: str = "node1",
    project: str = "digits",
    exit_code: int | None = 0,
    signal: int | None = None,
    **about: Any,
) -> None:
    start_ms = T0 + number * 60_000
    monitor = Monitor(folder, run_id, host=host, start_ms=start_ms, project=project)
    monitor.info(start_ms, config=config, run=about)
    trainer = Trainer(folder, run_id, host=host, start_ms=start_ms, project=project)
    for second in range(10 * (number + 1)):
        time_ms = start_ms + second * 1000
        values = {"cpu": float(second)}
        if gpu is not None:
            values |= {"gpu.0.gpu": gpu[0], "gpu.1.gpu": gpu[1], "gpu.0.powerWatts": 360.0}
        monitor.sample(time_ms, values)
        trainer.log(time_ms, second, loss=1.0 / (second + 1 + number))
    trainer.close()
    monitor.end(
        start_ms + 10_000 * (number + 1), state, exit_code=None if signal else exit_code, signal=signal
    )


def same(both: tuple[Client, StoredServer], path: str, **params: Any) -> Any:
    local, server = both
    mine, theirs = local.ask(path, **params), server.ask(path, **params)
    for response in (mine, theirs):
        response.pop("next", None)
    assert _rounded(theirs) == _rounded(mine)
    return mine


def _rounded(value: Any) -> Any:
    """Means are added up in another order."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "abcd"),
        ("state:failed,crashed", "bd"),
        ("-state:failed,crashed", "ac"),
        ("tag:baseline", "a"),
        ("tag:b*", "a"),
        ("-tag:*", "bcd"),
        ("host:node2", "cd"),
        ("host:node*", "abcd"),
        ("host:Node2", ""),
        ("project:other", "c"),
        ("project:d*,other", "abcd"),
        ("entity:main", ""),
        ("user:ada", ""),
        ("-user:ada", "abcd"),
        ("group:sweep", "c"),
        ('group:""', "abd"),
        ("id:a,c", "ac"),
        ("name:debug", "c"),
        ("name:DEB*N", "c"),
        ("name=debug", ""),
        ("note:debug", "c"),
        ('note:"Debug\\nrun"', "c"),
        ("-note:debug", "abd"),
        ("config.lr>=0.1", "ad"),
        ("-config.lr>=0.1", "bc"),
        ("config.lr:0.1,high", "acd"),
        ("config.model:res*", "a"),
        ("cfg.lr<0.05", "b"),
        ("summary.loss<0.05", "bcd"),
        ("duration>15s", "bcd"),
        ("-duration>15s", "a"),
        ("started>=2025-10-09T08:54:20Z", "bcd"),
        ("exit_code!=0", "b"),
        ("-exit_code!=0", "acd"),
        ("exit_code=0,1", "abc"),
        ("signal:9", "d"),
        ("gpu.util<60", "ad"),
        ("-gpu.util<60", "bc"),
        ("gpu.util.max>=60", "bd"),
        ("system.gpu.min:10", "a"),
        ("cpu>10", "cd"),
        ("energy>=1.5", "bd"),
        ('"debug run"', "c"),
        ("debug -sweep", ""),
        ("resnet", "a"),
        ("-resnet", "bcd"),
        ("config.lr=0.1 -host:node1", "d"),
    ],
)
def test_filters(both: tuple[Client, StoredServer], text: str, expected: str) -> None:
    response = same(both, "runs", filter=text, sort="id", descending=False)
    assert ("".join(run["id"] for run in response["runs"]), response["total"]) == (expected, len(expected))


def test_a_wrong_filter_names_the_term(both: tuple[Client, StoredServer]) -> None:
    for client in both:
        response = client.get("/api/v1/runs", params={"filter": "tag:x stat:failed"})
        assert response.status_code == 422
        assert response.json()["fields"]["filter"].startswith("'stat:failed': unknown name 'stat'; expected")
        for path in ("fields", "latest", "runs/groups", "runs.csv", "fields/values"):
            assert client.get(f"/api/v1/{path}", params={"filter": "stat:x"}).status_code == 422


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("-config.lr,id", "adbc"),
        ("config.lr,-id", "bdac"),
        ("project,-started_ms", "dbac"),
        ("-system.gpu,id", "bdac"),
        ("config.model,-state,id", "abcd"),
        ("state,-duration_ms", "dbca"),
        ("-config.lr,-summary.loss,name,id", "adbc"),
    ],
)
@pytest.mark.parametrize("limit", [1, 3])
def test_several_sort_keys(both: tuple[Client, StoredServer], sort: str, expected: str, limit: int) -> None:
    for client in both:
        pages, after = "", None
        for _ in range(5):
            page = client.ask("runs", sort=sort, limit=limit, **({"after": after} if after else {}))
            pages += "".join(run["id"] for run in page["runs"])
            after = page["next"]
            if after is None:
                break
        assert pages == expected


def test_columns_and_sparklines(both: tuple[Client, StoredServer]) -> None:
    columns = ["config.lr", "cfg.model", "summary.loss", "system.gpu", "gpu.util.max", "system.energy"]
    response = same(
        both, "runs", columns=columns, sparklines=["loss", "gpu.*.gpu"], sort="id", descending=False
    )
    models.RunPageSchema.model_validate({**response, "next": None})
    first, _, third, _ = response["runs"]
    assert first["columns"] == {
        "config.lr": 0.1,
        "cfg.model": "resnet50",
        "summary.loss": 0.1,
        "system.gpu": 20.0,
        "gpu.util.max": 30.0,
        "system.energy": pytest.approx(1.0),
    }
    assert third["columns"]["system.gpu"] is None
    assert third["columns"]["cfg.model"] is None
    assert set(first["sparklines"]["gpu.*.gpu"]) == {20.0}
    assert len(first["sparklines"]["gpu.*.gpu"]) > 5
    assert first["sparklines"]["loss"][0] > first["sparklines"]["loss"][-1]
    assert third["sparklines"]["gpu.*.gpu"] == []
    assert all(len(line) <= 40 for run in response["runs"] for line in run["sparklines"].values())


def test_power_in_doubt_counts_in_no_statistic(tmp_path: Path, server: StoredServer) -> None:
    bogus = {"cpu": 5.0, "gpu.0.powerWatts": 588.4, "gpu.0.powerSuspect": 1.0}
    monitor = Monitor(tmp_path, "a")
    for second in range(60):
        monitor.sample(T0 + second * 1000, bogus if second < 30 else {"cpu": 5.0, "gpu.0.powerWatts": 36.0})
    monitor.end(T0 + 60_000)
    other = Monitor(tmp_path, "b")
    for second in range(60):
        other.sample(T0 + second * 1000, bogus)
    other.end(T0 + 60_000)
    for run_id in "ab":
        server.take(tmp_path, run_id)
    StatisticsUpdater(server.store, server.metadata_store, lambda: server.now_ms).update()
    columns = ["system.energy", "system.gpu_power", "system.gpu_power.max"]
    response = same((Client(tmp_path), server), "runs", columns=columns, sort="id", descending=False)
    first, second_run = (run["columns"] for run in response["runs"])
    assert first == {
        "system.energy": pytest.approx(36.0 * 30 / 3600),
        "system.gpu_power": 36.0,
        "system.gpu_power.max": 36.0,
    }
    assert set(second_run.values()) == {None}, "unknown, not 0"


def test_a_gap_in_a_sparkline_is_null(tmp_path: Path, server: StoredServer) -> None:
    monitor = Monitor(tmp_path)
    for second in (*range(10), *range(30, 40)):
        monitor.sample(T0 + second * 1000, {"cpu": float(second >= 30)})
    monitor.end(T0 + 40_000)
    server.take(tmp_path)
    line = same((Client(tmp_path), server), "runs", sparklines="cpu")["runs"][0]["sparklines"]["cpu"]
    assert (line[0], line[-2]) == (0.0, 1.0)
    assert line.index(None) < line.index(1.0)
    assert set(line[:3]) == {0.0}


def test_groups(both: tuple[Client, StoredServer]) -> None:
    columns = ["summary.loss", "gpu.util"]
    response = same(both, "runs/groups", by=["host"], columns=columns, sort="-runs,host")
    run_list_models.RunGroupsSchema.model_validate({**response, "next": None})
    assert [(group["values"], group["runs"], group["states"]) for group in response["groups"]] == [
        ({"host": "node1"}, 2, {"finished": 1, "failed": 1}),
        ({"host": "node2"}, 2, {"finished": 1, "crashed": 1}),
    ]
    assert response["groups"][0]["columns"]["gpu.util"] == {
        "n": 2,
        "min": 20.0,
        "mean": 55.0,
        "max": 90.0,
        "sum": 110.0,
    }
    assert response["groups"][1]["columns"]["gpu.util"] == {
        "n": 1,
        "min": 55.0,
        "mean": 55.0,
        "max": 55.0,
        "sum": 55.0,
    }
    assert response["groups"][0]["started_ms"] == [T0, T0 + 60_000]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ((), [({}, 4)]),
        (("project",), [({"project": "digits"}, 3), ({"project": "other"}, 1)]),
        (("tag",), [({"tag": "baseline"}, 1), ({"tag": "best"}, 1), ({"tag": None}, 3)]),
        (("group", "state"), None),
        (
            ("cfg.lr",),
            [({"cfg.lr": 0.01}, 1), ({"cfg.lr": 0.1}, 2), ({"cfg.lr": "high"}, 1)],
        ),
        (("user",), [({"user": None}, 4)]),
        (("gpu.util",), None),
    ],
)
def test_what_runs_are_grouped_by(
    both: tuple[Client, StoredServer], by: tuple[str, ...], expected: Any
) -> None:
    order = ",".join(by) or "runs"
    response = same(both, "runs/groups", by=list(by), sort=order)
    if expected is not None:
        assert [(group["values"], group["runs"]) for group in response["groups"]] == expected
    assert response["total"] == len(response["groups"])


def test_groups_come_in_pages(both: tuple[Client, StoredServer]) -> None:
    for client in both:
        pages = []
        after: dict[str, str] = {}
        for _ in range(4):
            page = client.ask("runs/groups", by="cfg.lr", sort="cfg.lr", limit=1, **after)
            pages.append(page["groups"][0]["values"]["cfg.lr"])
            if page["next"] is None:
                break
            after = {"after": page["next"]}
        assert pages == [0.01, 0.1, "high"]


@pytest.mark.parametrize(
    ("path", "params", "field"),
    [
        ("runs/groups", {"by": "colour"}, "by"),
        ("runs/groups", {"columns": "loss"}, "columns"),
        ("runs", {"columns": "loss"}, "columns"),
        ("runs", {"sparklines": "loss", "limit": 201}, "sparklines"),
        ("runs.csv", {"sparklines": "loss"}, "sparklines"),
    ],
)
def test_unknown_names_are_rejected(
    both: tuple[Client, StoredServer], path: str, params: dict[str, Any], field: str
) -> None:
    for client in both:
        response = client.get(f"/api/v1/{path}", params=params)
        assert (response.status_code, list(response.json()["fields"])) == (422, [field])


def test_an_unknown_order_of_groups_is_rejected(both: tuple[Client, StoredServer]) -> None:
    for client in both:
        response = client.get("/api/v1/runs/groups", params={"by": "host", "sort": "colour"})
        assert response.status_code == 422
        assert "cannot order groups by sort=colour; expected one of host, runs, started_ms" in response.text


def test_runs_as_csv(both: tuple[Client, StoredServer], tmp_path: Path) -> None:
    tables = []
    for client in both:
        params = {"filter": "host:node2", "columns": ["config.lr", "system.gpu"], "sort": "id"}
        response = client.get("/api/v1/runs.csv", params=params)
        assert response.headers["content-type"].startswith("text/csv")
        tables.append(response.text.splitlines())
    assert tables[0] == tables[1]
    header, first, second = tables[0]
    assert header.endswith("duration_ms,author,hosts,config.lr,system.gpu")
    assert first.startswith("d,d,,digits,,,,crashed,,9,")
    assert first.endswith(",node2,0.1,55.0")
    assert second.endswith(",node2,high,")


def test_cells_of_a_table_are_no_formulas(tmp_path: Path, server: StoredServer) -> None:
    monitor = Monitor(tmp_path)
    monitor.info(T0, config={"x": "=1+1"}, run={"name": "@SUM(A1)", "tags": ["-x"]})
    monitor.end(T0 + 5)
    server.take(tmp_path)
    for client in (Client(tmp_path), server):
        text = client.get("/api/v1/runs.csv", params={"columns": "config.x"}).text
        cells = text.splitlines()[1].split(",")
        assert ("'@SUM(A1)" in cells, "'-x" in cells, cells[-1]) == (True, True, "'=1+1")


def test_names_and_values_for_completion(both: tuple[Client, StoredServer]) -> None:
    for client in both:
        response = client.ask("fields/values")
        run_list_models.FieldChoicesSchema.model_validate(response)
        choices = {choice["name"]: (choice["kind"], choice["values"]) for choice in response["fields"]}
        assert len(choices) == len(response["fields"])
        assert choices["project"] == ("text", ["digits", "other"])
        assert sorted(choices["host"][1]) == ["node1", "node2"]
        assert choices["config.lr"] == ("number", [0.1, 0.01])
        assert sorted(choices["config.model"][1]) == ["resnet50", "vit"]
        assert "crashed" in choices["state"][1]
        assert choices["duration"][0] == "duration"
        assert choices["system.tpu.max"] == ("number", [])
        narrowed = {
            field["name"]: field["values"] for field in client.ask("fields/values", filter="id:c")["fields"]
        }
        assert narrowed["project"] == ["other"]


def test_statistics_follow_a_running_run(tmp_path: Path, server: StoredServer) -> None:
    updater = StatisticsUpdater(server.store, server.metadata_store, lambda: server.now_ms)
    monitor = Monitor(tmp_path)
    monitor.sample(T0, {"cpu": 10.0})
    seen = server.take(tmp_path)
    updater.update()
    assert server.ask("runs", columns="cpu")["runs"][0]["columns"] == {"cpu": 10.0}
    monitor.sample(T0 + 1000, {"cpu": 30.0})
    seen = server.take(tmp_path, after=seen)
    updater.update()
    assert server.ask("runs", columns="cpu")["runs"][0]["columns"] == {"cpu": 10.0}, "a minute has not passed"
    monitor.sample(T0 + 61_000, {"cpu": 20.0})
    seen = server.take(tmp_path, after=seen)
    updater.update()
    assert server.ask("runs", columns="cpu")["runs"][0]["columns"] == {"cpu": 20.0}
    monitor.sample(T0 + 62_000, {"cpu": 60.0})
    monitor.end(T0 + 62_000)
    server.take(tmp_path, after=seen)
    updater.update()
    assert server.ask("runs", columns="cpu")["runs"][0]["columns"] == {"cpu": 30.0}, (
        "at once when it has ended"
    )


def test_statistics_of_runs_are_updated_some_at_a_time(tmp_path: Path, server: StoredServer) -> None:
    for number in range(5):
        monitor = Monitor(tmp_path, f"run{number}")
        monitor.sample(T0, {"cpu": 1.0})
        monitor.end(T0 + 1)
        server.take(tmp_path, f"run{number}")
    seconds = itertools.count()
    updater = StatisticsUpdater(
        server.store, server.metadata_store, lambda: server.now_ms, lambda: float(next(seconds))
    )
    counts = []
    for _ in range(4):
        updater.update()
        counts.append(server.ask("runs", filter="cpu=1")["total"])
    assert counts[0] < 5
    assert counts == sorted(counts)
    assert counts[-1] == 5


def test_facts_that_change_later_keep_the_statistics(tmp_path: Path, server: StoredServer) -> None:
    _run(tmp_path, "a", 0, {"lr": 0.1}, gpu=(10.0, 30.0))
    server.take(tmp_path, "a")
    StatisticsUpdater(server.store, server.metadata_store, lambda: server.now_ms).update()
    run = server.metadata_store.runs.find("a", T0)
    assert run is not None
    server.metadata_store.sections.merge([SectionUpdate(run.id, "config", {"lr": 0.5}, T0 + HOUR_MS)])
    (row,) = server.ask("runs", columns=["config.lr", "gpu.util"])["runs"]
    assert row["columns"] == {"config.lr": 0.5, "gpu.util": 20.0}
