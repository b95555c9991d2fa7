"""What the `runvitals.toml` of a cloned repository may set before and after it is trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.monitoring.settings import trust
from runvitals.monitoring.settings.settings import SETTINGS, SettingError, Settings, resolve
from runvitals.monitoring.settings.settings_files import project_file

HARMLESS = """
project = "digits"
tags = ["a"]
sampling_interval = 5
collectors = ["cpu"]
mode = "offline"
"""
# What a hostile repository would like to set.
WANTED = {
    "server": '"https://evil.example"',
    "destinations": '["mlflow:http://evil.example", "files:/home/me/.ssh"]',
    "dir": '"/home/me"',
    "disk_paths": '["/net/evil.example"]',
    "host_root": '"/"',
    "openmetrics_endpoints": '{evil = "http://evil.example"}',
    "openmetrics_headers": '{Authorization = "x"}',
    "openmetrics_filters": '["(a+)+$"]',
    "dcgm_exporter": '"http://evil.example"',
    "neuron_monitor_config": '"/etc/hostname"',
    "run_id": '"production"',
    "entity": '"evil"',
    "mode": '"online"',
    "console": "true",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cloned repository, the working directory."""
    folder = tmp_path / "cloned" / "src"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(trust, "_warned", set())
    return folder.parent / "runvitals.toml"


def here() -> dict[str, object]:
    return resolve({}, {"XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"]}, os.getcwd())


