"""Import of MLflow's stores, which MLflow's own client wrote."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.readers.importers.mlflow.importer import import_mlflow, parameter, rows
from runvitals.readers.importers.mlflow.run import MlflowMetric
from runvitals.readers.importers.mlflow.stores import store_of
from runvitals.readers.journals import open_run
from tests.patience import PATIENCE_S

SCRIPT = """
import os, sys
import mlflow
for uri in sys.argv[1:]:
    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment("digits")
    tags = {"team": "vision", "mlflow.note.content": "it's a: note"}
    with mlflow.start_run(run_name="first: 'try'", tags=tags) as run:
        print(run.info.run_id)
        mlflow.log_params({"lr": 0.1, "layers": [1, 2], "fast": True, "password": "hunter2"})
        for step in range(3):
            mlflow.log_metrics({"loss": 1 / (step + 1), "val/accuracy": step}, step=step)
        mlflow.log_metric("odd", float("nan"), step=3)
        mlflow.log_metric("big", float("inf"), step=3)
        for step in range(2):
            system = {"cpu_utilization_percentage": 12.5, "node1/gpu_0_memory_usage_megabytes": 2.0}
            mlflow.log_metrics({f"system/{key}": value for key, value in system.items()}, step=step)
        with open("note.txt", "w") as file:
            file.write("hello")
        mlflow.log_artifact("note.txt", "sub")
        with mlflow.start_run(run_name="child", nested=True) as child:
            print(child.info.run_id)
    try:
        with mlflow.start_run(run_name="bad") as failed:
            print(failed.info.run_id)
            raise SystemError
    except SystemError:
        pass
    with mlflow.start_run(run_name="gone") as gone:
        mlflow.log_metric("loss", 1)
    mlflow.delete_run(gone.info.run_id)
