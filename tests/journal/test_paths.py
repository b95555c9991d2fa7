"""Paths of journals, and the names that are valid in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.base.private_folders import config_dir
from runvitals.journal import paths


def test_runvitals_dir_names_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path))
    assert paths.data_dir() == str(tmp_path)
    assert paths.run_dir("abc") == str(tmp_path / "runs" / "abc")
    assert paths.run_dir("abc", "/elsewhere") == "/elsewhere/runs/abc"


def test_a_relative_folder_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNVITALS_DIR", "data")
    assert paths.data_dir() == str(tmp_path / "data")


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"HOME": "/home/ann"}, "/home/ann/.local/share/runvitals"),
        ("linux", {"HOME": "/home/ann", "XDG_DATA_HOME": "/data/ann"}, "/data/ann/runvitals"),
        ("linux", {"HOME": "/home/ann", "XDG_DATA_HOME": "relative"}, "/home/ann/.local/share/runvitals"),
        ("darwin", {"HOME": "/Users/ann"}, "/Users/ann/Library/Application Support/runvitals"),
    ],
)
def test_the_default_is_the_users_data_home(
    platform: str, environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RUNVITALS_DIR", "XDG_DATA_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", platform)
    assert paths.data_dir() == expected


@pytest.mark.parametrize("home", [".", "relative", "~no-such-user"])
def test_an_invalid_home_directory(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user of a container may be a number without an entry in the user database."""
    monkeypatch.chdir(tmp_path)
    for name in ("RUNVITALS_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", home)
    assert paths.data_dir() == str(tmp_path / ".runvitals")
    for config_home in ("", "config", "."):
        folder = config_dir({"XDG_CONFIG_HOME": config_home})
        assert Path(folder).is_absolute()
        assert not Path(folder).is_relative_to(tmp_path), "the current directory may be a cloned repository"


def test_the_users_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert config_dir({}) == "/home/ann/.config/runvitals"
    assert config_dir({"XDG_CONFIG_HOME": "/etc/ann"}) == "/etc/ann/runvitals"


@pytest.mark.parametrize("run_id", ["abc", "a", "2026-11-21_lr0.1", "x" * 128])
def test_valid_run_ids(run_id: str) -> None:
    assert paths.check_run_id(run_id) == run_id


@pytest.mark.parametrize(
    "run_id", ["", ".", "..", "../up", "a/b", "a\\b", "-rf", ".hidden", "a b", "ä", "a\n", "x" * 129]
)
def test_invalid_run_ids(run_id: str) -> None:
    with pytest.raises(ValueError, match=r"1 to 128 of A-Z a-z 0-9 _ \. -"):
        paths.check_run_id(run_id)


def test_a_host_name_in_a_file_name() -> None:
    assert paths.safe_name("node-1.cluster.example") == "node-1.cluster.example"
    assert paths.safe_name("../über host/") == "__ber_host_"
    assert paths.safe_name("") == "_"
    assert paths.check_writer(f"monitor.{paths.safe_name('ß' * 300)}.19f3a")


def test_segments_are_listed_in_order_and_other_files_are_not(tmp_path: Path) -> None:
    for name in (
        "monitor.n1.a.00010.rvj", "monitor.n1.a.00002.rvj", "monitor.n1.a.100000.rvj", "train.n1.7.00000.rvj",
        "monitor.n1.a.00001.rvj.part", "monitor.n1.a.1.rvj", "monitor.n1.a.²³.rvj", "monitor.n1.a.٠٠٠٠١.rvj",
        ".00000.rvj", "notes.rvj", "00000.rvj", "config.json",
    ):  # fmt: skip
        (tmp_path / name).touch()
    assert paths.segments(str(tmp_path)) == {"monitor.n1.a": [2, 10, 100000], "train.n1.7": [0]}


@pytest.mark.parametrize(
    ("writer", "expected"),
    [
        ("monitor.node1.19f3a", ("monitor", "node1")),
        ("monitor.node1.example.org.19f3a", ("monitor", "node1.example.org")),
        ("train.node1.example.org.4711.19f3a", ("train", "node1.example.org")),
        ("curl", ("curl", "curl")),
    ],
)
def test_role_and_host_of_a_writers_name(writer: str, expected: tuple[str, str]) -> None:
    assert paths.role_and_host(writer) == expected
