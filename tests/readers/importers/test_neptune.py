"""Import of the Parquet files of neptune-exporter."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import runvitals
from runvitals.cli import main

SCHEMA = pa.schema(
    {
        "project_id": pa.string(),
        "run_id": pa.string(),
        "attribute_path": pa.string(),
        "attribute_type": pa.string(),
        "step": pa.decimal128(18, 6),
        "timestamp": pa.timestamp("ms", "UTC"),
        "int_value": pa.int64(),
        "float_value": pa.float64(),
        "string_value": pa.string(),
        "bool_value": pa.bool_(),
        "datetime_value": pa.timestamp("ms", "UTC"),
        "string_set_value": pa.list_(pa.string()),
        "file_value": pa.struct({"path": pa.string()}),
        "histogram_value": pa.struct(
            {"type": pa.string(), "edges": pa.list_(pa.float64()), "values": pa.list_(pa.float64())}
        ),
    }
)
T0 = datetime(2025, 12, 1, tzinfo=timezone.utc)
T0_MS = 1_764_547_200_000


def attribute(
    path: str, kind: str, value: Any, run: str = "SAN-1", project: str = "ws/proj"
) -> dict[str, Any]:
    row = {"project_id": project, "run_id": run, "attribute_path": path, "attribute_type": kind}
    return {**row, f"{kind.removesuffix('_series')}_value": value}


def logged(
    path: str, step: str, value: Any, ms: int = 0, kind: str = "float_series", **more: str
) -> dict[str, Any]:
    moment = T0.replace(microsecond=ms * 1000)
    return {**attribute(path, kind, value, **more), "step": Decimal(step), "timestamp": moment}


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(list(rows), schema=SCHEMA), path)
    return path


def imported(path: Path, data: Path) -> list[str]:
    assert main(["import", f"neptune:{path}", "--dir", str(data)]) == 0
    return sorted(os.listdir(data / "runs"))


def history(run: str, data: Path) -> list[tuple[Any, int, dict[str, Any]]]:
    return [(row.step, row.time_ms, dict(row.data)) for row in runvitals.open_run(run, str(data)).history()]


def test_decimal_steps_names_and_times_are_kept(tmp_path: Path) -> None:
    write(
        tmp_path / "export" / "data" / "SAN-1_part_0.parquet",
        attribute("sys/name", "string", "exp α"),
        attribute("sys/tags", "string_set", ["b", "größer"]),
        attribute("params/seed", "int", 9_007_199_254_740_993),
        attribute("params/lr", "float", 1e-5),
        attribute("sys/failed", "bool", True),
        logged("metrics/loss", "0.25", 1.5, 1),
        logged("metrics/loss", "0.5", 1.25, 2),
        logged("metrics_loss", "1", 9.0, 3),
        logged("metrics/loss", "1.000001", 0.5, 3),
    )
    write(
        tmp_path / "export" / "data" / "SAN-1_part_1.parquet",
        logged("metrics/acc", "0.5", 0.75, 2),
        logged("notes", "2", "halfway", 4, "string_series"),
        logged("monitoring/stdout", "0", "Epoch 1 \x1b[32mok\x1b[0m", 0, "string_series"),
        logged(
            "hist/w", "1", {"type": "COUNTING", "edges": [0, 1, 2], "values": [3, 4]}, 5, "histogram_series"
        ),
    )
    data = tmp_path / "data"
    assert imported(tmp_path / "export", data) == ["SAN-1"]
    assert [row for row in history("SAN-1", data) if "hist/w" not in row[2]] == [
        (0.25, T0_MS + 1, {"metrics/loss": 1.5}),
        (0.5, T0_MS + 2, {"metrics/loss": 1.25, "metrics/acc": 0.75}),
        (1, T0_MS + 3, {"metrics_loss": 9.0}),
        (1.000001, T0_MS + 3, {"metrics/loss": 0.5}),
        (2, T0_MS + 4, {"notes": "halfway"}),
    ]
    run = runvitals.open_run("SAN-1", str(data))
    assert (run.facts.name, run.facts.project, run.state) == ("exp α", "proj", "failed")
    assert run.facts.tags == ["b", "größer"]
    assert dict(run.config) == {"params/seed": 9_007_199_254_740_993, "params/lr": 1e-5}
    assert "Epoch 1" in "".join(line.text for line in run.console())


def test_a_second_import_adds_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.parquet", logged("loss", "1", 1.0))
    imported(file, tmp_path / "data")
    before = history("SAN-1", tmp_path / "data")
    assert imported(file, tmp_path / "data") == ["SAN-1"]
    assert history("SAN-1", tmp_path / "data") == before
    assert "1 runs exist already" in capsys.readouterr().out


def test_equal_ids_of_two_projects_are_two_runs(tmp_path: Path) -> None:
    write(
        tmp_path / "a.parquet",
        logged("loss", "1", 1.0, project="ws/a"),
        logged("loss", "1", 2.0, project="ws/b"),
    )
    runs = imported(tmp_path / "a.parquet", tmp_path / "data")
    assert len(runs) == 2
    values = {history(run, tmp_path / "data")[0][2]["loss"] for run in runs}
    assert values == {1.0, 2.0}


def test_files_outside_the_export_are_not_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "secret").write_text("key", encoding="utf-8")
    (tmp_path / "export" / "files").mkdir(parents=True)
    (tmp_path / "export" / "files" / "model.bin").write_bytes(b"weights")
    write(
        tmp_path / "export" / "a.parquet",
        logged("loss", "1", 1.0),
        attribute("model", "file", {"path": "model.bin"}),
        attribute("stolen", "file", {"path": "../../secret"}),
        attribute("absolute", "file", {"path": str(tmp_path / "secret")}),
    )
    imported(tmp_path / "export", tmp_path / "data")
    assert "not imported: 2 × files that the export does not have" in capsys.readouterr().out
    contents = {path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    assert b"weights" in contents
    assert b"key" not in contents


def test_another_parquet_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parquet.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    assert main(["import", f"neptune:{tmp_path / 'a.parquet'}", "--dir", str(tmp_path / "data")]) != 0
    assert "is no export of Neptune: it has no column run_id" in capsys.readouterr().err
