"""Import of the SQLite files of trackio: of 0.43, and of before runs had ids."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import runvitals
from runvitals.cli import main

ID = "6fda2be4e03847cdb3e907226f31df87"
T0 = "2026-11-29T18:11:27.132757+00:00"
T0_MS = 1_795_975_887_132


def project(folder: Path, rows: list[dict[str, Any]], *, old: bool = False) -> Path:
    """Write the project `digits` as trackio does: JSON as blobs, or in old files as texts."""
    folder.mkdir()
    with sqlite3.connect(folder / "digits.db") as database:
        run = "" if old else "run_id TEXT NOT NULL, "
        key = {} if old else {"run_id": ID}
        database.execute(
            f"CREATE TABLE metrics (id INTEGER PRIMARY KEY, {run}timestamp TEXT, run_name TEXT, "
            "step INTEGER, metrics TEXT)"
        )
        database.execute(
            f"CREATE TABLE configs (id INTEGER PRIMARY KEY, {run}run_name TEXT, config TEXT, created_at TEXT)"
        )
        database.execute(
            f"CREATE TABLE system_metrics (id INTEGER PRIMARY KEY, {run}timestamp TEXT, run_name TEXT, "
            "metrics TEXT)"
        )
        config = {"lr": 0.1, "_Username": "ann", "_Group": "g"}
        _insert(database, "configs", **key, run_name="first", config=_stored(config, old), created_at=T0)
        for step, row in enumerate(rows):
            values = {"timestamp": T0, "run_name": "first", "step": step, "metrics": _stored(row, old)}
            _insert(database, "metrics", **key, **values)
        system = {
            "gpu/0/allocated_memory": 1.0,
            "gpu/0/power": 300,
            "cpu/utilization": 50.0,
            "disk/read_iops": 7,
        }
        values = {"timestamp": T0, "run_name": "first", "metrics": _stored(system, old)}
        _insert(database, "system_metrics", **key, **values)
        if not old:
            database.execute(
                "CREATE TABLE alerts (id INTEGER PRIMARY KEY, run_id TEXT, timestamp TEXT, run_name TEXT, "
                "title TEXT, text TEXT, level TEXT, step INTEGER)"
            )
            alert = {
                "timestamp": T0,
                "run_name": "first",
                "title": "Careful",
                "text": "it rises",
                "level": "warn",
            }
            _insert(database, "alerts", **key, **alert)
    return folder


def _stored(values: dict[str, Any], old: bool) -> str | bytes:
    text = json.dumps(values)
    return text if old else text.encode()


def _insert(database: sqlite3.Connection, table: str, **values: Any) -> None:
    names, places = ", ".join(values), ", ".join("?" * len(values))
    database.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", list(values.values()))


def imported(path: Path, data: Path) -> list[str]:
    assert main(["import", f"trackio:{path}", "--dir", str(data)]) == 0
    return sorted(os.listdir(data / "runs"))


@pytest.mark.parametrize("old", [False, True])
def test_values_configuration_and_system_metrics(tmp_path: Path, old: bool) -> None:
    folder = project(tmp_path / "trackio", [{"loss": 1.0}, {"loss": 0.5, "bad": "NaN"}], old=old)
    data = tmp_path / "data"
    (id_here,) = imported(folder, data)
    assert id_here == ID if not old else id_here.startswith("first-")
    run = runvitals.open_run(id_here, str(data))
    facts = run.facts
    assert (facts.name, facts.project, facts.group, facts.state) == ("first", "digits", "g", "finished")
    assert dict(run.config) == {"lr": 0.1}
    rows = [(row.step, row.time_ms, row.data["loss"]) for row in run.history() if "loss" in row.data]
    assert rows == [(0, T0_MS, 1.0), (1, T0_MS, 0.5)]
    assert {"gpu.0.memoryAllocatedBytes", "gpu.0.powerWatts", "cpu.mean"} <= set(run.metrics())
    assert imported(folder, data) == [id_here]


def test_media_tables_and_alerts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, Any]] = [
        {"img": {"_type": "trackio.image", "file_path": "digits/first/0/a.png", "caption": "black"}},
        {"table": {"_type": "trackio.table", "_value": [{"a": 1, "b": "x"}, {"a": 2}]}},
        {"hist": {"_type": "trackio.histogram", "bins": [0, 1, 2], "values": [3, 4]}},
        {"note": {"_type": "trackio.markdown", "_value": "# hi"}},
        {"stolen": {"_type": "trackio.image", "file_path": "../../secret.png"}},
        {"mesh": {"_type": "trackio.object3d", "file_path": "digits/first/5/a.glb"}},
    ]
    folder = project(tmp_path / "trackio", rows)
    picture = folder / "media" / "digits" / "first" / "0" / "a.png"
    picture.parent.mkdir(parents=True)
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + b"0" * 20)
    (tmp_path / "secret.png").write_bytes(b"key")
    data = tmp_path / "data"
    imported(folder, data)
    run = runvitals.open_run(ID, str(data))
    assert {media.key: media.kind for media in run.media_keys()} == {
        "img": "image",
        "table": "table",
        "hist": "histogram",
        "note": "text",
    }
    assert [event.text for event in run.events if event.name == "alert"] == ["Careful: it rises"]
    said = capsys.readouterr().out
    assert "not imported: 1 × media whose file is missing" in said
    assert "not imported: 1 × values of the type trackio.object3d" in said
    assert b"key" not in {path.read_bytes() for path in data.rglob("*") if path.is_file()}


def test_a_row_that_cannot_be_read_is_counted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path / "trackio", [{"loss": 1.0}, {"loss": 0.5}])
    with sqlite3.connect(folder / "digits.db") as database:
        database.execute("UPDATE metrics SET metrics = '{' WHERE step = 1")
    imported(folder, tmp_path / "data")
    assert "not imported: 1 × rows that cannot be read" in capsys.readouterr().out


def test_another_database_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("CREATE TABLE a (b)")
    assert main(["import", f"trackio:{tmp_path / 'other.db'}", "--dir", str(tmp_path / "data")]) != 0
    assert "is not a SQLite file of trackio" in capsys.readouterr().err
