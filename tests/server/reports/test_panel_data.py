"""What panels of reports show to their readers."""

from __future__ import annotations

from typing import Any

import pytest

from runvitals.server.reports.panel_runs import NOTHING, UNREADABLE
from runvitals.server.reports.routes import panel_models as models
from tests.server.accounts_server import AccountsServer
from tests.server.reports.documents import LOSS, panel, publish, run_set
from tests.server.reports.runs import record_run


def data(server: AccountsServer, report: str, who: str | None = "eve", **how: Any) -> dict[str, Any]:
    body: dict[str, Any] = server.ask(who, "GET", f"{report}/panels/panel1/data", **how)
    models.PanelData.model_validate(body)
    return body


def values(answer: dict[str, Any], metric: str = "logged:loss") -> dict[str, list[float]]:
    return {line["run"]: line["y"] for group in answer["lines"][metric] for line in group["lines"]}


def test_lines_of_the_runs_that_match(rates: AccountsServer) -> None:
    answer = data(rates, publish(rates, panel(), run_sets=[run_set(filter="config.lr=0.1", sort="name")]))
    assert sorted(values(answer)) == ["run-0", "run-1"]
    assert values(answer)["run-0"] == [1.0, 0.5, 0.25]
    assert (answer["x"], answer["names"]["logged"]) == ("step", ["loss"])
    assert {(run["entity"], run["project"], run["run_set"]) for run in answer["runs"]} == {
        ("vision", "digits", "runs")
    }
    assert (answer["frozen"], answer["missing"], answer["problem"]) == (False, 0, None)
    assert list(answer["lines"]) == ["logged:loss"]


def test_chosen_runs_in_their_order_with_colours(rates: AccountsServer) -> None:
    chosen = run_set(runs=["run-2", "run-0", "run-1"], hidden=["run-1"], colors={"run-2": 5})
    answer = data(rates, publish(rates, panel(), run_sets=[chosen]))
    assert [(run["id"], run["color"]) for run in answer["runs"]] == [("run-2", 5), ("run-0", None)]


def test_patterns_and_samples_of_the_system(rates: AccountsServer) -> None:
    queries = [{"source": "logged", "pattern": "^acc/"}, {"source": "system", "name": "gpu.*.gpu"}]
    answer = data(rates, publish(rates, panel(queries=queries)))
    assert answer["x"] == "relative"  # samples have no steps
    assert set(answer["lines"]) == {"logged:acc/top1", "system:gpu.*.gpu"}
    assert values(answer, "system:gpu.*.gpu")["run-0"] == [20.0, 30.0, 40.0]
    assert [(about["key"], about["unit"]) for about in answer["names"]["system"]] == [("gpu.{i}.gpu", "%")]


def test_groups_are_shown_as_one_run(rates: AccountsServer) -> None:
    answer = data(rates, publish(rates, panel(), run_sets=[run_set(group=["config.lr"])]))
    groups = {run["name"]: run for run in answer["runs"]}
    assert {name: run["members"] for name, run in groups.items()} == {"lr: 0.1": 2, "lr: 0.3": 1}
    lines = {line["run"]: line for group in answer["lines"]["logged:loss"] for line in group["lines"]}
    mean = lines[groups["lr: 0.1"]["id"]]
    assert (mean["y"], mean["min"], mean["max"]) == ([0.95, 0.5, 0.25], [0.9, 0.5, 0.25], [1.0, 0.5, 0.25])


def test_each_device(rates: AccountsServer) -> None:
    queries = [LOSS, {"source": "system", "name": "gpu.*.gpu"}]
    shown = panel(queries=queries, settings={"scope": "devices"}, zoom={"min": 0, "max": 1000})
    report = publish(rates, shown)
    of_run = data(rates, report)["devices"]["run-0"]
    assert {
        key: group["series"][key] for group in of_run["sampled"]["groups"] for key in group["series"]
    } == {
        "gpu.0.gpu": [10.0, 20.0],
        "gpu.1.gpu": [30.0, 40.0],
    }
    assert [group["series"]["loss"] for group in of_run["logged"]["groups"]] == [[1.0, 0.5]]
    zoomed = data(rates, report, params={"x0": 1})["devices"]["run-0"]
    assert [group["series"]["loss"] for group in zoomed["logged"]["groups"]] == [[0.5]]
    assert [group["series"]["gpu.1.gpu"] for group in zoomed["sampled"]["groups"]] == [[40.0]]


def test_the_author_chooses_the_part_that_is_shown(rates: AccountsServer) -> None:
    report = publish(rates, panel(zoom={"min": 1, "max": 2}))
    assert values(data(rates, report))["run-0"] == [0.5, 0.25]
    assert values(data(rates, report, params={"x0": 2}))["run-0"] == [0.25]
    assert values(data(rates, report, params={"x0": 0, "x1": 1}))["run-0"] == [0.5]
    rates.ask("eve", "GET", f"{report}/panels/panel1/data", 422, params={"x0": 2, "x1": 1})


def test_what_may_not_be_read_tells_nothing(rates: AccountsServer) -> None:
    """Not even whether there is such a project, or how many runs were chosen."""
    for entity, project in (("audio", "songs"), ("audio", "nothing"), ("nobody", "songs")):
        for more in ({}, {"runs": ["hidden", "gone"]}, {"group": ["config.lr"]}):
            place = run_set(entity=entity, project=project, **more)
            answer = data(rates, publish(rates, panel(), run_sets=[place], by="bob"), "bob")
            assert answer["problem"] == UNREADABLE
            assert (answer["runs"], answer["missing"], answer["lines"]) == ([], 0, {})


