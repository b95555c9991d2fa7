"""Means of groups of all runs that match a filter, of both libraries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.server.charts.routes import group_models as models
from tests.readers.journals.journals import T0, Monitor, Trainer
from tests.server.access.organisation import ServedOrganisation, served_organisation
from tests.server.client import Client
from tests.server.stored_runs import StoredServer

RATES = {"a": 0.1, "b": 0.1, "c": 0.2, "d": None}
"""The learning rate of each run."""
LEVELS = {"a": 1.0, "b": 3.0, "c": 10.0, "d": 7.0}


def write(folder: Path, run: str, every: int = 1, steps: int = 20, ends: bool = True) -> Trainer:
    """A run whose loss is its level plus the step."""
    monitor, trainer = Monitor(folder, run), Trainer(folder, run)
    rate = RATES.get(run)
    trainer.info(
        T0, run={"project": "digits", "tags": ["x", "y"]}, config={} if rate is None else {"lr": rate}
    )
    for step in range(0, steps, every):
        trainer.log(T0 + step * 1000, step, loss=LEVELS[run] + step)
        monitor.sample(T0 + step * 1000, {"gpu.0.temp": LEVELS[run], "gpu.1.temp": LEVELS[run] + 2})
    if ends:
        trainer.close()
        monitor.end(T0 + steps * 1000)
    return trainer


@pytest.fixture(scope="module", params=["journals", "store"])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Four runs: two with one learning rate, one with another, one with none that logs every third step."""
    folder = tmp_path_factory.mktemp(request.param)
    for run in RATES:
        write(folder, run, every=3 if run == "d" else 1)
    if request.param == "journals":
        yield Client(folder)
        return
    server = StoredServer(folder / "server")
    for run in RATES:
        server.take(folder, run)
    yield server
    server.close()


def groups(client: Client, what: str = "logged", **params: Any) -> dict[str, Any]:
    default = {"keys": ["loss"], "by": ["config.lr"]} if what == "logged" else {"by": ["config.lr"]}
    body: dict[str, Any] = client.ask(f"overlay/groups/{what}", **{**default, **params})
    models.GroupedOverlay.model_validate(body)
    return body


def lines(body: dict[str, Any]) -> dict[Any, dict[str, Any]]:
    """The lines of the only key by the first value of their group."""
    (key,) = body["keys"]
    return {next(iter(body["groups"][line["group"]]["values"].values()), None): line for line in key["lines"]}


def test_a_line_is_the_mean_of_all_runs_of_a_group(runs: Client) -> None:
    body = groups(runs)
    assert [(group["values"], group["runs"]) for group in body["groups"]] == [
        ({"config.lr": 0.1}, 2),
        ({"config.lr": 0.2}, 1),
        ({"config.lr": None}, 1),
    ]
    assert (body["runs"], body["older_runs"], body["unread_runs"], body["left_out_groups"]) == (4, 0, 0, 0)
    line = lines(body)[0.1]
    assert line["x"] == list(range(20))
    assert line["y"] == [2.0 + step for step in range(20)]
    assert line["min"] == [1.0 + step for step in range(20)]
    assert line["max"] == [3.0 + step for step in range(20)]
    assert line["n"] == [2] * 20
    assert line["runs"] == 2


def test_without_names_all_runs_are_one_group(runs: Client) -> None:
    body = groups(runs, by=[])
    assert [(group["values"], group["runs"]) for group in body["groups"]] == [({}, 4)]
    line = lines(body)[None]
    assert line["y"][0] == pytest.approx((1 + 3 + 10 + 7) / 4)


def test_a_run_that_logs_less_often_has_values_between_its_own(runs: Client) -> None:
    line = lines(groups(runs, by=[]))[None]
    assert line["n"] == [4] * 19 + [3], "the last value of one run is at 18"
    assert line["y"][:19] == pytest.approx([21 / 4 + step for step in range(19)])


