"""The API over journals on disk."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runvitals.server.api import models
from tests.query.journals import T0, Monitor, Trainer, Training
from tests.server.client import Client


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return Client(tmp_path)


def test_projects(tmp_path: Path, client: Client) -> None:
    Monitor(tmp_path, "a", project="digits").end(T0 + 1)
    Monitor(tmp_path, "b", project="other", start_ms=T0 + 1000).end(T0 + 2000)
    Monitor(tmp_path, "c", project="digits", start_ms=client.now_ms)
    assert client.ask("projects") == [
        {"name": "digits", "runs": 2, "running": 1, "newest_ms": client.now_ms},
        {"name": "other", "runs": 1, "running": 0, "newest_ms": T0 + 1000},
    ]


def test_runs_are_filtered_by_project_and_state(tmp_path: Path, client: Client) -> None:
    Monitor(tmp_path, "a").end(T0 + 1, "failed", exit_code=2)
    Monitor(tmp_path, "b", start_ms=T0 + 1).end(T0 + 2, "finished", exit_code=0)
    Monitor(tmp_path, "c", start_ms=T0 + 2, project="other")
    assert [run["id"] for run in client.ask("runs")["runs"]] == ["c", "b", "a"]
    assert [run["id"] for run in client.ask("runs", project="digits")["runs"]] == ["b", "a"]
    assert [run["id"] for run in client.ask("runs", state=["failed", "lost"])["runs"]] == ["c", "a"]
    models.RunPage.model_validate(client.ask("runs"))


def test_pages_of_runs_are_stable_while_runs_start(tmp_path: Path, client: Client) -> None:
    for i in range(5):
        Monitor(tmp_path, f"run{i}", start_ms=T0 + i // 2)  # some started in the same millisecond
    first = client.ask("runs", limit=2)
    assert ([run["id"] for run in first["runs"]], first["total"]) == (["run4", "run2"], 5)
    Monitor(tmp_path, "new", start_ms=client.now_ms)
    seen, following = [], first["next"]
    while following:
        page = client.ask("runs", limit=2, after=following)
        seen += [run["id"] for run in page["runs"]]
        following = page["next"]
    assert seen == ["run3", "run0", "run1"]


def test_rows_have_the_newest_values_of_chosen_keys(tmp_path: Path, client: Client) -> None:
    Monitor(tmp_path).sample(
        T0, {"cpu": 5.0, "gpu.0.gpu": 50.0, "gpu.0.temp": 60.0, "memory_percent": math.nan}
    )
    (row,) = client.ask("runs")["runs"]
    assert row["last"] == {"node1": {"cpu": 5.0, "gpu.0.gpu": 50.0, "memory_percent": None}}
    (row,) = client.ask("runs", last="gpu.*.temp")["runs"]
    assert row["last"] == {"node1": {"gpu.0.temp": 60.0}}


def test_one_run(tmp_path: Path, client: Client) -> None:
    training = Training(tmp_path)
    training.monitor.event(T0 + 5, "alert", "warning", "hot", value=math.inf)
    training.advance(2)
    training.end("crashed", signal=9, out_of_memory=True)
    run = client.ask("runs/abc")
    models.RunDetail.model_validate(run)
    assert (run["state"], run["signal"], run["out_of_memory"]) == ("crashed", 9, True)
    assert run["sources"]["node1"]["energy"]["state"] == "absent"
    assert run["events"][0]["data"] == {"value": None}
    assert run["events"] == client.ask("runs/abc/events")


def test_series_say_what_they_are(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    monitor.sample(T0, {"disk.in": 0.0, "my own.thing": 1.0})
    monitor.sample(T0 + 1000, {"disk.in": 3.0, "my own.thing": math.nan})
    found = {series["key"]: series for series in client.ask("runs/abc/series")}
    assert list(found) == ["disk.in", "disk.readMBps", "my own.thing"]
    rate = found["disk.readMBps"]
    assert (rate["unit"], rate["kind"], rate["subject"], rate["chart"]) == (
        "MiB/s",
        "rate",
        "Disk",
        "Disk I/O",
    )
    assert (rate["n"], rate["first_ms"], rate["last"]) == (1, T0 + 1000, 3.0)
    assert (found["disk.in"]["min"], found["disk.in"]["max"]) == (0.0, 3.0)
    assert (found["my own.thing"]["subject"], found["my own.thing"]["last"]) == ("Other", 1.0)
    for series in found.values():
        models.SeriesInfo.model_validate(series)


def test_metrics_are_the_samples_where_they_fit(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    for i in range(4):
        slow = {"disk./.usagePercent": 50.0 + i} if i % 2 == 0 else {}
        monitor.sample(T0 + i * 1000, {"cpu": 0.1 * i if i != 2 else math.nan, "cpu.mean": 1.0, **slow})
    found = client.ask("runs/abc/metrics", keys=["cpu*", "disk*"])
    models.Metrics.model_validate(found)
    assert (found["resolution"], found["bucket_ms"], found["t0"], found["t1"]) == ("raw", None, T0, T0 + 3000)
    assert found["groups"] == [
        {
            "host": "node1", "role": "monitor", "t": [T0, T0 + 1000, T0 + 2000, T0 + 3000], "n": None,
            "series": {"cpu": [0.0, 0.1, None, 0.30000000000000004], "cpu.mean": [1.0] * 4},
            "min": None, "max": None,
        },
        {
            "host": "node1", "role": "monitor", "t": [T0, T0 + 2000], "n": None,
            "series": {"disk./.usagePercent": [50.0, 52.0]}, "min": None, "max": None,
        },
    ]  # fmt: skip


def test_metrics_are_buckets_where_there_are_more(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    for i in range(100):
        monitor.sample(T0 + i * 1000, {"cpu": float(i), "disk.in": float(i), "memory_percent": float(i)})
    found = client.ask("runs/abc/metrics", max_points=10)
    models.Metrics.model_validate(found)
    assert (found["resolution"], found["bucket_ms"]) == ("buckets", 10_000)
    (group, rate) = found["groups"]  # the rate has one sample less
    assert group["t"][:2] == [T0, T0 + 10_000]
    assert group["n"] == [10] * 10
    assert (group["min"]["cpu"][1], group["series"]["cpu"][1], group["max"]["cpu"][1]) == (10.0, 14.5, 19.0)
    assert group["series"]["disk.in"][1] == 19.0  # of a counter the last counts
    assert group["series"]["memory_percent"][1] == 19.0  # of memory the highest
    assert rate["series"]["disk.readMBps"] == [1.0] * 10

    raw = client.ask("runs/abc/metrics", keys="cpu", max_points=10, resolution="raw")
    assert raw["groups"][0]["series"]["cpu"] == [float(i) for i in range(100)]


def test_metrics_of_a_stretch_of_time_and_of_one_host(tmp_path: Path, client: Client) -> None:
    for host in ("a", "b"):
        monitor = Monitor(tmp_path, host=host)
        for i in range(10):
            monitor.sample(T0 + i * 1000, {"cpu": float(i)})
    found = client.ask("runs/abc/metrics", t0=T0 + 2000, t1=T0 + 4000, host="b")
    (group,) = found["groups"]
    assert (group["host"], group["series"]["cpu"]) == ("b", [2.0, 3.0, 4.0])
    empty = client.ask("runs/abc/metrics", t0=T0 + 50_000)
    assert (empty["groups"], empty["t0"], empty["t1"]) == ([], T0 + 50_000, T0 + 50_000)


def test_more_than_an_answer_holds_is_refused(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runvitals.server.series.MAX_RAW_VALUES", 50)
    training = Training(tmp_path)
    training.advance(10)
    response = client.get("/api/v1/runs/abc/metrics?resolution=raw")
    assert response.status_code == 422
    assert "one answer holds 50: ask for fewer keys or a shorter time" in response.json()["error"]
    client.ask("runs/abc/metrics", resolution="raw", keys="cpu")


def test_what_was_logged_by_each_rank(tmp_path: Path, client: Client) -> None:
    first, second = Trainer(tmp_path, rank=0), Trainer(tmp_path, pid=4712, rank=1)
    for step in range(3):
        first.log(
            T0 + step, step, loss=1.0 / (step + 1), text="no number", **({"eval": 0.5} if step == 2 else {})
        )
    second.log(T0, 7, loss=math.nan)
    found = client.ask("runs/abc/history")
    models.Logged.model_validate(found)
    assert [(group["rank"], group["step"], group["series"]) for group in found["groups"]] == [
        (0, [0.0, 1.0, 2.0], {"loss": [1.0, 0.5, 1 / 3]}),
        (0, [2.0], {"eval": [0.5]}),
        (1, [7.0], {"loss": [None]}),
    ]
    (group,) = client.ask("runs/abc/history", keys="eval")["groups"]
    assert group["series"] == {"eval": [0.5]}


def test_what_was_logged_is_put_into_buckets_of_steps(tmp_path: Path, client: Client) -> None:
    trainer = Trainer(tmp_path)
    for step in range(100):
        trainer.log(T0 + step * 10, step, loss=float(step))
    (group,) = client.ask("runs/abc/history", max_points=10)["groups"]
    assert group["step"] == [float(step) for step in range(0, 100, 10)]
    assert group["t"][0] == T0 + 90
    assert (group["min"]["loss"][1], group["series"]["loss"][1], group["max"]["loss"][1]) == (
        10.0,
        14.5,
        19.0,
    )


def test_every_call_that_was_logged(tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer(tmp_path)
    for step in range(100):
        trainer.log(T0 + step * 10, step, loss=float(step))
    (group,) = client.ask("runs/abc/history", max_points=10, resolution="raw")["groups"]
    assert (group["n"], group["series"]["loss"]) == (None, [float(step) for step in range(100)])
    monkeypatch.setattr("runvitals.server.series.MAX_RAW_VALUES", 99)
    response = client.get("/api/v1/runs/abc/history?resolution=raw")
    assert response.status_code == 422
    assert "100 values were logged; one answer holds 99: ask for fewer names" in response.json()["error"]
    client.ask("runs/abc/history")


def test_what_was_printed(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    monitor.printed(T0, "<script>alert(1)</script>\n")
    monitor.printed(T0 + 1, b"\xff\n", stream=2)
    found = client.ask("runs/abc/console")
    models.ConsoleAnswer.model_validate(found)
    assert [(piece["stream"], piece["text"]) for piece in found["pieces"]] == [
        ("stdout", "<script>alert(1)</script>\n"), ("stderr", "�\n"),
    ]  # fmt: skip
    assert not found["cut"]


def test_answers_follow_the_journal(tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runvitals.server.cached_read.FRESH_S", 0.0)
    training = Training(tmp_path)
    training.advance(1)
    assert client.ask("runs/abc/metrics", keys="cpu")["groups"][0]["t"] == [T0]
    training.advance(1)
    assert client.ask("runs/abc/metrics", keys="cpu")["groups"][0]["t"] == [T0, T0 + 1000]


def test_a_deleted_run_is_gone(tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runvitals.server.cached_read.FRESH_S", 0.0)
    monitor = Monitor(tmp_path)
    client.ask("runs/abc")
    Path(monitor.journal.path).unlink()
    (tmp_path / "runs" / "abc").rmdir()
    assert client.get("/api/v1/runs/abc").status_code == 404


def test_the_catalogue(client: Client) -> None:
    rows = {row["key"]: row for row in client.ask("catalogue")}
    assert rows["disk.readMBps"]["of"] == "disk.in"
    assert rows["memory_percent"]["aliases"] == ["memory"]


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("runs/nope", 404, "no run 'nope'"),
        (
            "runs/brave",
            404,
            "no run 'brave'",
        ),  # a beginning is not enough: an address must not change its meaning
        ("runs/..%2Fetc", 404, "there is no /api/v1/runs"),
        ("runs/.hidden", 404, "not allowed"),
        ("runs/%00", 404, "not allowed"),
        ("runs/" + "x" * 200, 422, "at most 128"),
        ("nothing", 404, "there is no /api/v1/nothing; /api/v1/openapi.json describes"),
        ("runs?limit=0", 422, "limit='0': Input should be greater than or equal to 1"),
        ("runs?state=exploded", 422, "'running', 'finished'"),
        ("runs?after=junk", 422, "invalid after='junk'; expected the `next` of a previous page"),
        ("runs?sort=shoe", 422, "cannot sort runs by 'shoe'; expected one of id, name"),
        ("runs?where=lr>1", 422, "where: unknown field 'lr'; expected one of id, name"),
        ("aggregate?metric=disk.readMBps", 422, "over many runs its counter disk.in"),
        ("aggregate?metric=cpu&t0=5&t1=4", 422, "t1 (4) lies before t0 (5)"),
        ("aggregate?metric=cpu&t0=0&bucket=1", 422, "at most 100,000 are allowed"),
        ("runs/brave-otter-1/metrics?max_points=1", 422, "max_points='1'"),
        ("runs/brave-otter-1/metrics?max_points=nan", 422, "valid integer"),
        ("runs/brave-otter-1/metrics?t0=99999999999999999999", 422, "t0="),
        ("runs/brave-otter-1/metrics?t0=5&t1=4", 422, "t1 (4) lies before t0 (5)"),
        ("runs/brave-otter-1/metrics?resolution=fine", 422, "'auto' or 'raw'"),
        ("runs/brave-otter-1/live?after=junk", 422, "expected writer:number"),
    ],
)
def test_a_wrong_call_is_told_what_is_allowed(
    tmp_path: Path, client: Client, path: str, status: int, text: str
) -> None:
    Monitor(tmp_path, "brave-otter-1")
    response = client.get(f"/api/v1/{path}")
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    assert text in response.json()["error"]


def test_other_methods_are_refused(client: Client) -> None:
    response = client.request("DELETE", "/api/v1/runs")
    assert (response.status_code, response.json()) == (
        405,
        {"error": "DELETE /api/v1/runs: only GET is allowed"},
    )


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(
        ["keys", "host", "t0", "t1", "max_points", "resolution", "after", "limit", "state", "last"]
    ),
    value=st.text(max_size=30),
    path=st.sampled_from(
        ["runs", "runs/abc", "runs/abc/metrics", "runs/abc/series", "runs/abc/history", "projects"]
    ),
)
def test_no_parameter_breaks_the_server(
    tmp_path_factory: pytest.TempPathFactory, name: str, value: str, path: str
) -> None:
    directory = tmp_path_factory.getbasetemp() / "fuzzed"
    if not directory.exists():
        training = Training(directory)
        training.advance(5)
        training.end(exit_code=0)
    response = Client(directory).get(f"/api/v1/{path}", params={name: value})
    assert response.status_code in (200, 404, 422), response.text
    json.loads(response.content)


def test_long_answers_are_compressed(tmp_path: Path, client: Client) -> None:
    training = Training(tmp_path)
    training.advance(100)
    response = client.get("/api/v1/runs/abc/metrics", headers={"accept-encoding": "gzip"})
    assert response.headers["content-encoding"] == "gzip"
    assert int(response.headers["content-length"]) < len(response.content) / 2
    plain = client.get("/api/v1/runs/abc/metrics", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.json() == response.json()


def test_the_description_names_every_answer(client: Client) -> None:
    described = client.ask("openapi.json")
    answers = {
        f"{method} {path}": operation["responses"]["200"]["content"]
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    }
    assert answers.pop("get /api/v1/runs/{run}/live").keys() == {"text/event-stream"}
    assert len(answers) >= 18
    for call, content in answers.items():
        schema = content["application/json"]["schema"]
        assert "$ref" in json.dumps(schema) or schema["items"] == {"type": "string"}, call


def test_runs_are_searched_and_sorted(tmp_path: Path, client: Client) -> None:
    for name, lr in (("a", 0.1), ("b", 0.01), ("c", None)):
        trainer = Trainer(tmp_path, name)
        trainer.info(T0, config={"lr": lr, "optimizer": "adamw"}, run={"tags": ["base", name], "name": name})

    def ids(**params: object) -> list[str]:
        return [run["id"] for run in client.ask("runs", **params)["runs"]]

    assert ids(sort="config.lr") == ["a", "b", "c"]  # without a value: last
    assert ids(sort="config.lr", descending=False) == ["b", "a", "c"]
    assert ids(where="config.lr < 0.05") == ["b"]
    assert ids(text="ADAM base", where=["config.lr = 0.1", "name != zzz"]) == ["a"]
    assert ids(tag=["base", "c"]) == ["c"]
    assert ids(deleted=True) == []
    assert client.ask("fields") == ["config.lr", "config.optimizer"]
    first = client.ask("runs", sort="name", descending=False, limit=2)
    second = client.ask("runs", sort="name", descending=False, limit=2, after=first["next"])
    assert [run["id"] for run in second["runs"]] == ["c"]
    wrong = client.get("/api/v1/runs", params={"sort": "state", "after": first["next"]})
    assert "belongs to a list sorted by name" in wrong.json()["error"]


def test_a_machines_own_journals_cannot_be_changed(client: Client) -> None:
    assert client.ask("about")["kind"] == "local"
    for method, path in (("POST", "runs/abc/stop"), ("DELETE", "runs/abc"), ("PATCH", "runs/abc")):
        response = client.request(method, f"/api/v1/{path}", json={})
        assert response.status_code == 405
        assert "a shared one (`runvitals server`) can stop" in response.json()["error"]


def test_a_refusal_repeats_little_of_what_was_asked(client: Client) -> None:
    refused = client.get(f"/api/v1/runs?limit={'9' * 20_000}")
    assert refused.status_code == 422
    assert len(refused.text) < 1000
