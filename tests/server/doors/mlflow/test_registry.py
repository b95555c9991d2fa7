"""The registry of models, used by MLflow's client."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from mlflow.entities import Metric
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from runvitals.model.artifacts import UnknownArtifact
from tests.server.doors.mlflow.conftest import Call
from tests.server.serving import Served


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[MlflowClient]:
    before = os.environ.get("MLFLOW_TRACKING_URI")
    os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"
    os.environ["MLFLOW_TRACKING_URI"] = served.url  # some calls make a client of their own
    yield MlflowClient(served.url, served.url)
    del os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"], os.environ["MLFLOW_TRACKING_URI"]
    if before is not None:
        os.environ["MLFLOW_TRACKING_URI"] = before


def test_models(client: MlflowClient) -> None:
    model = client.create_registered_model("digits", {"team": "vision"}, "reads digits")
    assert (model.name, model.description, model.tags) == ("digits", "reads digits", {"team": "vision"})
    with pytest.raises(MlflowException, match="already exists") as raised:
        client.create_registered_model("digits")
    assert raised.value.error_code == "RESOURCE_ALREADY_EXISTS"
    client.set_registered_model_tag("digits", "stage", "test")
    client.delete_registered_model_tag("digits", "team")
    assert client.update_registered_model("digits", "reads all digits").description == "reads all digits"
    assert client.get_registered_model("digits").tags == {"stage": "test"}
    client.rename_registered_model("digits", "numbers")
    assert client.get_registered_model("numbers").description == "reads all digits"
    with pytest.raises(MlflowException, match="not found"):
        client.get_registered_model("digits")
    client.delete_registered_model("numbers")
    with pytest.raises(MlflowException, match="not found"):
        client.delete_registered_model("numbers")


def test_of_renames_at_once_one_wins(client: MlflowClient, served: Served) -> None:
    client.create_registered_model("letters")
    table = served.metadata_store.registered_models
    [model] = table.named("letters")  # as each of the requests reads it
    table.rename(model, "glyphs", model.changed_ms)
    with pytest.raises(UnknownArtifact):
        table.rename(model, "runes", model.changed_ms)
    assert client.get_registered_model("glyphs").name == "glyphs"


@pytest.mark.filterwarnings("ignore:.*deprecated:FutureWarning")
def test_versions_stages_and_aliases(client: MlflowClient) -> None:
    client.create_registered_model("faces")
    first = client.create_model_version("faces", "s3://bucket/a", "r1", {"a": "1"}, description="the first")
    second = client.create_model_version("faces", f"models:/faces/{first.version}")
    assert (first.version, second.version, first.current_stage, first.status) == ("1", "2", "None", "READY")
    assert client.get_model_version_download_uri("faces", "2") == "s3://bucket/a"
    client.transition_model_version_stage("faces", "1", "production")
    client.transition_model_version_stage("faces", "2", "Production", archive_existing_versions=True)
    stages = [client.get_model_version("faces", number).current_stage for number in ("1", "2")]
    assert stages == ["Archived", "Production"]
    assert [version.version for version in client.get_latest_versions("faces", ["Production"])] == ["2"]
    client.set_registered_model_alias("faces", "champion", "2")
    assert client.get_model_version_by_alias("faces", "champion").version == "2"
    assert client.get_model_version("faces", "2").aliases == ["champion"]
    assert client.get_model_version_by_alias("faces", "latest").version == "2"
    client.set_model_version_tag("faces", "2", "b", "x")
    client.delete_model_version_tag("faces", "1", "a")
    assert (client.get_model_version("faces", "1").tags, client.get_model_version("faces", "2").tags) == (
        {},
        {"b": "x"},
    )
    client.delete_model_version("faces", "2")
    with pytest.raises(MlflowException, match="not found"):
        client.get_model_version_by_alias("faces", "champion")
    third = client.create_model_version("faces", "s3://bucket/c")
    assert third.version == "3"  # no version gets the number of another


def test_search(client: MlflowClient) -> None:
    for name, team in (("find-a", "x"), ("find-b", "y"), ("find-c", "y")):
        client.create_registered_model(name, {"team": team})
        client.create_model_version(name, f"s3://{name}", tags={"team": team})
    query = "name LIKE 'find-%' AND tags.team = 'y'"
    models = client.search_registered_models(query, order_by=["name DESC"])
    assert [model.name for model in models] == ["find-c", "find-b"]
    page = client.search_registered_models(query, max_results=1)
    assert [model.name for model in page] == ["find-b"]
    page = client.search_registered_models(query, max_results=1, page_token=page.token)
    assert ([model.name for model in page], bool(page.token)) == (["find-c"], False)
    versions = client.search_model_versions("name LIKE 'find-%' AND tags.team = 'y'", order_by=["name ASC"])
    assert [(model.name, model.version) for model in versions] == [("find-b", "1"), ("find-c", "1")]
    with pytest.raises(MlflowException, match="Invalid attribute"):
        client.search_registered_models("nme = 'a'")


@pytest.mark.parametrize("name", ["", "a/b", "a:b", "..", "x" * 300, "\x00", "a\u202eb"])
def test_names_that_are_refused(call: Call, name: str) -> None:
    call("POST", "registered-models/create", name="renamed")
    for sent in ({"name": name}, {"name": "renamed", "new_name": name}):
        path = "registered-models/rename" if "new_name" in sent else "registered-models/create"
        status, error = call("POST", path, **sent)
        assert (status, error["error_code"]) == (400, "INVALID_PARAMETER_VALUE"), sent


@pytest.mark.parametrize("alias", ["", "latest", "v1", "a b", "x" * 300])
def test_aliases_that_are_refused(call: Call, alias: str) -> None:
    call("POST", "registered-models/create", name="aliased")
    call("POST", "model-versions/create", name="aliased", source="s3://a")
    status, _ = call("POST", "registered-models/alias", name="aliased", alias=alias, version="1")
    assert status == 400


def test_metrics_of_logged_models(client: MlflowClient, call: Call) -> None:
    experiment = client.create_experiment("models that are measured")
    run = client.create_run(experiment).info.run_id
    deep, flat, unmeasured = (
        client.create_logged_model(experiment, name) for name in ("deep", "flat", "new")
    )
    mnist, cifar = ({"dataset_name": name, "dataset_digest": f"{name}-1"} for name in ("mnist", "cifar"))
    for model, accuracy, on, at in (
        (deep, 0.5, mnist, 1),
        (deep, 0.9, mnist, 2),
        (deep, 0.1, mnist, 1),  # late: an older value than the one known
        (flat, 0.8, mnist, 1),
        (flat, 0.95, cifar, 2),
    ):
        metric = Metric("accuracy", accuracy, at, at, model.model_id, **on)
        client.log_batch(run, [metric, Metric("loss", 1 - accuracy, at, at)])
    client.log_metric(run, "broken", float("nan"), model_id=flat.model_id)
    models = client.get_logged_model(deep.model_id).metrics
    assert [(one.key, one.value, one.step, one.run_id, one.dataset_name) for one in models] == [
        ("accuracy", 0.9, 2, run, "mnist")
    ]
    assert sorted(one.value for one in client.get_metric_history(run, "accuracy")) == [
        0.1,
        0.5,
        0.8,
        0.9,
        0.95,
    ]

    def names(where: str = "", **sought: Any) -> list[str]:
        return [one.name for one in client.search_logged_models([experiment], where, **sought)]

    def by(ascending: bool, **dataset: str) -> list[dict[str, Any]]:
        return [{"field_name": "metrics.accuracy", "ascending": ascending, **dataset}]

    assert names("metrics.accuracy > 0.85") == ["flat", "deep"]
    assert names("metrics.accuracy > 0.85", datasets=[mnist]) == ["deep"]
    assert names("metrics.accuracy > 0.85 AND name = 'flat'", datasets=[mnist, cifar]) == ["flat"]
    assert names(datasets=[{"dataset_name": "cifar"}]) == ["flat"]
    assert names(order_by=by(False)) == ["flat", "deep", "new"]
    assert names(order_by=by(False, **mnist)) == ["deep", "flat", "new"]
    assert names(order_by=by(True, **mnist)) == ["flat", "deep", "new"]
    query = {"experiment_ids": [experiment], "datasets": [{"dataset_digest": "mnist-1"}]}
    status, error = call("POST", "logged-models/search", **query)
    assert (status, "`dataset_name` in the `datasets` clause" in error["message"]) == (400, True)
    with pytest.raises(MlflowException, match="not found"):
        client.log_batch(run, [Metric("accuracy", 1, 3, 3, "m-nothing")])
    assert len(client.get_metric_history(run, "accuracy")) == 5
    client.delete_logged_model(unmeasured.model_id)


def test_logged_models(client: MlflowClient) -> None:
    experiment = client.create_experiment("models that are logged")
    model = client.create_logged_model(
        experiment, "net", tags={"team": "vision"}, params={"depth": "18"}, model_type="cnn"
    )
    assert (model.status.value, model.params, model.model_type) == ("PENDING", {"depth": "18"}, "cnn")
    assert model.artifact_location == f"mlflow-artifacts:/{experiment}/models/{model.model_id}/artifacts"
    assert client.finalize_logged_model(model.model_id, "READY").status.value == "READY"
    client.set_logged_model_tags(model.model_id, {"good": "yes"})
    client.delete_logged_model_tag(model.model_id, "team")
    with pytest.raises(MlflowException, match="No tag") as raised:
        client.delete_logged_model_tag(model.model_id, "team")
    assert raised.value.error_code == "RESOURCE_DOES_NOT_EXIST"
    assert client.get_logged_model(model.model_id).tags == {"good": "yes"}
    other = client.create_logged_model(experiment, "other", params={"depth": "50"})
    models = client.search_logged_models([experiment], "params.depth = '18' AND name = 'net'")
    assert [one.model_id for one in models] == [model.model_id]
    client.delete_logged_model(other.model_id)
    with pytest.raises(MlflowException, match="not found"):
        client.get_logged_model(other.model_id)
    client.create_registered_model("from-logged")
    version = client.create_model_version("from-logged", f"models:/{model.model_id}", model_id=model.model_id)
    uri = client.get_model_version_download_uri("from-logged", version.version)
    assert uri == model.artifact_location