def test_a_filter_says_which_runs_count(runs: Client) -> None:
    line = lines(groups(runs, filter="config.lr:0.1 -id:b"))[0.1]
    assert (line["runs"], line["y"][0]) == (1, 1.0)


def test_a_run_with_several_tags_is_in_several_groups(runs: Client) -> None:
    body = groups(runs, by=["tag"])
    assert [(group["values"], group["runs"]) for group in body["groups"]] == [
        ({"tag": "x"}, 4),
        ({"tag": "y"}, 4),
    ]
    assert body["runs"] == 4


def test_few_points_are_means_of_nested_buckets(runs: Client) -> None:
    body = groups(runs, points=5)
    assert body["keys"][0]["width"] == 4
    assert lines(body)[0.1]["x"] == [0, 4, 8, 12, 16]
    assert lines(body)[0.1]["y"] == [2 + start + 1.5 for start in range(0, 20, 4)]


def test_a_logarithmic_axis(runs: Client) -> None:
    line = lines(groups(runs, x="step", scale="log"))[0.1]
    assert line["x"][0] == 1.0, "the first step is not positive"
    assert line["x"][-1] == 19.0
    whole = lines(groups(runs, x="step"))[0.1]
    assert (
        dict(zip(line["x"], line["y"], strict=True)).items()
        <= dict(zip(whole["x"], whole["y"], strict=True)).items()
    )
    system = lines(groups(runs, "system", keys=["gpu.{i}.temp"], scale="log"))[0.1]
    assert system["y"] == [pytest.approx(LEVELS["a"] / 2 + LEVELS["b"] / 2 + 1)] * len(system["y"])
    assert system["x"][0] >= 500


def test_a_part_of_the_axis(runs: Client) -> None:
    assert lines(groups(runs, x0=5, x1=8))[0.1]["x"] == [5, 6, 7, 8]


@pytest.mark.parametrize("axis", ["relative", "wall", "metric:loss"])
def test_other_axes(runs: Client, axis: str) -> None:
    body = groups(runs, x=axis, points=1000)
    line = lines(body)[0.2]
    first = {"relative": 0, "wall": T0, "metric:loss": 10}[axis]
    assert line["x"][0] == pytest.approx(first, abs=body["keys"][0]["width"])
    assert line["y"] == [10.0 + step for step in range(20)]


def test_devices_of_a_run_count_as_one(runs: Client) -> None:
    body = groups(runs, "system", keys=["gpu.{i}.temp"], points=50)
    line = lines(body)[0.1]
    assert line["y"] == [3.0] * 20
    assert (line["min"][0], line["max"][0], line["n"][0]) == (2.0, 4.0, 2)


def test_values_that_are_not_finite_do_not_count(tmp_path: Path) -> None:
    for run, values in (("a", [1.0, float("nan"), float("inf"), 4.0]), ("b", [3.0] * 4)):
        trainer = Trainer(tmp_path, run)
        for step, value in enumerate(values):
            trainer.log(T0 + step, step, loss=value)
        trainer.close()
    line = lines(groups(Client(tmp_path), by=[]))[None]
    assert line["y"] == [2.0, 2.5, 3.0, 3.5], "between its finite values a run has a straight line"


def test_values_that_overflow_a_sum_stay_in_their_range(tmp_path: Path) -> None:
    for run in ("a", "b"):
        trainer = Trainer(tmp_path, run)
        trainer.log(T0, 0, loss=1.7e308)
        trainer.close()
    assert lines(groups(Client(tmp_path), by=[]))[None]["y"] == [1.7e308]


def test_a_run_that_goes_on_is_read_again(tmp_path: Path) -> None:
    trainer = write(tmp_path, "a", ends=False)
    client = Client(tmp_path)
    client.now_ms = T0 + 20_000
    body = groups(client)
    assert (body["running"], len(lines(body)[0.1]["x"])) == (1, 20)
    trainer.log(T0 + 20_000, 20, loss=5.0)
    client.app.state.services.library._opened.clear()
    assert len(lines(groups(client))[0.1]["x"]) == 21


