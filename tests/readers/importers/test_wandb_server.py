"""Import from a W&B server: our own, to which W&B's client has logged, and one that answers as W&B's does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter

import runvitals
from runvitals.cli import main
from runvitals.readers.importers.json_api import ApiError, JsonApi
from runvitals.readers.importers.wandb_server.importer import import_wandb
from runvitals.readers.importers.wandb_server.server import WandbServer
from runvitals.readers.journals import open_run
from tests.patience import PATIENCE_S
from tests.server.serving import Served, serving

CLIENT = """
import numpy, wandb
with open("model.bin", "wb") as file:
    file.write(b"weights")
settings = wandb.Settings(x_stats_sampling_interval=0.1, silent=True)
for number in range(2):
    run = wandb.init(entity="main", project="digits", name=f"try {number}", id=f"x{number}", tags=["a"],
                     config={"lr": 0.1}, notes="a note", group="g", job_type="train", settings=settings)
    for step in range(5):
        run.log({"loss": 1 / (step + 1), "weights": wandb.Histogram([1.0, 2.0, 3.0], num_bins=2)})
    run.log({"picture": wandb.Image(numpy.zeros((2, 3, 3), dtype=numpy.uint8), caption="black")})
    run.save("model.bin")
    print("almost done", flush=True)
    run.finish(number)
"""
CONFIG = {"lr": {"value": 0.1, "desc": None}, "_wandb": {"value": {}}, "api_key": {"value": "k1k2"}}
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301"
    "0100c9fe92ef0000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Our server, with two runs of W&B's client."""
    folder = tmp_path_factory.mktemp("wandb")
    with serving(folder / "server") as served:
        environ = {key: value for key, value in os.environ.items() if not key.startswith("WANDB_")}
        environ |= {"WANDB_BASE_URL": served.url, "WANDB_API_KEY": "x" * 40, "HOME": str(folder)}
        environ |= {"WANDB_DIR": str(folder), "WANDB_ERROR_REPORTING": "false"}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", CLIENT],
            env=environ, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        yield served


def test_runs_of_our_own_server(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_BASE_URL", served.url)
    monkeypatch.setenv("WANDB_API_KEY", "x" * 40)
    command = ["import", "wandb:main/digits", "--dir", str(tmp_path)]
    assert main(command) == 0, capsys.readouterr().err
    assert sorted(os.listdir(tmp_path / "runs")) == ["x0", "x1"]
    first, second = (open_run(run_id, directory=str(tmp_path)) for run_id in ("x0", "x1"))
    about = first.facts
    assert (about.name, about.project, about.state) == ("try 0", "digits", "finished")
    assert (about.tags, about.notes, about.group, about.job_type) == (["a"], "a note", "g", "train")
    assert second.state == "failed"
    assert first.config == {"lr": 0.1}
    assert first.summary["loss"] == pytest.approx(0.2)
    rows = [(row.step, row.data["loss"]) for row in first.history() if "loss" in row.data]
    assert rows == [(step, pytest.approx(1 / (step + 1))) for step in range(5)]
    keys = {statistic.key for statistic in first.statistics()}
    assert {"memory_percent", "proc.memory.rssMB"} <= keys
    names = [file.name for file in first.files()]
    assert "model.bin" in names
    assert {media.key: media.kind for media in first.media_keys()}["picture"] == "image"
    assert "almost done" in "".join(line.text for line in first.console())
    capsys.readouterr()
    assert main(command) == 0
    assert "2 runs exist already" in capsys.readouterr().out


def test_imported_runs_are_delivered(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    writer = EventFileWriter(str(tmp_path / "logs"))
    summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="loss", simple_value=0.25)])
    writer.add_event(event_pb2.Event(wall_time=1_700_000_000, step=3, summary=summary))
    writer.close()
    command = ["import", f"tensorboard:{tmp_path}/logs", "--dir", str(tmp_path), "--to", served.url]
    for expected in ("1 log() rows", "0 log() rows"):
        assert main(command) == 0, capsys.readouterr().err
        assert f"to {served.url}: 0 samples, {expected}" in capsys.readouterr().out
    (run_id,) = os.listdir(tmp_path / "runs")
    run = runvitals.Client(served.url).run(run_id)
    rows = [(row.step, row.data) for row in run.history()]
    run._connection.close()
    assert rows == [(3, {"loss": 0.25})]


