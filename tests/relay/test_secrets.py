"""Secrets in a destination's address are neither stored nor shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.journal import frames
from runvitals.journal.reader import read_run
from runvitals.relay.engine.cursor import Cursor, find_cursors
from runvitals.relay.engine.destination_spec import DestinationSpec
from runvitals.relay.engine.undelivered import find_undelivered
from tests.patience import PATIENCE_S
from tests.relay.journals import HOST, Journal, Sender
from tests.relay.recording_server import RecordingServer
from tests.relay.test_relay import environ as environ

SECRET = "hunter2hunter2"


def file_contents(folder: str | Path) -> str:
    """Names and contents of all files."""
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    return "".join(f"{path.name}\n{path.read_bytes()!r}\n" for path in files)


def test_token_in_a_query_is_sent_but_not_stored(
    journal: Journal, target: RecordingServer, capsys: pytest.CaptureFixture[str]
) -> None:
    destination = f"remote_write:{target.url}/api/v1/write?token={SECRET}"
    target.responses.append((400, {}, f"no such token={SECRET}".encode()))
    sender = Sender(journal.folder, destination)
    journal.sample(0, cpu=1.0)
    sender.send()
    sender.kill()
    assert SECRET in target.requests[0].path
    assert SECRET not in file_contents(journal.folder)
    folder = Path(journal.folder)
    for words in (
        ["relay", "status"],
        ["relay", "status", "--json"],
        ["sync", folder.name, "--to", destination],
    ):
        main([*words, "--dir", str(folder.parents[1])])
    output = capsys.readouterr()
    assert SECRET not in output.out + output.err
    assert "token=***" in output.out
    # Delivery continued at its position: nothing was sent again.
    assert [cursor.counts["batches"] for cursor in find_cursors(journal.folder)] == [
        sender.cursor.counts["batches"]
    ]
    assert (
        Cursor(journal.folder, DestinationSpec(destination), HOST).positions.keys()
        == sender.cursor.positions.keys()
    )


def test_undelivered_runs_need_the_secret_of_their_destination(journal: Journal, tmp_path: Path) -> None:
    spec = DestinationSpec(f"remote_write:http://host/?token={SECRET}")
    cursor = Cursor(journal.folder, spec, HOST)
    cursor.save()
    (cursors,) = find_cursors(journal.folder)
    assert not cursors.spec.is_whole
    assert cursors.path == cursor.path
    data = str(Path(journal.folder).parents[1])
    assert find_undelivered(data, HOST, []) == {}
    assert list(find_undelivered(data, HOST, [spec])) == [spec.text]


def test_data_folder_of_a_repository_names_no_destinations(tmp_path: Path) -> None:
    """Without a home directory the data folder is in the current one, and may come with a repository."""
    for name in ("data", ".runvitals"):
        folder = tmp_path / name / "runs" / "abc"
        folder.mkdir(parents=True)
        for destination in ("files:/home/me", "https://mine.example"):
            Cursor(str(folder), DestinationSpec(destination), HOST).save()
    mine = DestinationSpec("https://mine.example")
    undelivered = find_undelivered(str(tmp_path / "data"), HOST, [mine])
    assert sorted(undelivered) == ["files:/home/me", mine.text]
    assert list(find_undelivered(str(tmp_path / ".runvitals"), HOST, [mine])) == [mine.text]
    assert find_undelivered(str(tmp_path / ".runvitals"), HOST, []) == {}


@pytest.mark.parametrize(
    "destination",
    [
        f"remote_write:http://127.0.0.1:1/write?token={SECRET}",
        f"wandb:{SECRET}@team/digits?mode=offline",
        f"prometheus:{SECRET}@host",
        f"prometheus:me:{SECRET}@host:9090",
        f"cloudwatch:{SECRET}@eu/T?include=*",
        f"otel:{SECRET}@host:4317",
        f"mlflow:me:{SECRET}@host/x",
        f"files:{SECRET}@host/out",
    ],
)
def test_training_output_and_journal_contain_no_secret(
    tmp_path: Path, environ: dict[str, str], destination: str
) -> None:
    script = """
import runvitals
labels = {"team": "vision", "api_key": "hunter2hunter2"}
with runvitals.init(id="abc", settings={"labels": labels}) as run:
    run.config.update({"lr": 0.1, "api_key": "hunter2hunter2", "hub": {"url": "https://me:hunter2hunter2@host"}})
    run.log({"loss": 1.0})
"""
    more = {"RUNVITALS_DESTINATIONS": json.dumps([destination]), "RUNVITALS_DELIVERY_TIMEOUT": "0.5"}
    done = subprocess.run(
        [sys.executable, "-c", script, f"--token={SECRET}"],
        env={**environ, **more}, cwd=tmp_path, capture_output=True, text=True,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert "***" in done.stderr
    assert SECRET not in file_contents(tmp_path / "data")
    records = list(read_run(str(tmp_path / "data" / "runs" / "abc")))
    configs = [r.value["config"] for r in records if r.type == frames.INFO and "config" in r.value]
    assert configs == [{"lr": 0.1, "api_key": "***", "hub": {"url": "https://me:***@host"}}]
    assert {"team": "vision", "api_key": "***"} in [
        r.value.get("labels") for r in records if r.type == frames.START
    ]


def test_unknown_kind_of_destination_error_hides_the_secret(tmp_path: Path, environ: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import runvitals; runvitals.init()"],
        env={**environ, "RUNVITALS_DESTINATIONS": f"nosuch:{SECRET}@place"}, cwd=tmp_path,
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "unknown destination 'nosuch'" in done.stderr
    assert SECRET not in done.stdout + done.stderr


def test_invalid_destination_error_hides_the_secret(tmp_path: Path, environ: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "runvitals", "settings"],
        env={**environ, "RUNVITALS_DESTINATIONS": f"remote_write:https://me:{SECRET}@host/write"},
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "remote_write:https://me:***@host/write" in done.stderr
    assert SECRET not in done.stderr
    assert os.path.isdir(tmp_path)
