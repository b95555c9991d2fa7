"""The command `runvitals files`, and media in `runvitals export`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.cli.files import safe_parts
from runvitals.journal import frames
from runvitals.journal.paths import content_path, run_dir
from runvitals.journal.writer import JournalWriter
from runvitals.sdk.media.run_files import RunFiles
from tests.readers.journals.journals import T0, Monitor

Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A run with an image, a text and three saved files, one of which leads upwards."""
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path))
    Monitor(tmp_path).sample(T0, {"cpu": 1.0})
    folder = run_dir("abc", str(tmp_path))
    files = RunFiles(folder)
    journal = JournalWriter(
        folder, "media.node1.7.1", {"run": "abc", "host": "node1", "role": "media", "rank": 1}
    )
    by_name = {}
    for key, kind, content in (
        ("eval/scan", "image", b"<svg></svg>"),
        ("story", "text", b"once"),
        ("model.pt", "file", b"\0weights"),
        ("../../up.txt", "file", b"up"),
        ("a/b.txt", "file", b"b"),
    ):
        item = {"kind": kind, **files.add(content)}
        by_name[key] = str(item["sha256"])
        value = {"t": T0, "step": 3, "key": key, "kind": kind, "items": [item]}
        assert journal.json(frames.MEDIA, value)
    journal.close()
    return by_name


def test_files_are_listed(capsys: Shown) -> None:
    assert main(["files", "abc"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[:3] for line in lines[1:]] == [
        ["../../up.txt", "2", "text/plain"],
        ["a/b.txt", "1", "text/plain"],
        ["model.pt", "8", "application/octet-stream"],
    ]
    assert main(["files", "abc", "--media", "--names", "eval/*", "st*"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert names == ["eval/scan/3-rank1-0.svg", "story/3-rank1-0.txt"]


def test_files_are_copied_into_the_folder_only(tmp_path: Path, capsys: Shown) -> None:
    out = tmp_path / "x" / "y" / "out"
    assert main(["files", "abc", "--media", "-o", str(out)]) == 0
    copied = {
        path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()
    }
    assert copied == {
        "_/_/up.txt": b"up",
        "a/b.txt": b"b",
        "model.pt": b"\0weights",
        "eval/scan/3-rank1-0.svg": b"<svg></svg>",
        "story/3-rank1-0.txt": b"once",
    }


def test_a_file_that_is_gone_is_reported(tmp_path: Path, digests: dict[str, str], capsys: Shown) -> None:
    Path(content_path(run_dir("abc", str(tmp_path)), digests["a/b.txt"])).unlink()
    assert main(["files", "abc", "-o", str(tmp_path / "out")]) == 1
    assert "a/b.txt: its content is gone" in capsys.readouterr().err
    assert (tmp_path / "out" / "model.pt").exists()


def test_no_match_is_an_error(capsys: Shown) -> None:
    assert main(["files", "abc", "--names", "nothing*"]) == 1
    assert "no file of the run matches" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["", ".", "..", "/", "/etc/passwd", "a/../../b", "\\\\x", "c:x", "\n", "x" * 999]
)
def test_names_never_lead_out(name: str) -> None:
    parts = safe_parts(name)
    assert parts
    assert not {"", ".", ".."} & set(parts)
    assert not any(set(part) & set("/\\:\n") or len(part) > 200 for part in parts)


def test_export_refers_to_files(digests: dict[str, str], capsys: Shown) -> None:
    assert main(["export", "abc", "--history", "--format", "jsonl", "--keys", "eval/*"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    row = json.loads(line)
    assert (row["step"], row["rank"], row["host"]) == (3, 1, "node1")
    (item,) = row["data"]["eval/scan"]
    assert (item["sha256"], item["type"]) == (digests["eval/scan"], "image/svg+xml")
