"""Import of offline sessions of ClearML, as 2.1 writes them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import runvitals
from runvitals.cli import main

ID = "offline-eae8ae20ae574324bbd9eda3f18abe5f"
T0_MS = 1_795_991_483_322
RECORDED = f"/home/ann/.clearml/cache/offline/{ID}"
PICTURE = "digits/first.offline/metrics/img/s/img_s_00000000.png"
TASK = {
    "id": ID,
    "name": "first try",
    "project_name": "digits",
    "type": "training",
    "tags": ["baseline"],
    "comment": "a comment",
    "offline_folder": RECORDED,
    "script": {"binary": "python3.11", "entry_point": "train.py", "diff": "…"},
    "hyperparams": {
        "General": {
            "lr": {"section": "General", "name": "lr", "type": "float", "value": "0.1"},
            "tag": {"section": "General", "name": "tag", "type": "str", "value": "7"},
        },
        "Loader": {"batch": {"section": "Loader", "name": "batch", "type": "int", "value": "32"}},
    },
    "configuration": {"model": {"name": "model", "type": "dictionary", "value": "a = 1"}},
    "execution": {"artifacts": [{"key": "data", "uri": f"{RECORDED}/data/digits/data.json"}]},
    "offline_output_models": [],
}


def scalar(metric: str, variant: str, value: Any, step: int, at_ms: int = 0) -> dict[str, Any]:
    about = {"timestamp": T0_MS + at_ms, "type": "training_stats_scalar", "task": ID, "iter": step}
    return {**about, "metric": metric, "variant": variant, "value": value, "method": "get"}


EVENTS = [
    scalar("loss", "train", 1.0, 0),
    scalar("loss", "val", 2.0, 0),
    scalar("accuracy", "accuracy", 0.0, 0),
    scalar("loss", "train", 0.5, 1, 1000),
    scalar("loss", "train", 0.4, 1, 2000),  # the same step again
    scalar("Summary", "best", 0.95, -(2**31), 3000),
    scalar(":monitor:gpu", "gpu_0_utilization", 90.0, 1, 3000),
    scalar(":monitor:machine", "io_read_mbs", 3.0, 1, 3000),
    {"timestamp": T0_MS, "type": "plot", "iter": 1, "metric": "tab", "variant": "s", "plot_str": "{}"},
    {
        "timestamp": T0_MS,
        "type": "training_debug_image",
        "iter": 2,
        "metric": "img",
        "variant": "s",
        "key": PICTURE,
    },
    {
        "timestamp": T0_MS,
        "type": "training_debug_image",
        "iter": 3,
        "metric": "x",
        "variant": "s",
        "key": "../../etc/passwd",
    },
]


def session(folder: Path, *, closed: bool = True) -> Path:
    """Write a session as ClearML does, with its zip file once it is closed; return the folder of sessions."""
    path = folder / ID
    (path / "data" / PICTURE).parent.mkdir(parents=True)
    (path / "data" / PICTURE).write_bytes(b"\x89PNG\r\n\x1a\n")
    (path / "data" / "digits" / "data.json").write_text("{}")
    (path / "task.json").write_text(json.dumps(TASK))
    (path / "metrics.jsonl").write_text(f'{json.dumps(EVENTS[:4])}\n\n{json.dumps(EVENTS[4:])}\n[{{"cut')
    printed = {"timestamp": T0_MS + 4000, "type": "log", "level": "info", "msg": "hello"}
    (path / "log.jsonl").write_text(json.dumps([printed]) + "\n")
    if closed:
        shutil.make_archive(str(path), "zip", path)
    return folder


def test_a_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = ["--dir", str(tmp_path / "ours")]
    source = f"clearml:{session(tmp_path / 'offline')}"
    assert main(["import", source, "--dry-run", *ours]) == 0
    assert not (tmp_path / "ours").exists()
    assert main(["import", source, *ours]) == 0
    said = capsys.readouterr().out
    assert "not imported: 1 × events of the type plot" in said
    assert "not imported: 1 × images whose file is missing" in said
    assert "not imported: 1 × events that cannot be read" in said
    run = runvitals.open_run(ID, str(tmp_path / "ours"))
    facts = run.facts
    assert (facts.name, facts.project, facts.tags, facts.notes) == (
        "first try",
        "digits",
        ["baseline"],
        "a comment",
    )
    assert (run.state, facts.started_ms, facts.command) == ("finished", T0_MS, ["python3.11", "train.py"])
    assert run.config == {"lr": 0.1, "tag": "7", "Loader/batch": 32, "configuration/model": "a = 1"}
    assert [(row.step, row.data) for row in run.history()] == [
        (0, {"loss/train": 1.0, "loss/val": 2.0, "accuracy": 0.0}),
        (1, {"loss/train": 0.5}),
        (1, {"loss/train": 0.4, ":monitor:machine/io_read_mbs": 3.0}),
    ]
    assert run.summary["best"] == 0.95
    assert run.metrics("gpu.0.gpu")["gpu.0.gpu"].values.tolist() == [90.0]
    assert [each.key for each in run.media_keys()] == ["img/s"]
    assert [file.name for file in run.files()] == ["data/data.json"]
    assert "".join(piece.text for piece in run.console()) == "hello\n"
    assert main(["import", source, *ours]) == 0
    assert "1 runs exist already" in capsys.readouterr().out


def test_a_session_that_was_not_closed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = ["--dir", str(tmp_path / "ours")]
    folder = session(tmp_path / "offline", closed=False) / ID
    assert main(["import", f"clearml:{folder}", *ours]) == 0
    assert "sessions that may go on" in capsys.readouterr().out
    for file in folder.iterdir():
        os.utime(file, (0, 0))
    assert main(["import", f"clearml:{folder}", *ours, "--project", "old"]) == 0
    assert "; it was not closed" in capsys.readouterr().out
    assert runvitals.open_run(ID, str(tmp_path / "ours")).state == "crashed"


def test_what_is_no_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = ["--dir", str(tmp_path / "ours")]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert main(["import", f"clearml:{empty}", *ours]) == 1
    assert "there is no offline session of ClearML" in capsys.readouterr().err
    (empty / "broken.zip").write_bytes(b"PK\x03\x04 no")
    shutil.make_archive(str(empty / "other"), "zip", session(tmp_path / "offline") / ID / "data")
    (empty / "wrong").mkdir()
    (empty / "wrong" / "task.json").write_text("[1]")
    assert main(["import", f"clearml:{empty}", *ours]) == 1
    errors = capsys.readouterr().err
    for text in ("broken.zip cannot be unpacked", "other.zip is no session", "is no task of ClearML"):
        assert text in errors
