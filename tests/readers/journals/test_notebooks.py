"""Runs, rows and series show themselves in a notebook, and become data frames and plots."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from runvitals.readers.journals import OpenRun, open_run
from tests.readers.journals.journals import T0, Monitor, Trainer

EVIL = '<img src=x onerror="alert(1)">'


class Elements(HTMLParser):
    """The names of the elements of HTML that closes all that it opens."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[Any]) -> None:
        self.names.append(tag)
        if tag != "br":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[Any]) -> None:
        self.names.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


@pytest.fixture
def run(tmp_path: Path) -> OpenRun:
    monitor = Monitor(tmp_path)
    monitor.info(T0, run={"name": EVIL})
    for i in range(500):
        monitor.sample(T0 + 1000 * i, {"cpu": float(i % 7), "gpu.0.gpu": float("nan") if i % 5 else 90.0})
    monitor.end(T0 + 500_000, "finished", exit_code=0)
    for rank in (0, 1):
        trainer = Trainer(tmp_path, pid=rank, rank=rank)
        for step in range(3):
            trainer.log(T0 + 1000 * step, step, loss=1 / (step + 1), sizes={"a": step}, **{EVIL: 1.0})
        trainer.log(T0 + 9000, 3, text="late", host=1)
        trainer.close()
    return open_run("abc", str(tmp_path))


def test_what_is_shown_is_inert(run: OpenRun) -> None:
    for shown in (run, run.history(), run.metrics()):
        names = set(Elements(shown._repr_html_()).names)
        assert names <= {"div", "b", "span", "br", "svg", "path", "table", "tr", "th", "td"}
    page = run._repr_html_()
    assert "● finished" in page
    assert "loss: 0.333333" in page
    assert len(re.findall("<svg", page)) == 6  # loss, sizes.a, the evil name, host, cpu, gpu


def test_charts_keep_extremes_and_gaps(tmp_path: Path) -> None:
    from runvitals.readers.journals.html_views import sparkline

    path = sparkline([0.0] * 5000 + [9.0] + [0.0] * 5000)
    assert " 2.0" in path  # the top: its one high value is not averaged away
    assert sparkline([1.0, float("nan"), 1.0]).count("M") == 2
    assert 'd=""' in sparkline([])


def test_pandas_and_polars(run: OpenRun) -> None:
    pytest.importorskip("pandas")
    rows = run.history().to_pandas()
    assert list(rows.columns[:5]) == ["step", "time", "rank", "host", "loss"]
    assert rows[rows["rank"] == 1]["loss"].tolist()[:3] == [1.0, 0.5, 1 / 3]
    assert rows["sizes.a"].dropna().tolist() == [0, 0, 1, 1, 2, 2]
    assert rows["logged.host"].dropna().tolist() == [1, 1]
    metrics = run.metrics().to_pandas()
    assert (len(metrics), metrics["cpu"][3], str(metrics["time"].dt.tz)) == (500, 3.0, "UTC")
    assert metrics["gpu.0.gpu"].notna().sum() == 100
    polars = pytest.importorskip("polars")
    assert run.metrics().to_polars()["cpu"].sum() == metrics["cpu"].sum()
    assert run.history().to_polars().schema["time"] == polars.Datetime("us", "UTC")


def test_plots(run: OpenRun) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    (axes,) = run.history().plot("loss")
    assert [line.get_label() for line in axes.lines] == ["node1 rank 0", "node1 rank 1"]
    assert axes.lines[0].get_ydata().tolist() == [1.0, 0.5, 1 / 3]
    assert [chart.get_title(loc="left") for chart in run.metrics().plot()] == ["cpu (%)", "gpu.0.gpu (%)"]
    pyplot.close("all")
    with pytest.raises(LookupError, match=r"no numbers were logged under 'nothing'; what was logged: .*loss"):
        run.history().plot("loss", "nothing")
