"""Sources that are damaged or malicious: what can be read is imported, and the rest is named."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from runvitals.cli import main
from runvitals.readers.importers.histograms import histogram
from runvitals.readers.importers.report import ImportReport
from tests.readers.importers import test_clearml as clearml
from tests.readers.importers import test_neptune as neptune
from tests.readers.importers import test_tensorboard as tensorboard
from tests.readers.importers import test_trackio as trackio
from tests.readers.wandb_files import files as wandb_files

Output = pytest.CaptureFixture[str]


def imported(source: str, tmp_path: Path, capsys: Output) -> tuple[list[str], str]:
    """Import twice; return the runs, and what was printed the first time."""
    data = tmp_path / "data"
    assert main(["import", source, "--dir", str(data)]) == 1
    captured = capsys.readouterr()
    runs = sorted(os.listdir(data / "runs"))
    assert main(["import", source, "--dir", str(data)]) == 1
    assert sorted(os.listdir(data / "runs")) == runs
    capsys.readouterr()
    return runs, captured.out + captured.err


def plant(folder: Path, suffix: str) -> Path:
    """Put a pipe, a link out of the folder and a link in a circle beside files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / f"outside{suffix}").write_text("step,secret\n1,2\n")
    os.mkfifo(folder / f"pipe{suffix}")
    (folder / f"link{suffix}").symlink_to(folder.parent / f"outside{suffix}")
    (folder / "circle").symlink_to(folder)
    return folder


def test_damaged_csv(tmp_path: Path, capsys: Output) -> None:
    folder = plant(tmp_path / "tables", ".csv")
    (folder / "good.csv").write_text("step,loss\n1,0.5\n99999999999999999999,0.4\n")
    (folder / "bad.csv").write_bytes(b"\0\xff" * 100)
    (folder / "cut.csv.gz").write_bytes(gzip.compress(b"step,loss\n" + b"1,0.5\n" * 1000)[:-9])
    runs, text = imported(f"csv:{folder}", tmp_path, capsys)
    assert [run.partition("-")[0] for run in runs] == ["good"]
    for part in (
        "2 × files that are pipes",
        "bad.csv: no numeric column",
        "cut.csv.gz: the packed",
        "1 × a step",
    ):
        assert part in text
    assert main(["import", f"csv:{folder / 'pipe.csv'}"]) == 1
    assert "pipe.csv is not a file" in capsys.readouterr().err


def test_only_damage_is_reported_as_damage() -> None:
    report = ImportReport()
    with report.reporting("run"):
        raise ValueError("cut")
    assert report.failed == {"run": "cut"}
    for ours in (AttributeError, TypeError, KeyError, AssertionError):
        with pytest.raises(ours), report.reporting("run"):
            raise ours("a mistake in the code")


@pytest.mark.parametrize("counts", [[1, None], [1, "2"], [1, [2]], 5, None, [1], []])
def test_what_is_no_histogram(counts: object) -> None:
    assert histogram(counts, [0, 1, 2]) is None
    assert histogram([1, 2], counts) is None


def test_damaged_tensorboard(tmp_path: Path, capsys: Output) -> None:
    from tensorboard.compat.proto.summary_pb2 import Summary

    folder = plant(tmp_path / "logs", ".tfevents.1")
    tensorboard.write(folder / "good", (1, [Summary.Value(tag="loss", simple_value=0.5)]))
    (folder / "bad").mkdir()
    (folder / "bad" / "events.out.tfevents.1").write_bytes(b"\xff" * 7 + b"\x3f" + bytes(100))
    runs, text = imported(f"tensorboard:{folder}", tmp_path, capsys)
    assert [run.partition("-")[0] for run in runs] == ["good"]
    assert "events.out.tfevents.1 is damaged, and has no values that can be read" in text
    assert "2 × files that are pipes" in text


def test_damaged_neptune(tmp_path: Path, capsys: Output) -> None:
    folder = plant(tmp_path / "export", ".parquet")
    good = neptune.write(folder / "good.parquet", neptune.logged("loss", "1", 0.5))
    (folder / "cut.parquet").write_bytes(good.read_bytes()[:300])
    types = {"step": pa.date32(), "timestamp": pa.string(), "attribute_path": pa.list_(pa.string())}
    types["histogram_value"] = pa.int64()
    for name, type in types.items():
        schema = neptune.SCHEMA.set(neptune.SCHEMA.get_field_index(name), pa.field(name, type))
        parquet.write_table(schema.empty_table(), folder / f"{name}.parquet")
    runs, text = imported(f"neptune:{folder}", tmp_path, capsys)
    assert runs == ["SAN-1"]
    for name in types:
        assert f"{name}.parquet is no export of Neptune: {name} has the type " in text
    assert "cut.parquet is no Parquet file" in text
    assert "2 × files that are pipes" in text


