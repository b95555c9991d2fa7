"""The same training with W&B's package, offline, and with ours: what both recorded."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from runvitals.readers.journals import open_run
from runvitals.readers.journals.run_handle import OpenRun
from runvitals.readers.wandb_files.importer import import_file
from tests.patience import PATIENCE_S

SCRIPT = """
import argparse, os, sys
import numpy

def training(first):
    wandb.login()
    parsed = argparse.Namespace(epochs=3, layers=[4, 2])
    run = wandb.init(entity="team", project="digits", group="g", job_type="train", name="first",
                     id=first, tags=["a", "b"], notes="a note", config=parsed, resume="allow",
                     mode=MODE, reinit=True, settings=wandb.Settings(silent=True))
    assert wandb.run is run
    wandb.config.update({"lr": 0.1, "net": {"depth": 3}}, allow_val_change=True)
    wandb.config.seed = 7
    assert wandb.config.lr == wandb.config["lr"] == 0.1 and wandb.config["net"]["depth"] == 3
    wandb.define_metric("val/*", step_metric="epoch")
    for epoch in range(wandb.config.epochs):
        wandb.log({"epoch": epoch, "train": {"loss": 1 / (epoch + 1)}}, commit=False)
        wandb.log({"val/accuracy": numpy.float32(0.25 * epoch), "good": True, "word": "w"})
    wandb.log({"late": 1.5}, step=9)
    wandb.summary["best"] = 0.5
    table = wandb.Table(columns=["n", "word"], data=[[1, "one"]])
    table.add_data(2, "two")
    assert table.get_column("n") == [1, 2]
    wandb.log({
        "image": wandb.Image(numpy.zeros((4, 4, 3), dtype=numpy.uint8), caption="black"),
        "images": [wandb.Image(numpy.zeros((4, 4), dtype=numpy.uint8), mode="L")],
        "histogram": wandb.Histogram(np_histogram=numpy.histogram([1.0, 2.0, 3.0], bins=3)),
        "weights": wandb.Histogram([1.0, 2.0, 3.0], num_bins=4),
        "html": wandb.Html("<b>page</b>", inject=False),
        "table": table,
        "audio": wandb.Audio("tone.wav", sample_rate=8000, caption="tone"),
        "video": wandb.Video("clip.gif", caption="clip", format="gif"),
    }, step=10)
    wandb.alert(title="hot", text="the GPU", level=wandb.AlertLevel.WARN, wait_duration=60)
    with open("weights.bin", "wb") as file:
        file.write(b"123")
    wandb.save("weights.bin", policy="now")
    run.name = "renamed"
    run.tags = run.tags + ("c",)
    wandb.finish()
    second = wandb.init(project="digits", id=first + "2", mode=MODE, config={"x": 1})
    second.log({"loss": 1})
    second.finish(3)
    try:
        with wandb.init(project="digits", id=first + "3", mode=MODE) as third:
            wandb.log({"loss": 1})
            raise SystemError
    except SystemError:
        pass
    steps = wandb.init(project="digits", id=first + "4", mode=MODE)
    for row, step in (({"a": 1}, 5), ({"b": 2}, None), ({"c": 3}, 2), ({"d": 4}, None)):
        steps.log(row, step=step)
    steps.finish()

import pathlib, struct
data = b"\\0\\0" * 800
pathlib.Path("tone.wav").write_bytes(b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt "
    + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16) + b"data" + struct.pack("<I", len(data)) + data)
