"""The command `runvitals artifact`, on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.cli import main

Shown = pytest.CaptureFixture[str]


def test_put_list_and_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path / "data"))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("one")
    put = ["artifact", "put", str(tmp_path / "in"), "--name", "digits/mnist", "--alias", "best"]
    assert main(put) == 0
    assert capsys.readouterr().out == "digits/mnist:v0\n"
    assert main(["artifact", "ls"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.split()[:6] == ["digits/mnist:v0", "dataset", "best,", "latest", "1", "3"]
    assert main(["artifact", "get", "digits/mnist:best", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "a.txt").read_text() == "one"
    assert main(["artifact", "get", "digits/none"]) == 1
    assert "there is no artifact digits/none:latest" in capsys.readouterr().err
    assert main(["artifact", "put", str(tmp_path / "none"), "--name", "x"]) == 1
    assert main([*put, "--alias", "v3"]) == 1
    assert len(list((tmp_path / "data" / "runs").iterdir())) == 1  # no run is left of a mistake