def test_damaged_clearml(tmp_path: Path, capsys: Output) -> None:
    folder = plant(tmp_path / "sessions", ".zip")
    events = [
        {**event, "timestamp": moment}
        for event, moment in zip(
            [clearml.scalar("m", "v", number, number) for number in range(3)],
            (float("nan"), 10**400, 1_700_000_000_000),
            strict=True,
        )
    ]
    contents = {"good": json.dumps(events), "bomb": "", "deep": ""}
    for name, metrics in contents.items():
        task = json.dumps({**clearml.TASK, "id": f"../{name}"})
        deep = '{"id":' + "[" * 100_000
        with zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("task.json", deep if name == "deep" else task)
            archive.writestr("metrics.jsonl", metrics)
            archive.writestr("data/../../../stray", "x")
            if name == "bomb":
                archive.getinfo("metrics.jsonl").file_size = (1 << 31) - 1
    runs, text = imported(f"clearml:{folder}", tmp_path, capsys)
    assert len(runs) == 1
    for part in (
        "bomb.zip unpacks to more than 200",
        "is not the JSON of a task",
        "2 × events that cannot be read",
    ):
        assert part in text
    assert not (tmp_path / "stray").exists()


def test_damaged_trackio(tmp_path: Path, capsys: Output) -> None:
    folder = tmp_path / "projects"
    trackio.project(folder, [{"loss": 0.5, "a\x1b[31m\0": 1}])
    plant(folder, ".db")
    recursive = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n AS run_name FROM r"
    made = {
        "view": f"CREATE VIEW metrics AS {recursive}",
        "computed": "CREATE TABLE metrics (run_name, step, metrics AS (zeroblob(900000000)))",
        "deep": "CREATE TABLE metrics (id, run_name, step, timestamp, metrics)",
    }
    for name, statement in made.items():
        database = sqlite3.connect(folder / f"{name}.db")
        database.execute(statement)
        if name == "deep":
            rows = [("[" * 100_000, 1), ('{"loss": 1e999}', -(2**62)), (b"\xff", "x"), ('{"loss": 1}', 2)]
            query = "INSERT INTO metrics VALUES (1, 'r', ?, '2025-01-01', ?)"
            database.executemany(query, [(step, metrics) for metrics, step in rows])
        database.commit()
        database.close()
    (folder / "cut.db").write_bytes((folder / "deep.db").read_bytes()[:5000])
    runs, text = imported(f"trackio:{folder}", tmp_path, capsys)
    assert len(runs) == 2
    for part in (
        "metrics is no table",
        "metrics has computed columns",
        "cut.db: ",
        "2 × rows that cannot be read",
    ):
        assert part in text
    assert "\x1b" not in text


def test_damaged_mlflow(tmp_path: Path, capsys: Output) -> None:
    folder = tmp_path / "mlruns"
    about = (
        "run_id: {}\nstatus: 3\nstart_time: ²\nend_time: 99999999999999999999999\nlifecycle_stage: active\n"
    )
    for run in ("good", "stray", "closed"):
        (folder / "0" / run / "metrics").mkdir(parents=True)
        (folder / "0" / run / "tags").mkdir()
        (folder / "0" / run / "meta.yaml").write_text(
            about.format("../../../other" if run == "stray" else run)
        )
        (folder / "0" / run / "metrics" / "loss").write_text(f"5 0.5 1\n{'9' * 6000} 1 1\n{'z' * 50_000}")
    (folder / "0" / "meta.yaml").write_text("name: digits\n")
    (folder / "0" / "circle").symlink_to(folder / "0")
    os.mkfifo(folder / "0" / "good" / "tags" / "pipe")
    (folder / "0" / "closed" / "meta.yaml").unlink()
    os.mkfifo(folder / "0" / "closed" / "meta.yaml")
    data = str(tmp_path / "data")
    assert main(["import", f"mlflow:{folder}", "--dir", data]) == 0
    text = capsys.readouterr().out
    assert "4 × values that are not numbers" in text
    assert text.count("1 log() rows, 0 files") == 2
    assert len(os.listdir(tmp_path / "data" / "runs")) == 2


def test_damaged_wandb(tmp_path: Path, capsys: Output) -> None:
    folder = plant(tmp_path / "wandb", ".wandb")
    wandb_files.write(folder / "good.wandb", wandb_files.started("good"))
    wandb_files.write(folder / "name.wandb", wandb_files.started("../../name"))
    (folder / "cut.wandb").write_bytes((folder / "good.wandb").read_bytes()[:9])
    runs, text = imported(str(folder), tmp_path, capsys)
    assert runs == ["good"]
    for part in (
        "2 × files that are pipes",
        "name.wandb: invalid run id",
        "cut.wandb does not contain a run",
    ):
        assert part in text