pathlib.Path("clip.gif").write_bytes(b"GIF89a\\1\\0\\1\\0\\0\\0\\0,\\0\\0\\0\\0\\1\\0\\1\\0\\0\\2\\2D\\1\\0;")
training("trial")
"""
LOGGED = ("epoch", "train.loss", "val/accuracy", "good", "late")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, OpenRun]]:
    """The runs of both packages by id."""
    values = {}
    for package, mode in (("wandb", "offline"), ("runvitals", "shared")):
        folder = tmp_path_factory.mktemp(package)
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("WANDB_", "RUNVITALS_"))}
        environ |= {"HOME": str(folder), "WANDB_DIR": str(folder), "WANDB_ERROR_REPORTING": "false"}
        environ |= {"RUNVITALS_DIR": str(folder), "WANDB_MODE": "offline", "XDG_CONFIG_HOME": str(folder)}
        code = f"import {package} as wandb\nMODE = {mode!r}\n{SCRIPT}"
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env=environ, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        for path in sorted((folder / "wandb").glob("offline-run-*/*.wandb")) if package == "wandb" else ():
            import_file(str(path), str(folder))
        ids = ("trial", "trial2", "trial3", "trial4")
        values[package] = {run_id: open_run(run_id, directory=str(folder)) for run_id in ids}
    return values


def by_step(run: OpenRun) -> dict[Any, dict[str, Any]]:
    """The numbers of all rows with the same step."""
    rows: dict[Any, dict[str, Any]] = {}
    for row in run.history():
        data = {name: row.data[name] for name in LOGGED if name in row.data}
        if data:
            rows.setdefault(row.step, {}).update(data)
    return rows


def test_rows_have_the_same_steps_and_numbers(recorded: dict[str, dict[str, OpenRun]]) -> None:
    theirs, ours = by_step(recorded["wandb"]["trial"]), by_step(recorded["runvitals"]["trial"])
    assert sorted(ours) == [0, 1, 2, 9]
    assert ours == theirs


def test_configuration_and_description_are_the_same(recorded: dict[str, dict[str, OpenRun]]) -> None:
    theirs, ours = recorded["wandb"]["trial"], recorded["runvitals"]["trial"]
    assert ours.config == theirs.config
    assert ours.config == {"epochs": 3, "layers": [4, 2], "lr": 0.1, "net": {"depth": 3}, "seed": 7}
    for name in ("project", "group", "job_type", "notes", "state"):
        assert getattr(ours.facts, name) == getattr(theirs.facts, name), name
    assert (ours.facts.name, ours.facts.tags) == ("renamed", ["a", "b", "c"])
    assert [(event.level, event.text) for event in ours.events][:1] == [("warning", "the GPU")]


def test_summary_is_the_same(recorded: dict[str, dict[str, OpenRun]]) -> None:
    theirs, ours = (recorded[name]["trial"].summary for name in ("wandb", "runvitals"))
    names = (*LOGGED, "best", "word")
    assert {name: ours[name] for name in names} == {name: theirs[name] for name in names}


def test_media_and_files_are_recorded(recorded: dict[str, dict[str, OpenRun]]) -> None:
    run = recorded["runvitals"]["trial"]
    kinds = {key.key: key.kind for key in run.media_keys()}
    assert kinds == {
        "image": "image", "images": "image", "histogram": "histogram", "weights": "histogram", "html": "html",
        "table": "table", "audio": "audio", "video": "video",
    }  # fmt: skip
    problems = [item for key in kinds for media in run.media(key) for item in media.items if "error" in item]
    assert problems == []
    assert [file.name for file in run.files()] == ["weights.bin"]


def test_second_run_of_the_process(recorded: dict[str, dict[str, OpenRun]]) -> None:
    theirs, ours = recorded["wandb"]["trial2"].facts, recorded["runvitals"]["trial2"].facts
    assert (ours.state, ours.exit_code, ours.config) == ("failed", 3, {"x": 1})
    assert (theirs.state, theirs.exit_code, theirs.config) == ("failed", 3, {"x": 1})


def test_exception_in_the_with_statement(recorded: dict[str, dict[str, OpenRun]]) -> None:
    assert [runs["trial3"].facts.exit_code for runs in recorded.values()] == [1, 1]
    assert [runs["trial3"].state for runs in recorded.values()] == ["failed", "failed"]


def test_steps_that_are_given_only_sometimes(recorded: dict[str, dict[str, OpenRun]]) -> None:
    """What differs, as docs/reference/wandb-compatibility.md says."""
    steps = {
        package: {name: row.step for row in runs["trial4"].history() for name in row.data}
        for package, runs in recorded.items()
    }
    assert steps["wandb"] == {"a": 5, "b": 5, "d": 6}
    assert steps["runvitals"] == {"a": 5, "b": 6, "c": 2, "d": 3}
