"""Runs: what clients log, read, search, delete and restore."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE_S, eventually
from tests.server.doors.mlflow.conftest import Call
from tests.server.serving import Served

T0 = 1_760_000_000_000


@pytest.fixture
def experiment(call: Call, request: pytest.FixtureRequest) -> str:
    number: str = call("POST", "experiments/create", name=request.node.name)["experiment_id"]
    return number


def created(call: Call, experiment: str, **sent: Any) -> str:
    sent = {"start_time": T0, "user_id": "ada", **sent}
    run: str = call("POST", "runs/create", experiment_id=experiment, **sent)["run"]["info"]["run_id"]
    return run


def metric(key: str, value: Any, timestamp: int = T0, step: int = 0) -> dict[str, Any]:
    return {"key": key, "value": value, "timestamp": timestamp, "step": step}


def history(call: Call, run: str, key: str, **sent: Any) -> list[tuple[Any, int, int]]:
    metrics = call("GET", "metrics/get-history", run_id=run, metric_key=key, **sent)["metrics"]
    return [(point["value"], point["timestamp"], point["step"]) for point in metrics]


@pytest.mark.parametrize("is_known", [False, True], ids=["of no other value", "of a stored value"])
def test_values_of_one_step_that_arrive_at_once_are_all_kept(
    served: Served, call: Call, experiment: str, is_known: bool
) -> None:
    run = created(call, experiment)
    if is_known:
        call("POST", "runs/log-batch", run_id=run, metrics=[metric("loss", -1.0)])
    sent = [float(number % 12) for number in range(24)]  # each value twice, as by a client that tries again

    def log(value: float) -> int:
        url = f"{served.url}/api/2.0/mlflow/runs/log-metric"
        body = {"run_id": run, **metric("loss", value)}
        return httpx.post(url, json=body, timeout=PATIENCE_S).status_code

    with ThreadPoolExecutor(len(sent)) as clients:
        assert set(clients.map(log, sent)) == {200}
    values = sorted(value for value, _, _ in history(call, run, "loss"))
    assert values == sorted({*sent, *([-1.0] if is_known else [])})


def test_a_run(call: Call, experiment: str) -> None:
    tags = [{"key": "mlflow.source.name", "value": "train.py"}]
    run = created(call, experiment, run_name="first", tags=tags)
    params = [
        {"key": "lr", "value": "0.001"},
        {"key": "a.b", "value": "1e-3"},
        {"key": "on", "value": "True"},
    ]
    metrics = [metric("loss", 0.5, T0, 0), metric("loss", 0.25, T0 + 10, 1), metric("acc", 0.9, T0 + 5, 3)]
    assert call("POST", "runs/log-batch", run_id=run, metrics=metrics, params=params) == {}
    assert call("POST", "runs/set-tag", run_id=run, key="mlflow.note.content", value="good") == {}
    found = call("GET", "runs/get", run_id=run)["run"]
    info, data = found["info"], found["data"]
    assert (info["run_name"], info["status"], info["start_time"]) == ("first", "RUNNING", T0)
    assert (info["user_id"], info["experiment_id"], info["lifecycle_stage"]) == ("ada", experiment, "active")
    assert info["artifact_uri"] == f"mlflow-artifacts:/{experiment}/{run}/artifacts"
    assert {tag["key"]: tag["value"] for tag in data["params"]} == {
        "lr": "0.001",
        "a.b": "1e-3",
        "on": "True",
    }
    assert {tag["key"]: (tag["value"], tag["timestamp"], tag["step"]) for tag in data["metrics"]} == {
        "loss": (0.25, T0 + 10, 1),
        "acc": (0.9, T0 + 5, 3),
    }
    tags_found = {tag["key"]: tag["value"] for tag in data["tags"]}
    assert tags_found == {
        "mlflow.source.name": "train.py",
        "mlflow.runName": "first",
        "mlflow.note.content": "good",
    }
    ended = call("POST", "runs/update", run_id=run, status="FINISHED", end_time=T0 + 1000)["run_info"]
    assert (ended["status"], ended["end_time"]) == ("FINISHED", T0 + 1000)


def test_a_value_is_read_back_at_once(call: Call, experiment: str) -> None:
    runs = created(call, experiment), created(call, experiment)
    for key in ("first", "second", "third"):  # new names, also of the second run, where others have them
        for run in runs:
            call("POST", "runs/log-metric", run_id=run, **metric(key, 1.0))
            assert history(call, run, key) == [(1.0, T0, 0)]


def test_what_we_make_of_it(call: Call, experiment: str, served: Served) -> None:
    run = created(call, experiment, run_name="ours")
    call("POST", "runs/log-batch", run_id=run, params=[{"key": "lr", "value": "0.1"}])
    for status, state in (("FAILED", "failed"), ("RUNNING", "running"), ("KILLED", "stopped")):
        call("POST", "runs/update", run_id=run, status=status)
        row = served.metadata_store.runs.find(run, served.app.services.access.clock())
        assert row is not None
        assert row.state == state
    assert served.metadata_store.sections.read([row.id])[row.id].shared["config"] == {"lr": 0.1}


def test_several_steps_at_one_time_and_repeated_requests(call: Call, experiment: str) -> None:
    run = created(call, experiment)
    metrics = [metric("loss", step / 4, T0, step) for step in range(200)]
    for _ in range(3):  # as a client that does not get the answers
        assert call("POST", "runs/log-batch", run_id=run, metrics=metrics) == {}
    assert history(call, run, "loss") == [(step / 4, T0, step) for step in range(200)]


def test_after_a_restart_rows_keep_their_times(call: Call, experiment: str, served: Served) -> None:
    run = created(call, experiment)
    metrics = [metric("loss", float(step), T0, step) for step in range(50)]
    call("POST", "runs/log-batch", run_id=run, metrics=metrics)
    row = served.metadata_store.runs.find(run, served.app.services.access.clock())
    assert row is not None
    served.app.services.mlflow_door().sessions.drop(row.id)
    call("POST", "runs/log-batch", run_id=run, metrics=[*metrics, metric("loss", 9.0, T0, 99)])
    assert [step for _, _, step in history(call, run, "loss")] == [*range(50), 99]


def test_several_values_with_the_same_timestamp_and_step(call: Call, experiment: str, served: Served) -> None:
    run = created(call, experiment)
    sent = [metric("loss", value) for value in (3.0, 1.0, "NaN", 3.0)] + [metric("acc", 0.5)]
    row = served.metadata_store.runs.find(run, served.app.services.access.clock())
    assert row is not None
    for more in ([], [metric("loss", 2.0), metric("acc", 0.25), metric("f1", 1.0)]):
        for _ in range(2):  # as a client that does not get the answer
            assert call("POST", "runs/log-batch", run_id=run, metrics=sent + more) == {}
        served.app.services.mlflow_door().sessions.drop(row.id)
    assert call("POST", "runs/log-metric", run_id=run, **metric("loss", 1.5)) == {}
    assert history(call, run, "loss") == [(value, T0, 0) for value in (1.0, 1.5, 2.0, 3.0, "NaN")]
    assert history(call, run, "acc") == [(0.25, T0, 0), (0.5, T0, 0)]
    assert history(call, run, "f1") == [(1.0, T0, 0)]


def test_numbers_that_json_lacks_and_times_that_the_store_refuses(call: Call, experiment: str) -> None:
    run = created(call, experiment)
    call("POST", "runs/log-metric", run_id=run, **metric("x", "NaN", 0, 0))
    call("POST", "runs/log-metric", run_id=run, **metric("x", "Infinity", 1, 1))
    call("POST", "runs/log-metric", run_id=run, **metric("x", "-Infinity", 2, 2))
    values = history(call, run, "x")
    assert [(timestamp, step) for _, timestamp, step in values] == [(0, 0), (1, 1), (2, 2)]
    assert [value for value, _, _ in values] == ["NaN", "Infinity", "-Infinity"]
    latest = call("GET", "runs/get", run_id=run)["run"]["data"]["metrics"]
    assert [one["value"] for one in latest] == ["-Infinity"]
    sent = metric("x", 1.0, -5)
    for path, body in (("log-metric", sent), ("log-batch", {"metrics": [sent]})):
        status, refused = call("POST", f"runs/{path}", run_id=run, **body)
        assert status == 400
        assert "Timestamp must be a nonnegative long" in refused["message"]


def test_system_metrics_say_how_often_a_client_sends(call: Call, experiment: str, served: Served) -> None:
    """A run without them may be silent for minutes, and is lost later."""
    run = created(call, experiment)

    def intervals() -> set[float]:
        hosts = httpx.get(f"{served.url}/api/v1/runs/{run}", timeout=PATIENCE_S).json()["hosts"]
        return {host["interval_s"] for host in hosts}

    assert intervals() == {600.0}
    for step in range(3):
        sent = metric("system/cpu_utilization_percentage", 5.0, T0 + step * 10_000, step)
        call("POST", "runs/log-batch", run_id=run, metrics=[sent])
    eventually(lambda: intervals() == {30.0})


def test_system_metrics_have_our_keys_too(call: Call, experiment: str, served: Served) -> None:
    run = created(call, experiment)
    name, gpu = "system/system_memory_usage_megabytes", "system/gpu_0_power_usage_watts"
    for step in range(3):
        sent = [
            metric(name, 1000.5 + step, T0 + step * 1000, step),
            metric(gpu, 250.0, T0 + step * 1000, step),
        ]
        call("POST", "runs/log-batch", run_id=run, metrics=sent)
    assert history(call, run, name) == [(1000.5 + step, T0 + step * 1000, step) for step in range(3)]
    row = served.metadata_store.runs.find(run, served.app.services.access.clock())
    assert row is not None
    lists = served.metadata_store.metrics.lists_of_run(row.id)
    numbers = [number for of_writer in lists.values() for series in of_writer for number in series.metric_ids]
    assert "gpu.0.powerWatts" in served.metadata_store.metrics.keys(numbers).values()
    latest = call("GET", "runs/get", run_id=run)["run"]["data"]["metrics"]
    assert {series["key"] for series in latest} == {name, gpu}
    other = created(call, experiment)
    sent = [metric(name, 2000.0, T0, 0), metric(gpu, 20.0, T0, 0)]
    call("POST", "runs/log-batch", run_id=other, metrics=sent)

    def found(**how: Any) -> list[str]:
        runs = call("POST", "runs/search", experiment_ids=[experiment], **how)["runs"]
        return [found_run["info"]["run_id"] for found_run in runs]

    assert found(filter=f"metrics.`{gpu}` > 100") == [run]
    with_values = f"metrics.`{name}` > 0"
    assert found(filter=with_values, order_by=[f"metrics.`{name}` ASC"]) == [run, other]
    assert found(filter=with_values, order_by=[f"metrics.`{name}` DESC"]) == [other, run]


def test_pages_of_a_history_and_intervals(call: Call, experiment: str) -> None:
    run = created(call, experiment)
    metrics = [metric("m", math.sin(step), T0 + step, step) for step in range(1000)]
    call("POST", "runs/log-batch", run_id=run, metrics=metrics)
    query = {"run_id": run, "metric_key": "m", "max_results": 400}
    sizes, token = [], ""
    for _ in range(3):
        page = call("GET", "metrics/get-history", **query, **({"page_token": token} if token else {}))
        sizes.append(len(page["metrics"]))
        token = page.get("next_page_token")
    assert (sizes, token) == ([400, 400, 200], None)
    bulk = call("GET", "metrics/get-history-bulk", run_id=[run], metric_key="m")["metrics"]
    assert (len(bulk), bulk[0]["run_id"]) == (1000, run)
    some = call("GET", "metrics/get-history-bulk-interval", run_ids=[run], metric_key="m", max_results=20)[
        "metrics"
    ]
    steps = [point["step"] for point in some]
    assert (len(steps) <= 20, steps[0], steps[-1], steps == sorted(steps)) == (True, 0, 999, True)
    assert max(point["value"] for point in some) == max(point["value"] for point in bulk)


def test_pages_are_of_the_history_that_the_first_one_was_of(call: Call, experiment: str) -> None:
    run = created(call, experiment)
    for first in range(0, 3000, 1000):
        metrics = [metric("m", float(step), T0 + step, step) for step in range(first, first + 1000)]
        call("POST", "runs/log-batch", run_id=run, metrics=metrics)
    whole = history(call, run, "m")
    assert [value for value, _, _ in whole] == list(range(3000))
    query: dict[str, Any] = {"run_id": run, "metric_key": "m", "max_results": 700}
    page = call("GET", "metrics/get-history", **query)
    found = page["metrics"]
    earlier = metric("m", -1.0, T0 - 1, 5000)  # would move all others to the next place
    call("POST", "runs/log-metric", run_id=run, **earlier)
    while "next_page_token" in page:
        page = call("GET", "metrics/get-history", **query, page_token=page["next_page_token"])
        found += page["metrics"]
    assert [(point["value"], point["timestamp"], point["step"]) for point in found] == whole
    assert history(call, run, "m") == [(-1.0, T0 - 1, 5000), *whole]


def test_further_pages_of_a_run_in_the_trash_are_empty(call: Call, experiment: str) -> None:
    run = created(call, experiment)
    metrics = [metric("m", float(step), T0 + step, step) for step in range(10)]
    call("POST", "runs/log-batch", run_id=run, metrics=metrics)
    query: dict[str, Any] = {"run_id": run, "metric_key": "m", "max_results": 5}
    token = call("GET", "metrics/get-history", **query)["next_page_token"]
    call("POST", "runs/delete", run_id=run)
    assert call("GET", "metrics/get-history", **query, page_token=token)["metrics"] == []


def test_search(call: Call, experiment: str) -> None:
    for number in range(5):
        run = created(call, experiment, run_name=f"run-{number}", start_time=T0 + number)
        tags = [{"key": "kind", "value": "odd" if number % 2 else "even"}]
        params = [{"key": "size", "value": str(number)}, {"key": "net", "value": f"resnet{number}"}]
        batch = {"metrics": [metric("acc", number / 10)], "params": params, "tags": tags}
        call("POST", "runs/log-batch", run_id=run, **batch)

    def names(filter: str = "", **more: Any) -> list[str]:
        sent = {"experiment_ids": [experiment], "filter": filter, **more}
        return [one["info"]["run_name"][-1] for one in call("POST", "runs/search", **sent).get("runs", [])]

    assert names() == ["4", "3", "2", "1", "0"]
    assert names("metrics.acc >= 0.2 and tags.kind = 'even'") == ["4", "2"]
    assert names("params.size = '3'") == ["3"]
    assert names("params.size != '3' AND params.net ILIKE 'RES%' AND metrics.acc != 0.4") == ["2", "1", "0"]
    assert names("params.none IS NULL AND attributes.status = 'RUNNING'", max_results=2) == ["4", "3"]
    assert names("run_name IN ('run-1', 'run-2')") == ["2", "1"]
    assert names("attributes.start_time < 1760000000002") == ["1", "0"]
    assert names(order_by=["metrics.acc ASC"]) == ["0", "1", "2", "3", "4"]
    assert names(order_by=["tags.kind DESC", "params.size"]) == ["1", "3", "0", "2", "4"]
    sent = {"experiment_ids": [experiment], "filter": "tags.kind = 'even'", "max_results": 2}
    first = call("POST", "runs/search", **sent)
    second = call("POST", "runs/search", **sent, page_token=first["next_page_token"])
    assert [one["info"]["run_name"] for one in first["runs"]] == ["run-4", "run-2"]
    assert [one["info"]["run_name"] for one in second["runs"]] == ["run-0"]
    assert "next_page_token" not in second


def test_delete_and_restore(call: Call, experiment: str) -> None:
    run = created(call, experiment)
    assert call("POST", "runs/delete", run_id=run) == {}
    assert call("GET", "runs/get", run_id=run)["run"]["info"]["lifecycle_stage"] == "deleted"
    assert call("POST", "runs/log-metric", run_id=run, **metric("m", 1.0))[0] == 400
    sent = {"experiment_ids": [experiment]}
    assert call("POST", "runs/search", **sent)["runs"] == []
    for view in ("DELETED_ONLY", "ALL"):
        runs = call("POST", "runs/search", **sent, run_view_type=view)["runs"]
        assert [one["info"]["run_id"] for one in runs] == [run]
    assert call("POST", "runs/restore", run_id=run) == {}
    assert call("POST", "runs/log-metric", run_id=run, **metric("m", 1.0)) == {}
    assert history(call, run, "m") == [(1.0, T0, 0)]


def test_of_values_for_a_param_at_once_one_is_kept(call: Call, experiment: str) -> None:
    run = created(call, experiment)
    log = partial(call, "POST", "runs/log-parameter", run_id=run, key="rank")
    with ThreadPoolExecutor(6) as threads:
        sent = [threads.submit(log, value=str(rank)) for rank in range(6)]
    assert sum(each.result() == {} for each in sent) == 1


def test_params_do_not_change_and_tags_do(call: Call, experiment: str) -> None:
    run = created(call, experiment)
    assert call("POST", "runs/log-parameter", run_id=run, key="lr", value="0.1") == {}
    assert call("POST", "runs/log-parameter", run_id=run, key="lr", value="0.1") == {}
    status, error = call("POST", "runs/log-parameter", run_id=run, key="lr", value="0.10")
    assert (status, error["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert "Changing param values is not allowed" in error["message"]
    for value in ("a", "b"):
        call("POST", "runs/set-tag", run_id=run, key="t", value=value)
    tags = call("GET", "runs/get", run_id=run)["run"]["data"]["tags"]
    assert {"key": "t", "value": "b"} in tags
    assert call("POST", "runs/delete-tag", run_id=run, key="t") == {}
    assert call("POST", "runs/delete-tag", run_id=run, key="t")[0] == 404


@pytest.mark.parametrize(
    "sent",
    [
        {"metrics": [metric("m", 1.0)] * 1001},
        {"params": [{"key": f"p{number}", "value": "1"} for number in range(101)]},
        {"tags": [{"key": f"t{number}", "value": "1"} for number in range(101)]},
        {"metrics": [metric("m", "one")]},
        {"metrics": [metric("m", None)]},
        {"metrics": [metric("k" * 251, 1.0)]},
        {"metrics": [metric("../m", 1.0)]},
        {"metrics": [metric("m\u0000", 1.0)]},
        {"metrics": [metric("m", 1.0, step=2**62)]},
        {"metrics": ["m"]},
        {"metrics": {"m": 1}},
        {"params": [{"key": "p", "value": "1"}] * 2},
        {"tags": [{"key": "", "value": "v"}]},
    ],
)
def test_limits(call: Call, request: pytest.FixtureRequest, sent: dict[str, Any]) -> None:
    run = created(call, "0")
    status, error = call("POST", "runs/log-batch", run_id=run, **sent)
    assert (status, error["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert call("GET", "runs/get", run_id=run)["run"]["data"]["metrics"] == []


def test_long_values_are_truncated(call: Call) -> None:
    run = created(call, "0")
    params = [{"key": f"p{number}", "value": "\u00e9" * 6001} for number in range(100)]
    tags = [{"key": f"t{number}", "value": "v" * 8001} for number in range(100)]
    assert call("POST", "runs/log-batch", run_id=run, params=params, tags=tags) == {}
    assert call("POST", "runs/log-parameter", run_id=run, key="alone", value="v" * 7000) == {}
    assert call("POST", "runs/set-tag", run_id=run, key="alone", value="v" * 9000) == {}
    data = call("GET", "runs/get", run_id=run)["run"]["data"]
    assert {len(param["value"]) for param in data["params"]} == {6000}
    assert {len(tag["value"]) for tag in data["tags"] if tag["key"] != "mlflow.runName"} == {8000}


def test_a_body_over_the_limit_is_refused_as_clients_read_errors(call: Call) -> None:
    status, error = call("POST", "runs/set-tag", run_id="a", key="k", value="v" * (17 << 20))
    assert (status, error["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert "16777216" in error["message"]


def test_to_delete_or_restore_twice_changes_nothing(call: Call) -> None:
    run = created(call, "0")
    for path, stage in (("runs/delete", "deleted"), ("runs/restore", "active")):
        assert (call("POST", path, run_id=run), call("POST", path, run_id=run)) == ({}, {})
        assert call("GET", "runs/get", run_id=run)["run"]["info"]["lifecycle_stage"] == stage


def test_a_run_that_goes_on_keeps_its_end(call: Call) -> None:
    run = created(call, "0")
    end = call("POST", "runs/update", run_id=run, status="FINISHED", end_time=1_760_000_000_000)
    for change in ({"status": "RUNNING"}, {"run_name": "other"}, {"status": "FAILED"}):
        info = call("POST", "runs/update", run_id=run, **change)["run_info"]
        assert info["end_time"] == end["run_info"]["end_time"] == 1_760_000_000_000


@pytest.mark.parametrize("order", ["metrics.m ASC", "metrics.m DESC"])
def test_nan_is_before_runs_without_a_value(call: Call, experiment: str, order: str) -> None:
    for name, value in (("missing", None), ("nan", "NaN"), ("one", 1.0), ("least", "-Infinity")):
        run = created(call, experiment, run_name=name)
        if value is not None:
            call("POST", "runs/log-metric", run_id=run, key="m", value=value, timestamp=1)
    search = {"experiment_ids": [experiment], "order_by": [order]}
    names: list[str] = []
    page: dict[str, Any] = {"next_page_token": None}
    while "next_page_token" in page:
        page = call("POST", "runs/search", **search, max_results=1, page_token=page["next_page_token"])
        names += [each["info"]["run_name"] for each in page["runs"]]
    numbers = ["least", "one"] if order.endswith("ASC") else ["one", "least"]
    assert names == [*numbers, "nan", "missing"]


def test_a_token_belongs_to_its_query(call: Call, experiment: str) -> None:
    for _ in range(2):
        created(call, experiment)
    search = {"experiment_ids": [experiment], "max_results": 1}
    token = call("POST", "runs/search", **search)["next_page_token"]
    assert len(call("POST", "runs/search", **search, page_token=token)["runs"]) == 1
    for other in ({"filter": "metrics.m > 0"}, {"order_by": ["metrics.m"]}, {"run_view_type": "ALL"}):
        status, error = call("POST", "runs/search", **search, page_token=token, **other)
        assert (status, error["error_code"]) == (400, "INVALID_PARAMETER_VALUE"), other
    status, error = call("POST", "runs/search", experiment_ids=[experiment], max_results=0)
    assert (status, "positive integer" in error["message"]) == (400, True)


def test_runs_that_do_not_exist(call: Call) -> None:
    for method, path in (
        ("GET", "runs/get"),
        ("POST", "runs/log-batch"),
        ("POST", "runs/delete"),
        ("POST", "runs/update"),
    ):
        status, error = call(method, path, run_id="0" * 32)
        assert (status, error["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST"), path


def test_models_that_older_clients_log(call: Call, experiment: str) -> None:
    run = created(call, experiment)
    model = {"artifact_path": "model", "flavors": {}, "utc_time_created": "2026-01-01", "run_id": run}
    for name in ("first", "second"):
        text = json.dumps({**model, "artifact_path": name})
        assert call("POST", "runs/log-model", run_id=run, model_json=text) == {}
    tags = {tag["key"]: tag["value"] for tag in call("GET", "runs/get", run_id=run)["run"]["data"]["tags"]}
    assert [one["artifact_path"] for one in json.loads(tags["mlflow.log-model.history"])] == [
        "first",
        "second",
    ]
    for text in ("[", "[]", '{"flavors": {}}'):
        status, error = call("POST", "runs/log-model", run_id=run, model_json=text)
        assert (status, error["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


def test_the_wrong_parameter_is_named(call: Call) -> None:
    for path, sent, expected in (
        ("runs/log-parameter", {"run_id": 31, "key": 41}, "Invalid value 31 for parameter 'run_id' supplied"),
        ("runs/log-metric", {"run_id": "1", "key": 31}, "Invalid value 31 for parameter 'key' supplied"),
        ("runs/set-tag", {"run_id": "1", "key": "a", "value": 41}, "Invalid value 41 for parameter 'value'"),
        (
            "runs/log-batch",
            {"run_id": "1", "metrics": "foo"},
            "Invalid value \"foo\" for parameter 'metrics'",
        ),
        ("runs/log-inputs", {"datasets": "foo"}, "Missing value for required parameter 'run_id'"),
    ):
        status, error = call("POST", path, **sent)
        assert status == 400
        assert expected in error["message"]


def test_a_search_takes_any_number_of_experiments(call: Call, experiment: str) -> None:
    run = created(call, experiment)
    others = [str(number) for number in range(1_000_000, 1_080_000)]
    page = call("POST", "runs/search", experiment_ids=[*others, experiment, experiment, "x", "-1"])
    assert [one["info"]["run_id"] for one in page["runs"]] == [run]