class Answers(BaseHTTPRequestHandler):
    """Answers each request with the next of a list: (status, headers, body)."""

    script: list[tuple[int, dict[str, str], bytes]] = []
    seen: list[tuple[str, str | None, Any]] = []

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.seen.append((self.path, self.headers.get("Authorization"), body))
        status, headers, content = self.script.pop(0)
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _answer

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing."""


@pytest.fixture
def answers() -> Iterator[tuple[str, type[Answers]]]:
    """The URL of a server, and its list of answers."""
    handler = type("Scripted", (Answers,), {"script": [], "seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="answers")
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    thread.join()
    server.server_close()


def answer(run: dict[str, Any] | None = None, **project: Any) -> tuple[int, dict[str, str], bytes]:
    data = {"run": run} if run is not None else project
    return 200, {}, json.dumps({"data": {"project": data}}).encode()


def connection(*nodes: dict[str, Any], following: str | None = None) -> dict[str, Any]:
    edges = [{"node": node, "cursor": None} for node in nodes]
    return {"edges": edges, "pageInfo": {"endCursor": following, "hasNextPage": following is not None}}


@pytest.mark.parametrize(
    "project",
    [
        {"runs": None},
        {"runs": {"edges": 5}},
        {"runs": {"edges": [{"node": None}]}},
        {"runs": {"edges": [{"node": {"id": "x"}}], "pageInfo": []}},
        [],
    ],
)
def test_an_answer_of_another_form(
    answers: tuple[str, type[Answers]], tmp_path: Path, project: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    url, server = answers
    server.script[:] = [(200, {}, json.dumps({"data": {"project": project}}).encode())]
    assert main(["import", "wandb:team/digits", "--server", url, "--dir", str(tmp_path)]) == 1
    assert url in capsys.readouterr().err


def test_an_answer_of_mlflow_of_another_form(answers: tuple[str, type[Answers]], tmp_path: Path) -> None:
    url, server = answers
    experiments = {"experiments": [5, {"experiment_id": "1", "name": "digits"}]}
    info = {"run_id": "r1", "start_time": "soon", "end_time": [], "status": "FINISHED"}
    data = {"metrics": [{"key": "loss"}], "params": {"a": 1}, "tags": [None, {"key": "a", "value": [1]}]}
    values = [{"value": "x", "timestamp": 1}, None, {"value": 0.5, "timestamp": "1700000000000", "step": 2}]
    contents = [experiments, {"runs": [{"info": info, "data": data}]}, {"metrics": values}, {"files": 5}]
    server.script[:] = [(200, {}, json.dumps(content).encode()) for content in contents]
    assert main(["import", f"mlflow:{url}", "--dir", str(tmp_path)]) == 0
    (row,) = open_run("r1", directory=str(tmp_path)).history()
    assert (row.step, row.data) == (2, {"loss": 0.5})
    server.script[:] = [(200, {}, json.dumps(each).encode()) for each in (experiments, {"runs": [{}]})]
    assert main(["import", f"mlflow:{url}", "--dir", str(tmp_path)]) == 1


def test_files_media_and_labels(
    answers: tuple[str, type[Answers]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, server = answers
    metadata = {"host": "node1", "os": "Linux", "program": "train.py", "args": ["--password", "hunter2"]}
    node = {
        "id": "x", "name": "abc", "displayName": "first", "state": "crashed", "tags": [], "notes": None,
        "config": json.dumps(CONFIG),
        "summaryMetrics": json.dumps({"loss": 0.5, "_step": 1500, "best": 1}), "historyLineCount": 3,
        "createdAt": "2023-11-14T22:13:20Z", "heartbeatAt": "2023-11-14T23:13:20",
    }  # fmt: skip
    picture = {"_type": "image-file", "path": "media/images/a.png", "width": 1, "height": 1, "caption": "one"}
    gallery = {"_type": "images/separated", "filenames": ["media/images/a.png"] * 2, "captions": ["a", "b"]}
    rows = [{"_step": 0, "_timestamp": 1_700_000_001.5, "loss": 1, "picture": picture, "gallery": gallery}]
    later = [{"_step": 1500, "_timestamp": 1_700_000_009, "loss": 0.5, "lost": {**picture, "path": "none"}}]
    events = [
        {"_timestamp": 1_700_000_000 + second, "system.cpu": 5, "system.cpu/l:node2": 7, "_runtime": second}
        for second in (0, 30)
    ]
    names = ["wandb-metadata.json", "media/images/a.png", "output.log", "model.bin"]
    files = [{"name": name, "directUrl": f"{url}/files/{name}", "sizeBytes": 1} for name in names]
    server.script[:] = [
        (429, {"Retry-After": "7"}, b"slow down"),
        answer(runs=connection(node, following="page2")),
        answer({"files": connection(*files)}),
        answer({"events": [json.dumps(event) for event in events]}),
        (200, {}, json.dumps(metadata).encode()),
        answer({"history": [json.dumps(row) for row in rows]}),
        *[(200, {}, PNG)] * 3,
        answer({"history": [json.dumps(row) for row in later]}),
        (200, {}, b"hello\nworld\n"),
        (200, {"RateLimit-Remaining": "0", "RateLimit-Reset": "3"}, b"weights"),
        answer(runs=connection({**node, "name": "still", "state": "running"})),
    ]
    waits: list[float] = []
    reports = list(import_wandb(WandbServer(url, "secret", waits.append), "team/digits", str(tmp_path)))
    report = reports[-1]
    assert (list(report.imported), report.failed) == (["abc"], {})
    assert report.left_out == {"runs that are still running": 1}
    assert waits == [7.0, 3.0]
    assert server.script == []
    run = open_run("abc", directory=str(tmp_path))
    assert (run.facts.state, run.facts.started_ms) == ("crashed", 1_700_000_000_000)
    assert run.facts.ended_ms == 1_700_003_600_000
    assert run.config == {"lr": 0.1, "api_key": "***"}
    assert run.summary["best"] == 1
    assert [(row.step, row.time_ms, row.data.get("loss")) for row in run.history()] == [
        (0, 1_700_000_001_500, 1), (1500, 1_700_000_009_000, 0.5),
    ]  # fmt: skip
    media = {key.key: run.media(key.key)[0].items for key in run.media_keys()}
    assert [item["caption"] for item in media["gallery"]] == ["a", "b"]
    assert (media["picture"][0]["type"], media["picture"][0]["caption"]) == ("image/png", "one")
    assert {(statistic.host, statistic.key, statistic.n) for statistic in run.statistics()} == {
        ("node1", "cpu", 2), ("node2", "cpu", 2),
    }  # fmt: skip
    assert [line.text for line in run.console()] == ["hello\nworld\n"]
    assert [file.name for file in run.files()] == ["model.bin"]
    assert run.facts.command == ["train.py", "--password", "***"]
    assert {authorization for _, authorization, _ in server.seen} == {"Basic YXBpOnNlY3JldA=="}


def test_failed_run_does_not_stop_the_others(answers: tuple[str, type[Answers]], tmp_path: Path) -> None:
    url, server = answers
    nodes = [
        {"name": name, "state": "finished", "createdAt": "2023-11-14T22:13:20Z"} for name in ("run 1", "ok")
    ]
    refused = (200, {}, b'{"errors": [{"message": "no such field"}]}')
    server.script[:] = [
        answer(runs=connection(*nodes)),
        refused,
        (200, {}, b'{"errors": [{"message": "broken"}]}'),
        refused,
        answer({"events": []}),
        refused,
    ]
    *_, report = import_wandb(WandbServer(url, None, lambda seconds: None), "team/digits", str(tmp_path))
    assert list(report.imported) == ["ok"]
    assert "broken" in report.failed["run_1-b945d8cb"]
    assert report.left_out["runs without their files, which the server does not list"] == 2
    assert os.listdir(tmp_path / "runs") == ["ok"]


def test_rows_far_apart_take_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [*range(3000), 500_000_000, *range(900_000_000, 900_002_500)]
    requests: list[int] = []

    def history(self: WandbServer, query: str, *path: str) -> dict[str, Any]:
        range_: Any = path[-1]
        in_range = [step for step in steps if range_["first"] <= step < range_["end"]]
        requests.append(len(in_range))
        kept = in_range[:: -(-len(in_range) // range_["count"]) or 1]
        return {"history": [json.dumps({"_step": step}) for step in kept]}

    monkeypatch.setattr(WandbServer, "_run", history)
    server = WandbServer("http://127.0.0.1:9", None)
    assert [row["_step"] for row in server.history("a", "b", "c", steps[-1] + 1)] == steps
    assert len(requests) < 100


def test_key_goes_to_its_server_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str | None] = []
    monkeypatch.setattr(WandbServer, "__init__", lambda self, url, key: sent.append(key))
    (tmp_path / "netrc").write_text(
        "machine other.example.org login user password stored\ndefault login user password of-anything\n"
    )
    environ = {"WANDB_API_KEY": "k", "NETRC": str(tmp_path / "netrc")}
    WandbServer.of(None, environ)
    WandbServer.of("https://other.example.org", environ)
    WandbServer.of("https://third.example.org", environ)
    WandbServer.of("https://mine.example.org/", {**environ, "WANDB_BASE_URL": "https://mine.example.org"})
    assert sent == ["k", "stored", None, "k"]


@pytest.mark.parametrize("path", ["", "digits", "a/b/c/d", "team//x"])
def test_invalid_paths(path: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ENTITY/PROJECT"):
        list(import_wandb(WandbServer("http://127.0.0.1:9", None), path, str(tmp_path)))


def test_requests_are_given_up(answers: tuple[str, type[Answers]]) -> None:
    url, server = answers
    server.script[:] = [(503, {}, b"")] * 6 + [(404, {}, b"none"), (200, {}, b"no JSON")]
    waits: list[float] = []
    api = JsonApi(url, {}, None, waits.append)
    for expected in ("503", "404 none", "returned no JSON object"):
        with pytest.raises(ApiError, match=expected):
            api.get("/x")
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0]
    api.close()
