"""A notebook that records a run, looks at it and plots it, run by Jupyter's own client."""

from __future__ import annotations

from pathlib import Path

import nbclient
import nbformat
import pytest

from tests.patience import PATIENCE_S

CELLS = (
    "import runvitals\nrun = runvitals.init(project='digits', config={'lr': 0.1})",
    "for step in range(5):\n    run.log({'loss': 1 / (step + 1)})\nrun",
    "run.finish()\nread = runvitals.open_run(run.id)\nread",
    "read.history()",
    "read.history().to_pandas()",
    "%matplotlib inline\naxes = read.history().plot('loss')",
    "read.metrics()",
)


def test_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("RUNVITALS_COLLECTORS", "cpu")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    client = nbclient.NotebookClient(
        notebook, timeout=PATIENCE_S, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    shown = [[output.get("data", {}) for output in cell.outputs] for cell in notebook.cells]
    going_on, ended, rows, frame, plot, series = (outputs[-1] for outputs in shown[1:])
    assert "● running" in going_on["text/html"]
    assert "loss: 0.2" in going_on["text/html"]
    assert "<svg" in going_on["text/html"]
    assert "● finished" in ended["text/html"]
    assert "5 rows" in rows["text/html"]
    assert "0.2" in frame["text/plain"]
    assert "image/png" in plot
    assert "cpu" in series["text/html"]
