"""Experiments: created, found, searched, renamed, deleted and restored."""

from __future__ import annotations

import httpx
import pytest

from tests.patience import PATIENCE_S
from tests.server.doors.mlflow.conftest import Call
from tests.server.serving import Served


def test_create_and_find(call: Call) -> None:
    tags = [{"key": "team", "value": "vision"}]
    number = call("POST", "experiments/create", name="digits", tags=tags)["experiment_id"]
    experiment = call("GET", "experiments/get-by-name", experiment_name="digits")["experiment"]
    assert experiment == call("GET", "experiments/get", experiment_id=number)["experiment"]
    assert (experiment["name"], experiment["tags"], experiment["lifecycle_stage"]) == (
        "digits",
        tags,
        "active",
    )
    assert experiment["artifact_location"] == f"mlflow-artifacts:/{number}"
    status, error = call("POST", "experiments/create", name="digits")
    assert (status, error["error_code"]) == (400, "RESOURCE_ALREADY_EXISTS")


@pytest.mark.parametrize("prefix", ["ajax-api/2.0", "api/3.0", "ajax-api/3.0"])
def test_other_prefixes(served: Served, prefix: str) -> None:
    response = httpx.get(f"{served.url}/{prefix}/mlflow/experiments/search", timeout=PATIENCE_S)
    assert "experiments" in response.json()


def test_names_that_projects_cannot_have(call: Call) -> None:
    first = call("POST", "experiments/create", name="/Users/ada/trial")["experiment_id"]
    second = call("POST", "experiments/create", name="/Users/ada//trial")["experiment_id"]
    assert first != second
    for name, number in (("/Users/ada/trial", first), ("/Users/ada//trial", second)):
        experiment = call("GET", "experiments/get-by-name", experiment_name=name)["experiment"]
        assert (experiment["experiment_id"], experiment["name"]) == (number, name)


def test_locations_of_artifacts(call: Call, served: Served) -> None:
    elsewhere, host = "s3://bucket/a/", "mlflow-artifacts://host:5000/a"
    for name, location in (("folder", "mlflow-artifacts:/a/b"), ("bucket", elsewhere), ("host", host)):
        number = call("POST", "experiments/create", name=name, artifact_location=location)["experiment_id"]
        experiment = call("GET", "experiments/get", experiment_id=number)["experiment"]
        assert experiment["artifact_location"] == location
        run = call("POST", "runs/create", experiment_id=number)["run"]["info"]
        root = {"folder": f"mlflow-artifacts:/{number}", "bucket": elsewhere[:-1], "host": host}[name]
        assert run["artifact_uri"] == f"{root}/{run['run_id']}/artifacts"
        if name == "folder":
            path = run["artifact_uri"].removeprefix("mlflow-artifacts:/")
            address = f"{served.url}/api/2.0/mlflow-artifacts/artifacts/{path}/text.txt"
            assert httpx.put(address, content=b"hi", timeout=PATIENCE_S).status_code == 200
            assert httpx.get(address, timeout=PATIENCE_S).content == b"hi"
    status, error = call("POST", "experiments/create", name="odd", artifact_location="s3://bucket/a#b")
    assert (status, "fragments" in error["message"]) == (400, True)


def test_rename_delete_restore(call: Call) -> None:
    number = call("POST", "experiments/create", name="early")["experiment_id"]
    assert call("POST", "experiments/update", experiment_id=number, new_name="late") == {}
    assert call("GET", "experiments/get", experiment_id=number)["experiment"]["name"] == "late"
    assert call("POST", "experiments/delete", experiment_id=number) == {}
    experiment = call("GET", "experiments/get", experiment_id=number)["experiment"]
    assert experiment["lifecycle_stage"] == "deleted"
    status, error = call("POST", "experiments/create", name="late")
    assert status == 400
    assert "deleted state" in error["message"]
    assert call("POST", "experiments/update", experiment_id=number, new_name="x")[0] == 400
    assert call("POST", "experiments/restore", experiment_id=number) == {}
    assert call("GET", "experiments/get", experiment_id=number)["experiment"]["lifecycle_stage"] == "active"


def test_search(call: Call) -> None:
    for name in ("find-a", "find-b", "find-c"):
        number = call("POST", "experiments/create", name=name)["experiment_id"]
        call("POST", "experiments/set-experiment-tag", experiment_id=number, key="kind", value=name[-1])
    query = {"filter": "name LIKE 'find-%' AND tags.kind != 'b'", "order_by": ["name DESC"]}
    experiments = call("POST", "experiments/search", **query)["experiments"]
    assert [experiment["name"] for experiment in experiments] == ["find-c", "find-a"]
    page = call("POST", "experiments/search", **query, max_results=1)
    assert [experiment["name"] for experiment in page["experiments"]] == ["find-c"]
    page = call("POST", "experiments/search", **query, max_results=1, page_token=page["next_page_token"])
    assert ([experiment["name"] for experiment in page["experiments"]], "next_page_token" in page) == (
        ["find-a"],
        False,
    )


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "code"),
    [
        ("GET", "experiments/get-by-name", {"experiment_name": "no"}, 404, "RESOURCE_DOES_NOT_EXIST"),
        ("GET", "experiments/get", {"experiment_id": "99999"}, 404, "RESOURCE_DOES_NOT_EXIST"),
        ("GET", "experiments/get", {"experiment_id": "x" * 5000}, 400, "INVALID_PARAMETER_VALUE"),
        ("GET", "experiments/get", {}, 400, "INVALID_PARAMETER_VALUE"),
        ("POST", "experiments/create", {"name": ["a"]}, 400, "INVALID_PARAMETER_VALUE"),
        ("POST", "experiments/create", {"name": "  "}, 400, "INVALID_PARAMETER_VALUE"),
        ("POST", "experiments/search", {"filter": "nme = 'a'"}, 400, "INVALID_PARAMETER_VALUE"),
        ("POST", "experiments/search", {"page_token": "?"}, 400, "INVALID_PARAMETER_VALUE"),
        ("POST", "no/such", {}, 404, "ENDPOINT_NOT_FOUND"),
        ("POST", "traces", {}, 404, "ENDPOINT_NOT_FOUND"),
    ],
)
def test_errors(call: Call, method: str, path: str, sent: dict[str, str], status: int, code: str) -> None:
    found, error = call(method, path, **sent)
    assert (found, error["error_code"]) == (status, code)


@pytest.mark.parametrize(
    ("path", "instead"),
    [
        ("traces", "Jaeger"),
        ("datasets/create", "mlflow.log_input()"),
        ("webhooks", "an automation for the event"),
    ],
)
def test_what_there_is_instead(call: Call, path: str, instead: str) -> None:
    _, error = call("POST", path)
    assert f"POST /api/2.0/mlflow/{path} is not supported: " in error["message"]
    assert instead in error["message"]


def test_what_is_no_json_object(served: Served) -> None:
    for body in (b"{", b"[]", b"\xff", b"[" * 100_000):
        response = httpx.post(
            f"{served.url}/api/2.0/mlflow/experiments/search", content=body, timeout=PATIENCE_S
        )
        assert (response.status_code, response.json()["error_code"]) == (400, "BAD_REQUEST")


def test_health_and_version(served: Served) -> None:
    assert httpx.get(f"{served.url}/health", timeout=PATIENCE_S).text == "OK"
    assert httpx.get(f"{served.url}/version", timeout=PATIENCE_S).text[0] == "3"
