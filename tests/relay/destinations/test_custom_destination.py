"""The destination of docs/guides/send-to/your-own.md, found by its entry point."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from runvitals.model import destination_kinds
from runvitals.relay import destination
from runvitals.relay.destinations import BUILT_IN
from tests.patience import PATIENCE_S
from tests.relay.journals import RUN, Journal

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "send-to" / "your-own.md"


def install(folder: Path) -> None:
    """The example as a package that pip has put into a folder."""
    text = PAGE.read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(# my_destination\.py\n.*?)```", text, re.DOTALL)
    (entry,) = re.findall(r'^(sqlite = )"(\S+)"$', text, re.MULTILINE)
    (folder / "my_destination.py").write_text(code)
    about = folder / "my_destination-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-destination\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[runvitals.destinations]\n{''.join(entry)}\n")


def test_documented_example_delivers_each_sample_once(tmp_path: Path) -> None:
    install(tmp_path)
    journal = Journal(tmp_path / "data")
    for second in range(3):
        journal.sample(second, cpu=float(second), memory_percent=float("nan"))
    journal.end()
    journal.monitor.close()
    journal.train.close()
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), "src", *filter(None, sys.path)])}
    boot = "import sys; from runvitals.cli import main; sys.exit(main())"
    to = ["--to", f"sqlite:{tmp_path}/points.db", "--dir", str(tmp_path / "data")]
    for _ in range(2):
        words = [sys.executable, "-c", boot, "sync", RUN, *to]
        done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=PATIENCE_S)
        assert (done.returncode, done.stderr) == (0, "")
    with sqlite3.connect(tmp_path / "points.db") as database:
        rows = database.execute("SELECT run, host, key, t, value FROM points ORDER BY t").fetchall()
    database.close()
    assert rows == [(RUN, "node1", "cpu", journal.t0 + 1000 * second, float(second)) for second in range(3)]


def test_a_run_may_name_it(tmp_path: Path) -> None:
    install(tmp_path)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), "src", *filter(None, sys.path)])}
    script = (
        "from runvitals.sdk.start import resolve_settings; "
        "print(resolve_settings({'destinations': ['sqlite:x']})['mode'])"
    )
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.stdout, done.stderr) == ("online\n", "")


def test_the_built_in_kinds_are_known_to_runs() -> None:
    assert BUILT_IN.keys() == destination_kinds.BUILT_IN


@pytest.mark.parametrize(("old", "new"), [("NotLetIn", "Unauthorized"), ("Refused", "RejectedRecord")])
def test_renamed_classes_are_still_importable_with_a_warning(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} is now called {new}"):
        assert getattr(destination, old) is getattr(destination, new)
