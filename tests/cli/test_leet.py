"""`runvitals leet` on the command line; the program itself is tested in tests/terminal/leet."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runvitals.cli import main
from tests.patience import PATIENCE_S
from tests.readers.journals.journals import T0, Monitor


def test_missing_extra_is_named(tmp_path: Path) -> None:
    blocked = "import sys; sys.modules['textual'] = None; from runvitals.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", blocked, "leet", "--dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1
    assert "pip install 'runvitals[tui]'" in done.stderr


def test_without_a_terminal_it_says_what_prints_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Monitor(tmp_path).end(T0 + 1000)
    assert main(["leet", "abc", "--dir", str(tmp_path)]) == 1
    assert "needs a terminal" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["leet", "config", "x"], "`leet config` takes no further words: x"),
        (["leet", "inspect", "--replay", "10x", "abc"], "--replay belongs to `runvitals leet`"),
        (["leet", "--summary"], "--summary belong to `runvitals leet inspect`"),
        (["leet", "inspect", "--summary", "--follow"], "one of --summary and --follow"),
    ],
)
def test_arguments_that_do_not_fit(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_unknown_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leet", "--dir", str(tmp_path)]) == 1
    assert "no runs in" in capsys.readouterr().err


def test_inspect_prints_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monitor = Monitor(tmp_path)
    monitor.sample(T0, {"cpu": 1.0})
    monitor.end(T0 + 1000)
    assert main(["leet", "inspect", "abc", "--dir", str(tmp_path)]) == 0  # the output is no terminal
    kinds = [json.loads(line)["kind"] for line in capsys.readouterr().out.splitlines()]
    assert kinds == ["start", "schema", "sample", "lifecycle"]
    assert main(["leet", "inspect", "--summary", "--json", "abc", "--dir", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "finished"
    assert main(["leet", "abc", "--follow", "--dir", str(tmp_path)]) == 2
    assert main(["leet", "inspect", "a", "b", "--dir", str(tmp_path)]) == 2
    assert "expected one run, not 2" in capsys.readouterr().err