def test_runs_that_are_known_are_not_read_again(runs: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    groups(runs, x0=0, x1=3)
    monkeypatch.setattr("runvitals.server.charts.overlay.group_reading.read_logged", None)
    assert lines(groups(runs, x0=0, x1=3))[0.1]["y"] == [2.0, 3.0, 4.0, 5.0]


def test_what_takes_too_long_is_left_out_and_read_by_the_next_request(
    runs: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runvitals.server.charts.overlay.group_reading.READING_S", -1.0)
    unread = [groups(runs, x0=1, x1=2)["unread_runs"] for _ in range(4)]
    assert unread == [3, 2, 1, 0], "each request reads one run at least"


def test_the_newest_runs_count_where_there_are_too_many(
    runs: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runvitals.server.charts.overlay.group_members.MAX_MEMBERS", 2)
    monkeypatch.setattr("runvitals.server.charts.overlay.group_members._RUNS_AT_ONCE", 2)
    body = groups(runs, by=[])
    assert (body["runs"], body["older_runs"], lines(body)[None]["runs"]) == (2, 2, 2)


def test_the_largest_groups_count_where_there_are_too_many(
    runs: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runvitals.server.charts.routes.groups.MAX_SHOWN", 1)
    body = groups(runs)
    assert [group["runs"] for group in body["groups"]] == [2]
    assert (body["left_out_groups"], body["runs"], list(lines(body))) == (2, 2, [0.1])


@pytest.mark.parametrize(
    ("what", "params", "reason"),
    [
        ("logged", {"by": ["colour"]}, "cannot group runs by 'colour'"),
        ("logged", {"by": ["tag"] * 5}, "by"),
        ("logged", {"keys": [f"k{i}" for i in range(21)]}, "keys"),
        ("system", {"keys": ["cpu"], "x": "step"}, "x='step': expected relative or wall"),
        ("logged", {"x0": 2, "x1": 1}, "x1 (1) is before x0 (2)"),
        ("logged", {"filter": "config.lr>"}, "config.lr"),
    ],
)
def test_invalid_requests(runs: Client, what: str, params: dict[str, Any], reason: str) -> None:
    response = runs.get(f"/api/v1/overlay/groups/{what}", params={"keys": ["loss"], **params})
    assert response.status_code == 422, response.text
    assert reason in response.text


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    """A run of each of two teams."""
    with served_organisation(tmp_path_factory.mktemp("organisation")) as served:
        for who, run, entity, value in (("bob", "ours", "vision", 1.0), ("otto", "theirs", "speech", 5.0)):
            sent = {"run": run, "writer": "monitor.h.1", "seq": 1, "project": "p", "entity": entity}
            sent |= {"keys": ["cpu"], "t": [T0], "v": [[value]], "records": []}
            assert served.ask(who, "POST", "/api/v1/ingest", json=sent).status_code == 200
        yield served


@pytest.mark.parametrize("what", ["system", "logged"])
def test_runs_of_others_do_not_count(teams: ServedOrganisation, what: str) -> None:
    path, params = f"/api/v1/overlay/groups/{what}", {"keys": ["cpu"], "by": ["entity"], "project": "p"}
    mine = teams.ask("otto", "GET", path, params=params)
    assert mine.status_code == 200, mine.text
    assert [group["values"] for group in mine.json()["groups"]] == [{"entity": "speech"}]
    assert mine.json()["runs"] == 1
    others = teams.ask("otto", "GET", path, params={**params, "entity": "vision"})
    assert others.status_code == 404 or others.json()["runs"] == 0
    nobody = teams.ask(None, "GET", path, params=params)
    assert nobody.status_code == 401 or nobody.json()["runs"] == 0
