"""`runvitals report export`: a report as HTML, Markdown and PDF."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from runvitals.cli import main
from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts_server import T0, AccountsServer
from tests.server.reports.documents import LOSS, REPORTS, panel, run_set, text

ACC = {"source": "logged", "name": "acc/top1"}
GPUS = {"source": "system", "name": "gpu.*.gpu"}
SCATTER = {"metrics": ["loss"], "across": 'logged:"acc/top1"'}
AXES = {"metrics": ["config.lr", "loss"]}
FIELDS = {"metrics": ["summary.loss"], "across": "config.lr"}
DEVICES = {"metrics": ["system:gpu.*.gpu"], "scope": "devices", "x": "relative"}
SCRIPT = '<script>alert(1)</script><img src=x onerror="alert(1)">'


@pytest.fixture
def exported(rates: AccountsServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a report of bob with text, a picture and panels, which the command reads with his key."""
    bob = rates.accounts.users.by_name("bob")
    key, _ = rates.accounts.keys.create("k", CLI, T0, user_id=bob.id)
    monkeypatch.setenv("RUNVITALS_SERVER", rates.url)
    monkeypatch.setenv("RUNVITALS_TOKEN", key)
    report = rates.ask("bob", "POST", REPORTS, 201, json={"title": f"Rates {SCRIPT}"})
    path = f"reports/{report['id']}"
    picture = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(picture, "PNG")
    headers = {"content-type": "image/png"}
    file = rates.ask("bob", "POST", f"{path}/files", 201, content=picture.getvalue(), headers=headers)
    grid = {
        "id": "grid",
        "kind": "panels",
        "run_sets": [run_set(sort="id")],
        "panels": [
            panel(title="Loss | of all"),
            panel("bar", panel_id="panel2", title=SCRIPT, settings={"statistic": "min"}),
            panel("line", (LOSS, ACC), panel_id="panel5", settings={"metrics": ['loss * 4 + "acc/top1"']}),
            panel("line", panel_id="panel6", settings={"metrics": ["loss *"]}, title="Wrong"),
            panel("scatter", (LOSS, ACC), panel_id="panel7", settings=SCATTER),
            panel("percentile", panel_id="panel8", settings={"percentiles": [50]}, title="Median"),
            panel("line", (GPUS,), panel_id="panel9", settings=DEVICES, title="GPUs"),
            panel("table", (LOSS,), panel_id="panel10", settings={"metrics": ["loss / 2"]}, title="Half"),
            panel("text", (), panel_id="panel11", settings={"text": "A *remark*."}),
            panel("parallel", (LOSS,), panel_id="panel12", title="Axes", settings=AXES),
            panel("scatter", (LOSS,), panel_id="panel13", settings=FIELDS),
            panel("config_diff", (), panel_id="panel3"),
            panel("console", (), panel_id="panel4"),
        ],
    }
    image = {"id": "pict", "kind": "image", "file": file["file"], "alt": "A red square"}
    blocks = [text("aaaa", f"## Result\n\nA rate of **0.1** {SCRIPT}"), image, grid]
    rates.ask("bob", "PATCH", path, json={"revision": 1, "blocks": blocks})
    rates.ask("bob", "POST", f"{path}/publish", json={"revision": 2})
    return str(report["id"])


def test_html_is_one_file_without_scripts(exported: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert main(["report", "export", exported, "-o", str(file)]) == 0
    page = file.read_text()
    assert "<script" not in page
    assert "onerror=&quot;" in page
    assert "default-src 'none'" in page
    # Three runs, and three of the expression; one median; two devices of each run; three over two axes.
    assert page.count("</title></polyline>") == 3 + 3 + 1 + 6 + 3
    assert (page.count("</title></rect>"), page.count("<circle ")) == (3, 3 + 3)
    assert "expected a metric, a number or (, found the end" in page
    assert 'src="data:image/webp;base64,' in page
    for words in (
        "<h3>Result</h3>",
        "<strong>0.1</strong>",
        "Loss | of all",
        "<td>0.125</td>",
        "A *remark*.",
        "last line",
    ):
        assert words in page, words
    assert "http-equiv" in page
    assert 'src="http' not in page


def test_markdown(exported: str, tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    assert main(["report", "export", exported, "-o", str(file)]) == 0
    page = file.read_text()
    assert page.startswith("# Rates \\<script\\>")
    assert "A rate of **0.1**" in page
    assert "### Loss | of all" in page
    assert "| run-0 | 0.25 |" in page
    assert "| run-0 | 2 |" in page  # loss * 4 + acc/top1
    assert "| run-0 · node 1 | 50 |" in page
    assert "A *remark*." in page
    assert "| lr | 0.3 | 0.1 | 0.1 |" in page
    assert "last line" in page


def test_pdf(exported: str, tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf")
    file = tmp_path / "report.pdf"
    assert main(["report", "export", exported, "--format", "pdf", "-o", str(file)]) == 0
    read = pypdf.PdfReader(file)
    words = "".join(page.extract_text() for page in read.pages)
    for expected in ("Result", "A rate of 0.1", "Loss | of all", "run-0", "last line"):
        assert expected in words, expected
    for drawn in ("Across: acc/top1", "Across: config.lr", "summary.loss"):  # dots, dots of fields, axes
        assert drawn in words, drawn
    assert sum(len(page.images) for page in read.pages) == 1


def test_what_cannot_be_exported(
    exported: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["report", "export", "999"]) == 1
    assert "999" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["report", "export", exported, "--format", "pdf"]) == 2
    assert "--output" in capsys.readouterr().err