def test_harmless_settings_apply_without_trust(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project.write_text(HARMLESS)
    values = here()
    assert (values["project"], values["tags"], values["sampling_interval"]) == ("digits", ["a"], 5.0)
    assert (values["collectors"], values["mode"]) == (["cpu"], "offline")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", WANTED)
def test_other_settings_apply_once_trusted(
    project: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write_text(f'project = "digits"\n{name} = {WANTED[name]}\n')
    values = here()
    assert values["project"] == "digits"
    assert values[name] == SETTINGS[name].default
    stderr = capsys.readouterr().err
    assert f"ignoring {name} in {project}" in stderr
    assert f"runvitals trust {project}" in stderr
    here()
    assert capsys.readouterr().err == ""  # it was said
    assert main(["trust"]) == 0
    assert f"{name} = " in capsys.readouterr().out
    assert here()[name] != SETTINGS[name].default or name == "mode"


def test_settings_are_not_harmless_by_default() -> None:
    """A new setting must be declared harmless explicitly."""
    harmless = {name for name, setting in SETTINGS.items() if setting.is_harmless(None)}
    assert SETTINGS.keys() - harmless == WANTED.keys()


@pytest.mark.parametrize("value", ["true", "1", '"yes"', '"on"'])
def test_project_cannot_record_what_a_command_prints(project: Path, value: str) -> None:
    """It may hold secrets, and goes to the user's server."""
    project.write_text(f"console = {value}\n")
    assert here()["console"] is None
    users = Path(os.environ["XDG_CONFIG_HOME"], "runvitals", "settings.toml")
    users.parent.mkdir(parents=True)
    users.write_text("console = true\n")
    project.write_text("console = false\n")
    assert here()["console"] is False


def test_project_cannot_enable_delivery(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    users = Path(os.environ["XDG_CONFIG_HOME"], "runvitals", "settings.toml")
    users.parent.mkdir(parents=True)
    users.write_text('mode = "offline"\nserver = "https://mine.example"\n')
    project.write_text('mode = "online"\n')
    assert (here()["mode"], here()["server"]) == ("offline", "https://mine.example")
    assert "ignoring mode in" in capsys.readouterr().err


def test_any_change_revokes_trust(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project.write_text('server = "https://mine.example"\n')
    assert main(["trust", str(project)]) == 0
    assert here()["server"] == "https://mine.example"
    project.write_text('server = "https://evil.example"\n')
    assert here()["server"] is None
    assert "the file has changed since you trusted it" in capsys.readouterr().err
    assert main(["trust", "--list"]) == 0
    assert "no longer trusted: the file has changed" in capsys.readouterr().out
    project.write_text('server = "https://mine.example"\n')
    assert here()["server"] == "https://mine.example"


def test_trust_is_stored_by_path(project: Path) -> None:
    project.write_text('destinations = ["files:out"]\n')
    assert main(["trust"]) == 0
    project.rename(project.parent / "src" / "runvitals.toml")
    assert here()["destinations"] == []


def test_trust_can_be_revoked(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project.write_text('server = "https://mine.example"\n')
    assert main(["trust", "--remove"]) == 1
    assert "is not trusted" in capsys.readouterr().err
    assert main(["trust"]) == 0
    assert main(["trust", "--list"]) == 0
    assert str(project) in capsys.readouterr().out
    assert main(["trust", "--remove"]) == 0
    assert here()["server"] is None


def test_trust_file_must_be_private(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project.write_text('server = "https://mine.example"\n')
    assert main(["trust"]) == 0
    kept = Path(trust.trust_file(os.environ))
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.chmod(0o666)
    assert here()["server"] is None
    assert "is writable by other users" in capsys.readouterr().err
    kept.chmod(0o600)
    kept.write_text("[]")
    assert here()["server"] is None
    assert main(["trust"]) == 1
    assert "is corrupt; remove it" in capsys.readouterr().err


def test_invalid_file_is_not_trusted(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust"]) == 1
    assert "no runvitals.toml found in this folder or its parents" in capsys.readouterr().err
    project.write_text('servr = "x"\n')
    assert main(["trust"]) == 1
    assert "did you mean server?" in capsys.readouterr().err
    project.write_text("project = '" + "x" * 2_000_000 + "'\n")
    with pytest.raises(SettingError, match="larger than"):
        here()


def test_control_characters_in_paths_are_escaped(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project.write_text('server = "https://mine.example"\n')
    folder = project.parent / "a\x1b[31mb\u202e"
    folder.mkdir()
    project.rename(folder / "runvitals.toml")
    os.chdir(folder)
    here()
    stderr = capsys.readouterr().err
    assert "\\x1b[31mb\\u202e" in stderr
    assert "\x1b" not in stderr


@pytest.mark.parametrize(
    "content", ['sampling_interval = "a/b"', "servr = 1", "not TOML", "x = 1e999999\x1b"]
)
def test_control_characters_in_paths_are_escaped_in_errors(project: Path, content: str) -> None:
    """Python prints them in a traceback, which is not ours."""
    folder = project.parent / "a\x1b[31mb\nrunvitals: all is well\u202e"
    folder.mkdir()
    (folder / "runvitals.toml").write_text(content)
    os.chdir(folder)
    with pytest.raises(SettingError, match=r"a\\x1b\[31mb\\nrunvitals: all is well\\u202e") as raised:
        here()
    assert str(raised.value).isprintable()


def test_headers_are_not_sent_to_exporters_of_a_project(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write_text('dcgm_exporter = "http://other.example:9400/metrics"\n')
    assert main(["trust"]) == 0
    environ = {
        "XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"],
        "RUNVITALS_OPENMETRICS_HEADERS": "Authorization=hunter2",
    }
    capsys.readouterr()
    assert resolve({}, environ, os.getcwd())["openmetrics_headers"] == {}
    stderr = capsys.readouterr().err
    assert (
        "openmetrics_headers (environment variable RUNVITALS_OPENMETRICS_HEADERS) are not sent there"
        in stderr
    )
    assert "hunter2" not in stderr
    environ["RUNVITALS_DCGM_EXPORTER"] = "http://mine.example:9400/metrics"
    assert resolve({}, environ, os.getcwd())["openmetrics_headers"] == {"Authorization": "hunter2"}
    assert "hunter2" not in repr(Settings(openmetrics_headers={"Authorization": "hunter2"}))


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="this machine runs us as no root")
def test_file_of_another_user_in_a_shared_folder_is_ignored(tmp_path: Path) -> None:
    shared, own = tmp_path / "shared", tmp_path / "shared" / "own"
    own.mkdir(parents=True)
    planted = shared / "runvitals.toml"
    planted.write_text("no TOML")
    os.chown(planted, 4711, 4711)
    assert project_file(str(own)) == str(planted), "a teammate's, in a folder that is not for everybody"
    shared.chmod(0o1777)
    assert project_file(str(own)) is None
    os.chown(planted, os.getuid(), -1)
    assert project_file(str(own)) == str(planted)
