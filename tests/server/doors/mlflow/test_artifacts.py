"""Files of runs and models through the server, and what runs used and made."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mlflow.artifacts import download_artifacts
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

from runvitals.server.files.reserved_space import FileLimits
from tests.patience import PATIENCE_S
from tests.server.doors.mlflow.conftest import Call
from tests.server.serving import Served

ARTIFACTS = "/api/2.0/mlflow-artifacts"


@pytest.fixture
def root(served: Served, call: Call, request: pytest.FixtureRequest) -> Iterator[str]:
    """The path of the files of a run."""
    experiment = call("POST", "experiments/create", name=request.node.name)["experiment_id"]
    run = call("POST", "runs/create", experiment_id=experiment, start_time=int(time.time() * 1000))["run"]
    assert run["info"]["artifact_uri"] == f"mlflow-artifacts:/{experiment}/{run['info']['run_id']}/artifacts"
    os.environ["MLFLOW_TRACKING_URI"] = served.url
    yield f"{experiment}/{run['info']['run_id']}/artifacts"
    del os.environ["MLFLOW_TRACKING_URI"]


def run_of(root: str) -> str:
    return root.split("/")[1]


@pytest.fixture(scope="module")
def http(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, timeout=PATIENCE_S) as client:
        yield client


def test_files_of_a_run(root: str, http: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "ünï b.bin").write_bytes(os.urandom(3 << 20))
    repository = get_artifact_repository(f"mlflow-artifacts:/{root}")
    repository.log_artifacts(str(tmp_path))
    listed = {
        artifact.path: (artifact.is_dir, artifact.file_size) for artifact in repository.list_artifacts()
    }
    assert listed == {"a.txt": (False, 5), "empty": (False, 0), "sub": (True, None)}
    (inside,) = repository.list_artifacts("sub")
    assert inside.path == "sub/ünï b.bin"
    back = download_artifacts(artifact_uri=f"mlflow-artifacts:/{root}", dst_path=str(tmp_path / "back"))
    for name in ("a.txt", "empty", "sub/ünï b.bin"):
        assert (Path(back) / name).read_bytes() == (tmp_path / name).read_bytes()
    shown = http.get(f"/api/v1/runs/{run_of(root)}/files").json()["files"]
    assert {artifact["name"] for artifact in shown} == {"a.txt", "empty", "sub/ünï b.bin"}
    (tmp_path / "a.txt").write_text("hello again")
    repository.log_artifact(str(tmp_path / "a.txt"))
    assert http.get(f"{ARTIFACTS}/artifacts/{root}/a.txt").text == "hello again"
    repository.delete_artifacts("sub")
    assert {artifact.path for artifact in repository.list_artifacts()} == {"a.txt", "empty"}
    shown = http.get(f"/api/v1/runs/{run_of(root)}/files").json()["files"]
    assert {artifact["name"] for artifact in shown} == {"a.txt", "empty"}


def test_list_of_the_tracking_server(root: str, http: httpx.Client) -> None:
    http.put(f"{ARTIFACTS}/artifacts/{root}/deep/er/x.txt", content=b"x")
    listing = http.get(f"/api/2.0/mlflow/artifacts/list?run_id={run_of(root)}&path=deep").json()
    assert listing["root_uri"] == f"mlflow-artifacts:/{root}"
    assert listing["files"] == [{"path": "deep/er", "is_dir": True}]


def test_files_by_the_name_of_their_run_or_model(root: str, call: Call, http: httpx.Client) -> None:
    run, page = run_of(root), "/ajax-api/2.0/mlflow"
    uploaded = http.post(f"{page}/upload-artifact?run_uuid={run}&path=by/page.txt", content=b"hello")
    assert uploaded.json() == {}
    for named in ("run_id", "run_uuid"):
        response = http.get(f"/get-artifact?{named}={run}&path=by/page.txt")
        assert (response.text, response.headers["content-disposition"][:10]) == ("hello", "attachment")
    model = call("POST", "logged-models", experiment_id=root.split("/")[0], name="net")["model"]["info"]
    folder = model["artifact_uri"].removeprefix("mlflow-artifacts:/")
    http.put(f"{ARTIFACTS}/artifacts/{folder}/MLmodel", content=b"flavors")
    of_model = f"{page}/logged-models/{model['model_id']}/artifacts/files"
    assert http.get(f"{of_model}?artifact_file_path=MLmodel").text == "flavors"
    call("POST", "registered-models/create", name="page-net")
    for _ in range(2):
        sent = {"name": "page-net", "source": model["artifact_uri"], "model_id": model["model_id"]}
        call("POST", "model-versions/create", **sent)
    response = http.get("/model-versions/get-artifact?name=page-net&version=2&path=MLmodel")
    assert response.text == "flavors"
    tags = call("GET", f"logged-models/{model['model_id']}")["model"]["info"]["tags"]
    versions = [{"name": "page-net", "version": version} for version in (1, 2)]
    assert [json.loads(tag["value"]) for tag in tags if tag["key"] == "mlflow.modelVersions"] == [versions]


def test_refused_files_by_the_name_of_their_run(root: str, http: httpx.Client) -> None:
    upload = "/ajax-api/2.0/mlflow/upload-artifact"
    large = 10 * 1024 * 1024 + 1
    for query, content, message in (
        ("", b"x", "Request must specify run_uuid."),
        (f"run_uuid={run_of(root)}", b"x", "Request must specify path."),
        (f"run_uuid={run_of(root)}&path=../a", b"x", "Invalid path"),
        (f"run_uuid={run_of(root)}&path=a", b"", "Request must specify data."),
        (f"run_uuid={run_of(root)}&path=a", bytes(large), "Artifact size is too large. Max size is 10MB."),
    ):
        response = http.post(f"{upload}?{query}", content=content)
        error = {"error_code": "INVALID_PARAMETER_VALUE", "message": message}
        assert (response.status_code, response.json()) == (400, error)
    for path in (
        f"/get-artifact?run_id={run_of(root)}&path=../a",
        "/model-versions/get-artifact?name=n&version=1&path=../a",
    ):
        assert http.get(path).json()["message"] == "Invalid path"
    assert http.get(f"/get-artifact?run_id={run_of(root)}&path=none").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "{root}/%2e%2e/x",
        "{root}/a/%252e%252e/x",
        "{root}/a/..%2f..%2fx",
        "{root}/a%5cb",
        "{root}//x",
        "{root}/%00",
        "{root}/" + "x" * 2000,
        "etc/passwd",
        "1/models/m-1",
    ],
)
def test_paths_that_lead_elsewhere(root: str, http: httpx.Client, path: str) -> None:
    url = f"{ARTIFACTS}/artifacts/" + path.format(root=root)
    for method in ("PUT", "GET", "DELETE"):
        response = http.request(method, url, content=b"x" if method == "PUT" else None)
        assert (response.status_code, response.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


def test_what_is_not_there(root: str, http: httpx.Client) -> None:
    for path in (f"{root}/no", "999/with-files/artifacts/a.txt", root.replace("with-files", "no-run") + "/a"):
        response = http.get(f"{ARTIFACTS}/artifacts/{path}")
        assert (response.status_code, response.json()["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")


def test_a_folder_that_is_deleted_as_a_whole(call: Call, http: httpx.Client) -> None:
    run = call("POST", "runs/create", experiment_id="0", start_time=int(time.time() * 1000))["run"]["info"]
    root = f"{ARTIFACTS}/artifacts/{run['experiment_id']}/{run['run_id']}/artifacts"
    for name in ("a.txt", "sub/b.txt"):
        assert http.put(f"{root}/{name}", content=b"1").status_code == 200
    files = f"/api/v1/runs/{run['run_id']}/files"
    assert {file["name"] for file in http.get(files).json()["files"]} == {"a.txt", "sub/b.txt"}
    assert http.delete(root).status_code == 200
    assert http.get(files).json()["files"] == []


def test_the_client_sends_a_file_in_parts(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, http: httpx.Client
) -> None:
    monkeypatch.setenv("MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD", "true")
    monkeypatch.setenv("MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE", "1000")
    monkeypatch.setenv("MLFLOW_MULTIPART_UPLOAD_CHUNK_SIZE", str(2 << 20))
    content = bytes(range(256)) * (10 << 10)
    (tmp_path / "large.bin").write_bytes(content)
    repository = get_artifact_repository(f"mlflow-artifacts:/{root}")
    repository.log_artifact(str(tmp_path / "large.bin"), "in parts")
    assert http.get(f"{ARTIFACTS}/artifacts/{root}/in%20parts/large.bin").content == content


class Multipart:
    """An upload in parts."""

    def __init__(self, http: httpx.Client, root: str, parts: int = 2) -> None:
        self.http, self.root = http, root
        self.made = self.call("create", num_parts=parts).json()

    def call(self, step: str, root: str = "", **sent: Any) -> httpx.Response:
        body = {"path": "/home/me/model.bin", **sent}
        return self.http.post(f"{ARTIFACTS}/mpu/{step}/{root or self.root}", json=body)

    def put(self, number: int, content: bytes) -> dict[str, Any]:
        response = self.http.put(self.made["credentials"][number - 1]["url"], content=content)
        return {"part_number": number, "etag": response.headers.get("etag"), "url": "x"}

    def complete(self, parts: Any, root: str = "") -> httpx.Response:
        return self.call("complete", root, upload_id=self.made["upload_id"], parts=parts)


def test_parts_in_any_order_and_again(root: str, http: httpx.Client) -> None:
    upload = Multipart(http, root)
    last, _ = upload.put(2, b"second"), upload.put(1, b"wrong")
    first = upload.put(1, b"first ")
    for parts, problem in (
        ([{"part_number": 1, "etag": "x"}], "has the ETag"),
        ([first, {"part_number": 3, "etag": "x"}], "part 3 has not arrived"),
        ([last, first], "ascending order"),
        ([first, first], "ascending order"),
        ([], "expected 1 to 10,000 parts"),
        ("x", "parts"),
    ):
        response = upload.complete(parts)
        assert (response.status_code, problem in response.json()["message"]) == (400, True), response.text
    assert upload.complete([first, last], f"{root}/elsewhere").status_code == 404
    assert upload.complete([first, last]).json() == {}
    assert http.get(f"{ARTIFACTS}/artifacts/{root}/model.bin").content == b"first second"
    assert upload.complete([first, last]).json() == {}
    assert http.put(upload.made["credentials"][0]["url"], content=b"late").status_code == 404


def test_uploads_that_are_refused_or_given_up(root: str, http: httpx.Client) -> None:
    upload = Multipart(http, root)
    address = upload.made["credentials"][0]["url"]
    assert http.put(address[:-3] + "abc", content=b"x").status_code == 403
    upload.put(1, b"first")
    assert upload.call("abort", upload_id=upload.made["upload_id"]).json() == {}
    assert upload.call("abort", upload_id="none").json() == {}
    assert upload.complete([{"part_number": 1, "etag": "x"}]).status_code == 404
    for sent in ({"num_parts": 10_001}, {"num_parts": -1}, {"path": ".."}, {"path": ""}, {"num_parts": "x"}):
        assert upload.call("create", **sent).status_code == 400, sent
    assert upload.call("create", "999/none/artifacts").status_code == 404


def test_uploads_without_end_are_refused(
    root: str, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runvitals.store.files.parts.MAX_UPLOADS", 1)
    upload = Multipart(http, root)
    refused = upload.call("create")
    assert (refused.status_code, "abort some" in refused.json()["message"]) == (400, True), refused.text
    upload.call("abort", upload_id=upload.made["upload_id"])
    complete = Multipart(http, root)
    assert complete.complete([complete.put(1, b"all")]).status_code == 200
    assert upload.call("create").status_code == 200


def test_files_of_a_run_keep_its_limit_however_they_arrive(
    served: Served, root: str, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served.app.services.files, "limits", FileLimits(run_bytes=10))
    folder = f"{ARTIFACTS}/artifacts/{root}"
    assert http.put(f"{folder}/first", content=b"12345678").status_code == 200
    page = f"/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run_of(root)}&path=page"
    part = Multipart(http, root).made["credentials"][0]["url"]
    for response in (
        http.put(f"{folder}/second", content=b"123"),
        http.put(f"{folder}/third", content=iter([b"12", b"3"])),
        http.post(page, content=b"123"),
        http.put(part, content=b"123"),
    ):
        assert response.status_code in (400, 413), response.text
        assert "the files of the run would exceed the limit of 10 bytes" in response.text
    assert http.put(f"{folder}/second", content=b"12").status_code == 200


def test_inputs_and_outputs(root: str, call: Call) -> None:
    dataset = {"name": "mnist", "digest": "abc", "source_type": "local", "source": "{}"}
    tags = [{"key": "mlflow.data.context", "value": "training"}]
    used = {"datasets": [{"dataset": dataset, "tags": tags}], "models": [{"model_id": "m-1"}]}
    for _ in range(2):  # a repeated request changes nothing
        assert call("POST", "runs/log-inputs", run_id=run_of(root), **used) == {}
    outputs = {"models": [{"model_id": "m-2", "step": 3}]}
    assert call("POST", "runs/outputs", run_id=run_of(root), **outputs) == {}
    run = call("GET", "runs/get", run_id=run_of(root))["run"]
    assert run["inputs"] == {
        "dataset_inputs": [{"dataset": dataset, "tags": tags}],
        "model_inputs": [{"model_id": "m-1"}],
    }
    assert run["outputs"] == {"model_outputs": [{"model_id": "m-2", "step": 3}]}
    datasets = call("POST", "experiments/search-datasets", experiment_ids=[root.split("/")[0]])
    assert [(one["name"], one["context"]) for one in datasets["dataset_summaries"]] == [("mnist", "training")]
    for where, number in (
        ("datasets.name = 'mnist'", 1),
        ("dataset.digest IN ('abc', 'x') AND datasets.context LIKE 'train%'", 1),
        ("datasets.name = 'cifar'", 0),
        ("datasets.context != 'training'", 0),
    ):
        experiment = root.split("/")[0]
        runs = call("POST", "runs/search", experiment_ids=[experiment], filter=where).get("runs", [])
        assert len(runs) == number, where
    status, error = call(
        "POST", "runs/log-inputs", run_id=run_of(root), datasets=[{"dataset": {"name": "x"}}]
    )
    assert (status, "dataset.digest" in error["message"]) == (400, True)


def test_a_path_is_a_file_or_a_folder(root: str, http: httpx.Client) -> None:
    def put(path: str) -> tuple[int, str]:
        response = http.put(f"{ARTIFACTS}/artifacts/{root}/both/{path}", content=b"x")
        return response.status_code, response.text

    for path in ("a", "a", "a-b/c", "d/e/f"):
        assert put(path)[0] == 200
    for path in ("a/b", "a/b/c", "d", "d/e", "d/e/f/g"):
        status, text = put(path)
        assert (status, "a path is a file or a folder" in text) == (400, True), (path, text)


def test_a_name_with_percent_signs(served: Served, call: Call) -> None:
    """Clients 3.6 and older send pictures so."""
    info = call("POST", "runs/create", experiment_id="0")["run"]["info"]
    place = info["artifact_uri"].removeprefix("mlflow-artifacts:/")
    name = "images/a%25step%253%25timestamp%251795978611186%250c.png"
    url = f"{served.url}/api/2.0/mlflow-artifacts/artifacts/{place}/{name}"
    assert httpx.put(url, content=b"picture", timeout=PATIENCE_S).status_code == 200
    assert httpx.get(url, timeout=PATIENCE_S).content == b"picture"
    listing = {"run_id": info["run_id"], "path": "images"}
    url = f"{served.url}/api/2.0/mlflow/artifacts/list"
    listed = httpx.get(url, params=listing, timeout=PATIENCE_S).json()["files"]
    assert [file["path"] for file in listed] == ["images/a%step%3%timestamp%1795978611186%0c.png"]
    escaping = f"{served.url}/api/2.0/mlflow-artifacts/artifacts/{place}/%252e%252e/x"
    assert httpx.put(escaping, content=b"x", timeout=PATIENCE_S).status_code == 400
