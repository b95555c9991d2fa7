"""A support bundle contains the diagnosis, and none of the secrets planted in all its sources."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from runvitals.base import stored_keys
from runvitals.monitoring.settings.settings import resolve
from runvitals.sdk.probe import MachineReading
from runvitals.tools.doctor import bundle
from runvitals.tools.doctor.examination import Examination
from runvitals.tools.doctor.finding import Check
from runvitals.tools.doctor.scrubber import Scrubber
from tests.readers.journals.journals import T0, Monitor

SECRETS = {
    "in a variable": "correct-horse-battery",
    "token of a server": "rvt_0123456789abcdef",
    "kept by login": "rvt_keptkeptkeptkept",
    "header of an exporter": "s3cr3t-header-value",
    "in a URL": "hunter2hunter2",
    "by its looks": "ghp_Abcdefghij0123456789",
    "in an event": "wJalrXUtnFEMIK7MDENG",
    "of another program": "unrelated-program-value",
}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {
        "HOME": str(tmp_path / "home" / "anna"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "WANDB_API_KEY": SECRETS["in a variable"],
        "RUNVITALS_TOKEN": SECRETS["token of a server"],
        "RUNVITALS_SERVER": "http://runs.example.org",
        "RUNVITALS_OPENMETRICS_HEADERS": f"X-Who={SECRETS['header of an exporter']}",
        "RUNVITALS_OPENMETRICS_ENDPOINTS": f"a=http://me:{SECRETS['in a URL']}@localhost:9/metrics",
        "RUNVITALS_NOTES": f"key {SECRETS['by its looks']}",
        "MY_PROGRAM": SECRETS["of another program"],
        "CUDA_VISIBLE_DEVICES": "0,1",
    }


def contents(path: Path) -> dict[str, str]:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return {Path(name).name: archive.read(name).decode() for name in archive.namelist()}
    files = {}
    with tarfile.open(path) as tar:
        for member in tar.getmembers():
            file = tar.extractfile(member)
            assert isinstance(file, io.BufferedIOBase)
            files[Path(member.name).name] = file.read().decode()
    return files


def packed(tmp_path: Path, environ: dict[str, str], name: str) -> dict[str, str]:
    stored_keys.save("http://runs.example.org", SECRETS["kept by login"], environ)
    data = tmp_path / "data"
    monitor = Monitor(data, "abc")
    text = f"nvidia: failed with AWS_SECRET_ACCESS_KEY={SECRETS['in an event']}"
    monitor.event(T0 + 1, "collector_failed", "warning", text)
    monitor.event(T0 + 2, "alert", "error", "the user's own text")
    monitor.end(T0 + 10, "finished")
    (data / "relay.log").write_text(f"ConnectionError: token {SECRETS['kept by login']} was rejected\n")
    path = tmp_path / name
    finding = Check("storage", "data folder", "PASS", f"{environ['HOME']}/runs, {environ['WANDB_API_KEY']}")
    reading = MachineReading(metrics={"cpu": 3.5}, states={"cpu": {"state": "on"}})
    values = resolve({}, environ, str(tmp_path))
    bundle.write(str(path), Examination([finding], reading), values, str(data), environ)
    assert path.stat().st_mode & 0o077 == 0
    return contents(path)


@pytest.mark.parametrize("name", ["help.tar.gz", "help.zip"])
def test_bundle_contains_no_secrets(tmp_path: Path, environ: dict[str, str], name: str) -> None:
    files = packed(tmp_path, environ, name)
    leaked = [
        (what, file) for what, secret in SECRETS.items() for file, text in files.items() if secret in text
    ]
    assert leaked == []
    assert not any(environ["HOME"] in text for text in files.values())


def test_bundle_contains_the_diagnosis(tmp_path: Path, environ: dict[str, str]) -> None:
    files = packed(tmp_path, environ, "help.tgz")
    assert "CUDA_VISIBLE_DEVICES=0,1" in files["environment.txt"]
    assert "RUNVITALS_TOKEN=***" in files["environment.txt"]
    assert "MY_PROGRAM" not in files["environment.txt"]
    assert json.loads(files["reading.json"])["metrics"] == {"cpu": 3.5}
    (finding,) = json.loads(files["doctor.json"])["findings"]
    assert finding["text"] == "~/runs, ***"
    (run,) = json.loads(files["runs.json"])
    assert (run["id"], run["state"]) == ("abc", "finished")
    assert [event["name"] for event in run["events"]] == ["collector_failed"]  # alerts are the user's own
    assert json.loads(files["settings.json"])["server"]["value"] == "http://runs.example.org"
    assert "kernel" in json.loads(files["machine.json"])
    assert "token *** was rejected" in files["relay.log"]
    assert all(name in files["README.txt"] for name in files if name.endswith(".json"))


def test_unsupported_and_existing_file_names_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ending in \.tar\.gz"):
        bundle.check_name(str(tmp_path / "help.doc"))
    existing = tmp_path / "help.zip"
    existing.write_bytes(b"mine")
    with pytest.raises(FileExistsError, match="the file already exists"):
        bundle.check_name(str(existing))


def test_home_folders_and_command_lines() -> None:
    scrub = Scrubber({"HOME": "/home/anna"}, [])
    assert scrub.text("/home/anna and /home/annabel, /home/anna/x") == "~ and /home/annabel, ~/x"
    assert scrub.value(["train.py", "--token", "abc", "/home/anna"]) == ["train.py", "--token", "***", "~"]
    assert scrub.value({"password": "x1y2z3", "n": 3}) == {"password": "***", "n": 3}