def test_deleted_runs_are_missing(rates: AccountsServer) -> None:
    report = publish(rates, panel(), run_sets=[run_set(runs=["run-0", "run-1"])])
    assert data(rates, report)["missing"] == 0
    rates.ask("bob", "DELETE", "runs/run-0")
    rates.clock.now_ms += 5000
    answer = data(rates, report)
    assert ([run["id"] for run in answer["runs"]], answer["missing"]) == (["run-1"], 1)
    assert answer["problem"] is None
    rates.ask("bob", "DELETE", "runs/run-1")
    rates.clock.now_ms += 5000
    answer = data(rates, report)
    assert (answer["runs"], answer["missing"], answer["problem"]) == ([], 2, UNREADABLE)
    nothing = publish(rates, panel(), run_sets=[run_set(filter="config.lr=7")])
    assert data(rates, nothing)["problem"] == NOTHING


def test_a_renamed_project_is_found(rates: AccountsServer) -> None:
    report = publish(rates, panel())
    rates.ask("ada", "PATCH", "entities/vision/projects/digits", json={"name": "numbers"})
    rates.clock.now_ms += 5000
    answer = data(rates, report)
    assert {run["project"] for run in answer["runs"]} == {"numbers"}
    assert len(values(answer)) == 3


@pytest.mark.parametrize(
    ("settings", "queries", "problem"),
    [
        ({"x": "sideways"}, [LOSS], "expected step"),
        ({"x": 7}, [LOSS], "expected a text"),
        ({}, [{"source": "logged", "pattern": "("}], "regular expression"),
    ],
)
def test_a_wrong_panel_says_what_is_wrong(
    rates: AccountsServer, settings: Any, queries: Any, problem: str
) -> None:
    assert problem in data(rates, publish(rates, panel(queries=queries, settings=settings)))["problem"]


def test_differences_of_the_configuration(rates: AccountsServer) -> None:
    answer = data(rates, publish(rates, panel("config_diff", ()), run_sets=[run_set(sort="id")]))
    [fact] = answer["differences"]["facts"]
    assert (fact["name"], sorted(fact["values"])) == ("lr", [0.1, 0.1, 0.3])
    assert answer["differences"]["statistics"] == []


def test_parallel_coordinates_have_the_numbers_that_are_named(rates: AccountsServer) -> None:
    answer = data(rates, publish(rates, panel("parallel")))
    assert [row["name"] for row in answer["differences"]["statistics"]] == ["summary.loss"]


def test_output_and_findings(rates: AccountsServer) -> None:
    answer = data(rates, publish(rates, panel("console", (), settings={"lines": 1})))
    assert {piece["text"] for run in answer["console"] for piece in run["pieces"]} == {"last line\n"}
    answer = data(rates, publish(rates, panel("findings", ())))
    assert {run["run"] for run in answer["findings"]} == {"run-0", "run-1", "run-2"}


def test_the_importance_of_parameters(rates: AccountsServer) -> None:
    for number in range(12):
        lr = number / 10
        record_run(rates, f"more-{number}", {"loss": [lr]}, config={"lr": lr, "seed": 5 * number % 7})
    answer = data(rates, publish(rates, panel("importance"), run_sets=[run_set(filter="id:more-*")]))
    assert answer["importance"]["runs"] == 12
    assert {parameter["name"] for parameter in answer["importance"]["parameters"]} == {
        "config.lr",
        "config.seed",
    }


def test_only_editors_see_panels_of_the_working_copy(rates: AccountsServer) -> None:
    report = publish(rates, panel())
    blocks = rates.ask("bob", "GET", report)["blocks"]
    blocks[0]["panels"][0]["queries"] = [{"source": "logged", "name": "secret"}]
    rates.ask("bob", "PATCH", report, json={"revision": 1, "blocks": blocks})
    assert list(data(rates, report, "bob")["lines"]) == ["logged:loss"]
    assert list(data(rates, report, "bob", params={"draft": 1})["lines"]) == ["logged:secret"]
    rates.ask("eve", "GET", f"{report}/panels/panel1/data", 403, params={"draft": 1})
    rates.ask("eve", "GET", f"{report}/panels/panel2/data", 404)
    rates.ask("mallory", "GET", f"{report}/panels/panel1/data", 404)
    rates.ask(None, "GET", f"{report}/panels/panel1/data", 401)


def test_runs_are_placed_by_their_fields(rates: AccountsServer) -> None:
    fields = {"metrics": ["summary.loss"], "across": "config.lr"}
    scatter = panel("scatter", panel_id="panel1", settings=fields)
    usual = panel("parallel", (), panel_id="panel2")
    path = publish(rates, scatter, usual)
    placed = rates.ask("eve", "GET", f"{path}/panels/panel1/data")["differences"]
    assert [(row["name"], row["values"]) for row in placed["statistics"]] == [("summary.loss", [0.25] * 3)]
    assert [fact["name"] for fact in placed["facts"]] == ["lr"]
    lines = rates.ask("eve", "GET", f"{path}/panels/panel1/data")["lines"]
    assert lines == {}
    assert rates.ask("eve", "GET", f"{path}/panels/panel2/data")["differences"]["statistics"] == []
