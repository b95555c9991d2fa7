"""Import of `.wandb` files."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runvitals.base.protobuf import double, text, uint
from runvitals.cli import main
from runvitals.readers.journals import open_run
from runvitals.readers.wandb_files.importer import import_file
from runvitals.readers.wandb_files.records import decode
from tests.patience import PATIENCE_S
from tests.readers.wandb_files import files

REAL = """
import math, sys, time, wandb
settings = wandb.Settings(x_stats_sampling_interval=0.1, silent=True)
run = wandb.init(project="digits", name="first", mode="offline", config={"lr": 0.1, "net": {"depth": 3}},
                 tags=["a"], settings=settings)
for i in range(10):
    run.log({"loss": 1 / (i + 1), "net": {"norm": i}, "odd": math.nan if i == 3 else 1.0})
    time.sleep(0.05)
print("almost done", flush=True)
run.alert("hot", "the GPU is hot", level="WARN")
run.finish(3)
"""


def test_run_of_the_real_client(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("WANDB_")}
    environ |= {"WANDB_DIR": str(tmp_path), "HOME": str(tmp_path), "WANDB_ERROR_REPORTING": "false"}
    command = [sys.executable, "-c", REAL, "--api-key", "hunter2"]
    done = subprocess.run(
        command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr

    ours = tmp_path / "ours"
    assert main(["import", str(tmp_path / "wandb"), "--dir", str(ours)]) == 0
    output = capsys.readouterr().out
    assert "of project digits: " in output
    assert "10 log() rows" in output
    [folder] = (ours / "runs").iterdir()
    run = open_run(folder.name, directory=str(ours))
    about = run.facts
    assert (about.name, about.state, about.exit_code, about.tags) == ("first", "failed", 3, ["a"])
    assert run.config == {"lr": 0.1, "net": {"depth": 3}}
    assert run.summary["loss"] == 0.1
    rows = list(run.history())
    assert [row.step for row in rows] == list(range(10))
    assert math.isnan(rows[3].data["odd"])
    assert rows[9].data["net.norm"] == 9
    assert [(event.level, event.text) for event in run.events] == [("warning", "the GPU is hot")]
    keys = {statistic.key for statistic in run.statistics()}
    assert {"proc.memory.rssMB", "memory_percent", "network.recv", "disk./.usagePercent"} <= keys
    assert "hunter2" not in "".join(path.read_bytes().decode("latin-1") for path in folder.iterdir())


def test_all_types_of_records(tmp_path: Path) -> None:
    path = files.write(
        tmp_path / "run-abc.wandb",
        files.started(lr=0.1, _wandb={"value": {"cli_version": "0.31"}}),
        files.stats(0, cpu=12.5, memory=40, gpu__0__powerWatts=70.5, custom=3),
        files.stats(15, cpu=50.0),
        files.stats(15, **{"cpu/l:node2": 25.0}),
        files.row(0, 1.25, {"loss": 0.5, "net|norm": 2}),
        files.row(7, 2.5, {"loss": math.nan, "image": {"_type": "image-file", "path": "a.png"}}),
        files.printed(3, "hello\n"),
        files.printed(4, "\x1b[31mred\n", error=True),
        text(5, files.items(1, {"late": [1, 2]})),
        text(3, files.items(1, {"best": 0.9, "_wandb|runtime": 9})),
        text(
            26, text(1, "Linux") + text(2, "3.11") + uint(16, 8) + text(9, text(1, "https://u:pw@host/r.git"))
        ),
        text(6, b"files"),
        files.ended(0, 20),
    )
    imported = import_file(path, str(tmp_path / "ours"))
    assert (imported.samples, imported.rows, imported.console_records, imported.damaged, imported.cut) == (
        3,
        2,
        2,
        0,
        False,
    )
    run = open_run("abc", directory=str(tmp_path / "ours"))
    about = run.facts
    assert (about.state, about.project, about.duration_ms) == ("finished", "vision", 20_000)
    keys = {(statistic.host, statistic.key) for statistic in run.statistics()}
    mine = {("node1", key) for key in ("cpu", "memory_percent", "gpu.0.powerWatts", "custom")}
    assert keys == {*mine, ("node2", "cpu")}
    assert {host.name: host.interval_s for host in about.hosts} == {"node1": 15.0, "node2": 15.0}
    assert run.config == {"lr": 0.1, "late": [1, 2]}
    assert run.summary == {"loss": pytest.approx(math.nan, nan_ok=True), "net.norm": 2, "best": 0.9}
    first, second = run.history()
    assert (first.step, first.time_ms, first.data) == (0, 1_700_000_001_250, {"loss": 0.5, "net.norm": 2})
    assert second.step == 7
    assert [(line.stream, line.text) for line in run.console()] == [
        ("stdout", "hello\n"),
        ("stderr", "\x1b[31mred\n"),
    ]
    assert about.machines["node1"]["git"]["remote"] == "https://u:***@host/r.git"


def test_typed_values_of_newer_clients() -> None:
    def item(key: str, value: bytes) -> bytes:
        return text(1, text(1, key) + value)

    record = decode(
        text(2, item("a", uint(4, 1)) + item("b", uint(5, 5)) + item("c", double(6, 0.5))
        + item("d", text(7, "x")) + item("e", text(8, '{"f": [1]}')) + item("g", uint(3, 0)))
    )  # fmt: skip
    assert record is not None
    assert record.data == {"a": True, "b": -3, "c": 0.5, "d": "x", "e": {"f": [1]}, "g": None}  # type: ignore[union-attr]


def test_killed_run_is_crashed(tmp_path: Path) -> None:
    path = files.write(tmp_path / "run-abc.wandb", files.started(), files.stats(0, cpu=1.0))
    data = Path(path).read_bytes()
    Path(path).write_bytes(data + files.chunk(1, files.stats(15, cpu=2.0))[:-3])
    os.utime(path, (1_700_000_100, 1_700_000_100))
    imported = import_file(path, str(tmp_path / "ours"))
    assert (imported.samples, imported.cut) == (1, True)
    assert open_run("abc", directory=str(tmp_path / "ours")).state == "crashed"


def test_malformed_records_are_counted_and_skipped(tmp_path: Path) -> None:
    path = files.write(
        tmp_path / "run-abc.wandb",
        files.started(),
        b"\x0b",
        text(2, text(1, text(16, "{"))),
        files.ended(0, 1),
    )
    assert import_file(path, str(tmp_path / "ours")).damaged == 2


def test_existing_run_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = files.write(tmp_path / "run-abc.wandb", files.started(), files.ended(0, 1))
    ours = ["--dir", str(tmp_path / "ours")]
    assert main(["import", path, *ours]) == 0
    assert main(["import", path, *ours]) == 1
    assert "run abc already exists" in capsys.readouterr().err
    assert main(["import", path, "--run", "other", "--project", "p", *ours]) == 0
    assert sorted(os.listdir(tmp_path / "ours/runs")) == ["abc", "other"]
    assert main(["import", str(tmp_path), path, "--run", "x", *ours]) == 2
    assert "2 files were found" in capsys.readouterr().err


def test_errors_name_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = ["--dir", str(tmp_path / "ours")]
    for payloads, why in (
        ((), "does not contain a run"),
        ((files.started(run="../x"),), "invalid run id '../x'"),
    ):
        path = files.write(tmp_path / "run-abc.wandb", *payloads)
        assert main(["import", path, *ours]) == 1
        assert why in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["import", str(tmp_path / "empty"), *ours]) == 1
    assert "no .wandb file found; expected a .wandb file, a folder of them" in capsys.readouterr().err
    for name, why in (
        ("x.bin", "x.bin: expected a .wandb file, a folder of them, or one of wandb:ENTITY"),
        ("x.csv", f"use csv:{tmp_path / 'x.csv'} for a CSV file"),
        ("events.out.tfevents.1.host", f"use tensorboard:{tmp_path} for the event files"),
        ("mlflow.db", f"use mlflow:{tmp_path / 'mlflow.db'} for a store of MLflow"),
    ):
        (tmp_path / name).touch()
        assert main(["import", str(tmp_path / name), *ours]) == 1
        assert why in capsys.readouterr().err
    assert main(["import", "comet:team/project", *ours]) == 1
    assert "expected a .wandb file" in capsys.readouterr().err
    assert not (tmp_path / "ours/runs").exists() or os.listdir(tmp_path / "ours/runs") == []
