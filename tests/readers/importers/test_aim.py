"""Import of a repository that Aim 3.29 has written: aim.tar.xz."""

from __future__ import annotations

import os
import sys
import tarfile
import time
from pathlib import Path

import pytest

import runvitals
from runvitals.cli import main
from runvitals.readers.importers.aim import entries

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="aimrocks is there for Python 3.12 and earlier"
)
CLOSED, OPEN = "2cc804563b0f459ab9345fcd", "b8e5c6f2c34a4c67bcbd6235"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    with tarfile.open(Path(__file__).with_name("aim.tar.xz")) as archive:
        archive.extractall(tmp_path / "repository", filter="data")
    written(tmp_path / "repository", time.time() - 3600)
    return tmp_path / "repository"


def written(folder: Path, time_s: float) -> None:
    for path in folder.rglob("*"):
        os.utime(path, (time_s, time_s))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_runs_with_what_they_tracked(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(repository)
    assert main(["import", f"aim:{repository}", "--dir", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert f"{CLOSED} of project exp one: 2 samples, 53 log() rows" in printed
    assert f"{OPEN} of project exp one: 0 samples, 2 log() rows, 0 files; it was not closed" in printed
    assert contents(repository) == before
    run = runvitals.open_run(CLOSED, str(tmp_path))
    assert (run.state, run.facts.name, run.facts.notes, run.facts.tags) == (
        "finished",
        "first ü",
        "notes here",
        ["t1"],
    )
    assert run.config == {"layers": [1, 2], "lr": 0.1, "nested": {"a": True, "b": None}, "s": "x", "top": 3}
    rows = list(run.history())
    assert rows[7].data == {"train/loss": 1 / 8, "val/loss": 1 / 9, "epoch": 0, "acc": 0.14, "f1": 7}
    assert rows[-1].data == {"subset=val,fold=2/n": 2} or rows[-1].data == {"fold=2,subset=val/n": 2}
    assert {"memory_percent", "proc.memory.percent"} <= set(run.metrics().keys())
    kinds = {key.key: key.kind for key in run.media_keys()}
    assert kinds == {"val/img": "image", "imgs": "image", "txt": "text", "dist": "histogram", "snd": "audio"}
    ((image,), images) = (run.media(name)[0].items for name in ("val/img", "imgs"))
    assert (image["caption"], image["type"], len(images)) == ("black", "image/png", 2)
    assert Path(str(run.path_of(run.media("txt")[0].items[0]))).read_text() == "hello <b>"
    assert run.media("dist")[0].items[0]["value"]["count"] == 100
    assert runvitals.open_run(OPEN, str(tmp_path)).state == "crashed"
    assert main(["import", f"aim:{repository / '.aim'}", "--dir", str(tmp_path)]) == 0
    assert "3 runs exist already" in capsys.readouterr().out


def test_a_run_that_may_go_on_is_left_out(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(repository, time.time())
    assert main(["import", f"aim:{repository}", "--run", OPEN, "--dir", str(tmp_path)]) == 0
    assert "not imported: 1 × runs that may go on" in capsys.readouterr().out


def test_what_is_damaged_or_missing(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / ".aim/seqs/chunks" / CLOSED / "CURRENT").write_text("nothing\n")
    assert main(["import", f"aim:{repository}", "--dir", str(tmp_path)]) == 1
    assert f"{CLOSED}: " in capsys.readouterr().err
    assert main(["import", f"aim:{tmp_path}", "--dir", str(tmp_path)]) == 1
    assert "there is no repository of Aim" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "aimrocks", None)
    assert main(["import", f"aim:{repository}", "--run", CLOSED, "--dir", str(tmp_path)]) == 1
    assert "pip install runvitals[aim]" in capsys.readouterr().err


@pytest.mark.parametrize("key", [b"name", b"\xff\xfe"])
def test_keys_of_another_form(key: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of two kinds
        entries.path_of(key)