"""

SERVER = """
import sys
from werkzeug.serving import make_server
from mlflow.server import app
server = make_server("127.0.0.1", 0, app)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def server(stores: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of MLflow's own server over the SQLite store."""
    folder = tmp_path_factory.mktemp("server")
    environ = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "HOME": str(folder)}
    environ |= {"_MLFLOW_SERVER_FILE_STORE": next(iter(stores)), "_MLFLOW_SERVER_SERVE_ARTIFACTS": "true"}
    environ |= {
        "_MLFLOW_SERVER_ARTIFACT_ROOT": str(folder),
        "_MLFLOW_SERVER_ARTIFACT_DESTINATION": str(folder),
    }
    with (folder / "log").open("w") as log:
        command = [sys.executable, "-W", "ignore", "-c", SERVER]
        process = subprocess.Popen(
            command, env=environ, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            assert port.isdigit(), (folder / "log").read_text()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The URI of each store, with the ids of its runs: the first, its child, and the failed one."""
    folder = tmp_path_factory.mktemp("mlflow")
    uris = [f"sqlite:///{folder}/mlflow.db", f"{folder}/mlruns"]
    environ = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    environ |= {"MLFLOW_ALLOW_FILE_STORE": "true", "HOME": str(folder)}
    (folder / "mlruns").mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, uris[0], f"file://{folder}/files"],
        env=environ, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ids = [line for line in done.stdout.splitlines() if len(line) == 32]
    return {uris[0]: ids[:3], f"{folder}/files": ids[3:]}


@pytest.mark.parametrize("kind", ["sqlite", "files", "server"])
def test_everything_of_a_store(
    kind: str,
    stores: dict[str, list[str]],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    uri, (first, child, failed) = list(stores.items())[kind == "files"]
    if kind == "server":
        uri = request.getfixturevalue("server")
    assert main(["import", f"mlflow:{uri}", "--dir", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert f"{first} of project digits: " in output
    assert "not imported: 1 × deleted runs" in output
    assert sorted(os.listdir(tmp_path / "runs")) == sorted((first, child, failed))
    run = open_run(first, directory=str(tmp_path))
    about = run.facts
    assert (about.name, about.project, about.state) == ("first: 'try'", "digits", "finished")
    assert (about.tags, about.notes) == (["team=vision"], "it's a: note")
    assert run.config == {"lr": 0.1, "layers": "[1, 2]", "fast": True, "password": "***"}
    logged = {(row.step, name): value for row in run.history() for name, value in row.data.items()}
    assert [logged[step, "loss"] for step in range(3)] == [1, 0.5, pytest.approx(1 / 3)]
    assert logged[2, "val/accuracy"] == 2
    assert math.isnan(logged[3, "odd"])
    assert logged[3, "big"] == math.inf
    keys = {(statistic.host, statistic.key): statistic.last for statistic in run.statistics()}
    gpu = next(value for (host, key), value in keys.items() if host == "node1" and key.startswith("gpu.0"))
    assert gpu == pytest.approx(2e6)
    assert 12.5 in keys.values()
    assert [(file.name, file.bytes) for file in run.files()] == [("sub/note.txt", 5)]
    assert open_run(child, directory=str(tmp_path)).facts.group == first
    assert open_run(failed, directory=str(tmp_path)).state == "failed"
    assert b"hunter2" not in b"".join(path.read_bytes() for path in (tmp_path / "runs" / first).glob("*.rvj"))

    assert main(["import", f"mlflow:{uri}", "--dir", str(tmp_path)]) == 0
    assert "3 runs exist already" in capsys.readouterr().out


def test_one_run_into_another_project(stores: dict[str, list[str]], tmp_path: Path) -> None:
    uri, (_, child, _) = next(iter(stores.items()))
    assert main(["import", f"mlflow:{uri}", "--run", child, "--project", "p", "--dir", str(tmp_path)]) == 0
    assert os.listdir(tmp_path / "runs") == [child]
    assert open_run(child, directory=str(tmp_path)).facts.project == "p"


def test_only_artifacts_of_the_store_are_read(
    stores: dict[str, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri, (first, *_) = next(iter(stores.items()))
    secret = tmp_path / "elsewhere"
    secret.mkdir()
    (secret / "id_rsa").write_text("private")
    copy = tmp_path / "store" / "mlflow.db"
    copy.parent.mkdir()
    shutil.copy(uri.removeprefix("sqlite:///"), copy)
    with closing(sqlite3.connect(copy)) as database, database:
        database.execute("UPDATE runs SET artifact_uri = ?, status = 'RUNNING'", (str(secret),))
    assert main(["import", f"mlflow:{copy}", "--run", first, "--dir", str(tmp_path / "a")]) == 0
    output = capsys.readouterr().out
    assert "not imported: 1 × runs without their files: they are not below " in output
    assert "its status is RUNNING: what it logs later is not imported" in output
    assert open_run(first, directory=str(tmp_path / "a")).files() == []

    (copy.parent / "mlruns").symlink_to(tmp_path / "a")
    command = ["import", f"mlflow:{copy}", "--run", first, "--dir", str(tmp_path / "b")]
    assert main([*command, "--artifacts", str(secret)]) == 0
    assert [file.name for file in open_run(first, directory=str(tmp_path / "b")).files()] == ["id_rsa"]


def test_broken_rows_are_left_out(stores: dict[str, list[str]], tmp_path: Path) -> None:
    uri = next(iter(stores))
    copy = tmp_path / "mlflow.db"
    shutil.copy(uri.removeprefix("sqlite:///"), copy)
    with closing(sqlite3.connect(copy)) as database, database:
        run_id, total = database.execute(
            "SELECT run_uuid, count(*) FROM metrics GROUP BY run_uuid ORDER BY 2 DESC"
        ).fetchone()
        rows = database.execute("SELECT rowid FROM metrics WHERE run_uuid = ?", (run_id,)).fetchmany(2)
        for (row,), broken in zip(rows, ("many", b"\xff"), strict=True):
            database.execute("UPDATE metrics SET value = ? WHERE rowid = ?", (broken, row))
        database.execute("UPDATE params SET value = CAST(x'ff' AS TEXT) WHERE run_uuid = ?", (run_id,))
        database.execute("UPDATE runs SET end_time = 'soon'")
    store = store_of(str(copy), {}, str(tmp_path))
    assert {run.ended_ms for run in store.runs()} == {None}
    [broken_run] = [run for run in store.runs() if run.id == run_id]
    assert len(list(store.metrics(broken_run))) == total - 2
    assert store.unreadable == 2
    store.close()
    *_, report = import_mlflow(store_of(str(copy), {}, str(tmp_path)), str(tmp_path / "data"))
    assert report.left_out["values that are not numbers"] == 2
    assert not report.failed


def test_links_in_a_folder_are_not_followed(stores: dict[str, list[str]], tmp_path: Path) -> None:
    folder, (first, *_) = list(stores.items())[1]
    copy = tmp_path / "mlruns"
    shutil.copytree(folder, copy)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "id_rsa").write_text("private")
    (run,) = copy.glob(f"*/{first}")
    (run / "params" / "stolen").symlink_to(secret / "id_rsa")
    shutil.rmtree(run / "artifacts")
    (run / "artifacts").symlink_to(secret)
    assert main(["import", f"mlflow:{copy}", "--run", first, "--dir", str(tmp_path / "data")]) == 0
    imported = open_run(first, directory=str(tmp_path / "data"))
    assert "stolen" not in imported.config
    assert imported.files() == []


def test_what_is_no_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database, but long enough to be read as one" * 20)
    with pytest.raises(ValueError, match="not a SQLite file of MLflow"):
        store_of("text.db", {}, str(tmp_path))
    with pytest.raises(FileNotFoundError, match="there is no file"):
        store_of("sqlite:///none.db", {}, str(tmp_path))
    with pytest.raises(ValueError, match="not a folder of MLflow"):
        store_of(str(tmp_path), {}, "/")
    with pytest.raises(ValueError, match="cannot import from postgresql; start `mlflow server`"):
        store_of("postgresql://db/mlflow", {}, "/")
    with pytest.raises(ValueError, match="set MLFLOW_TRACKING_URI"):
        store_of("", {}, "/")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", 0.1), ("-3", -3), ("1e-3", 0.001), ("True", True), ("None", None), ("007", "007"), ("", ""),
        ("[1]", "[1]"), ("1" * 30, "1" * 30), ("1e999", "1e999"), ("nan", "nan"),
    ],
)  # fmt: skip
def test_parameters(text: str, value: object) -> None:
    assert parameter(text) == value
    assert type(parameter(text)) is type(value)


def test_values_of_one_step_are_one_row() -> None:
    values = [("a", 0), ("b", 0), ("a", 0), ("a", 1)]
    written = list(rows(MlflowMetric(key, 1.0, 5 + at, step) for at, (key, step) in enumerate(values)))
    assert written == [(5, 0, {"a": 1.0, "b": 1.0}), (7, 0, {"a": 1.0}), (8, 1, {"a": 1.0})]
