"""Metrics over other metrics, as runs choose it with `define_metric`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.base.protobuf import text, uint
from runvitals.server.http import cached_read
from runvitals.server.local_app import create_app
from runvitals.terminal.leet.app import LeetApp
from runvitals.terminal.leet.opening import OpeningTarget
from runvitals.terminal.leet.overlay import RunOverlay
from runvitals.terminal.leet.run_data import RunData
from runvitals.terminal.leet.run_screen import RunScreen
from runvitals.terminal.leet.series_column import SeriesColumn, over_metric
from runvitals.terminal.leet.sources.journal_catalogue import JournalCatalogue
from runvitals.terminal.leet.sources.run_source import RunSource
from runvitals.terminal.leet.sources.server_catalogue import ServerCatalogue
from runvitals.terminal.leet.sources.wandb import WandbSource
from tests.readers.journals.journals import T0, Monitor, Trainer
from tests.readers.servers.serving import serving
from tests.readers.wandb_files import files
from tests.terminal.leet.test_app import screen_of, until


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    with serving(create_app(str(tmp_path), lambda: T0 + 60_000)) as address:
        yield address


def plant(folder: Path) -> None:
    """Two ranks, whose epochs are at different steps."""
    Monitor(folder).info(T0, metrics={"val/*": {"x": "epoch"}, "debug": {"hidden": True}, "b": {"x": "c"}})
    for rank in range(2):
        trainer = Trainer(folder, rank=rank, pid=100 + rank, host=f"node{rank}")
        for epoch in range(3):
            step = 10 * epoch + rank
            trainer.log(T0 + 1000 * step, step, **{"val/acc": epoch / 10 + rank, "epoch": epoch, "b": 1.0})
        trainer.log(T0 + 30_000, 30, **{"val/acc": 9.0, "debug": 1.0})  # no epoch was logged at this step


def shown(source: RunSource, title: str, on_time: bool = False) -> list[tuple[list[float], list[float]]]:
    """The lines of a chart, as x and y."""
    data = RunData(source)
    for _ in range(3):  # a server is asked for what is shown
        data.poll()
        (chart,) = [chart for chart in data.metric_charts() if chart.title == title]
        (lines,) = data.logged_lines([chart], on_time)
    return [(list(line.series.x), list(line.series.y)) for line in lines]


def test_values_are_joined_by_step() -> None:
    loss = SeriesColumn([1, 2, 3, 4], [9.0, 8.0, 7.0, 6.0])
    epoch = SeriesColumn([2, 2, 4, 5], [0.0, 2.0, 1.0, 3.0])
    joined = over_metric(loss, epoch)
    assert (list(joined.x), list(joined.y)) == ([1.0, 2.0], [6.0, 8.0])
    assert over_metric(loss, SeriesColumn()).count == over_metric(SeriesColumn(), epoch).count == 0


def test_each_process_has_its_own_axis(tmp_path: Path, url: str) -> None:
    plant(tmp_path)
    expected = [([0.0, 1.0, 2.0], [0.0, 0.1, 0.2]), ([0.0, 1.0, 2.0], [1.0, 1.1, 1.2])]
    remote = ServerCatalogue(url, {})
    for source in (JournalCatalogue(str(tmp_path)).open("abc"), remote.open("abc")):
        assert shown(source, "val/acc") == expected
        assert shown(source, "epoch")[0] == ([0.0, 10.0, 20.0], [0.0, 1.0, 2.0])
        assert shown(source, "b")[0][0] == [0.0, 10.0, 20.0]  # nobody logged its axis: steps
        assert [len(x) for x, _ in shown(source, "val/acc", on_time=True)] == [4, 4]
        source.close()
    remote.close()


def test_axes_of_runs_over_each_other(tmp_path: Path) -> None:
    plant(tmp_path)
    Monitor(tmp_path, "plain").sample(T0, {"cpu": 1.0})
    Trainer(tmp_path, "plain").log(T0, 7, **{"val/acc": 5.0, "epoch": 3.0})
    overlay = RunOverlay(JournalCatalogue(str(tmp_path)).open)
    overlay.select({"plain": 0, "abc": 1})
    overlay.poll()
    (chart,) = [chart for chart in overlay.charts() if chart.title == "val/acc"]
    (lines,) = overlay.lines([chart], on_time=False)
    assert [list(line.series.x) for line in lines] == [[3.0], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]
    overlay.select({})


def test_axes_of_a_wandb_file(tmp_path: Path) -> None:
    path = files.write(
        tmp_path / "run-abc.wandb",
        files.started(),
        # define_metric("val/*", step_metric="epoch", summary="last", goal="maximize"), and a hidden one
        text(12, text(2, "val/*") + text(4, "epoch") + text(7, uint(5, 1)) + uint(8, 2)),
        text(12, text(1, "debug") + text(6, uint(2, 1)) + text(4, "_step")),
        files.row(5, 1, {"val/acc": 0.5, "epoch": 1.0, "debug": 1.0}),
        files.row(9, 2, {"val/acc": 0.7, "epoch": 2.0}),
    )
    source = WandbSource(str(path))
    assert shown(source, "val/acc") == [([1.0, 2.0], [0.5, 0.7])]
    assert source.run is not None
    assert source.run.defined_metrics == {
        "val/*": {"summary": "last", "x": "epoch", "goal": "maximize"},
        "debug": {"hidden": True},
    }
    source.close()


def test_charts_with_an_axis_of_their_own(tmp_path: Path) -> None:
    plant(tmp_path)

    async def use() -> None:
        app = LeetApp(OpeningTarget(JournalCatalogue(str(tmp_path)), "abc"), interval_s=0.05)
        async with app.run_test(size=(140, 44)) as pilot:
            screen = await screen_of(pilot, RunScreen)
            grid = screen.metrics
            await until(pilot, lambda: re.search("└0 +epoch +2│", grid.text))
            assert [chart.title for chart in grid.charts] == ["b", "epoch", "val/acc"]
            assert "4 · 1 hidden by the run" in grid.text
            await pilot.press("d", "d", "plus", "comma")  # zooms and inspects val/acc alone
            await until(pilot, lambda: "last 1 of epoch" in grid.text and grid.cross == 2.0)
            ranges = {grid.charts[place.chart].title: place.x_range for place in grid.shown}
            assert (ranges["val/acc"], ranges["b"][0]) == ((1.0, 2.0), 0.0)
            await pilot.press("X")
            await until(pilot, lambda: not re.search("└1 +epoch", grid.text) and "over time" in grid.text)
            await pilot.press("X", "slash", *"debug", "enter")
            await until(pilot, lambda: [chart.title for chart in grid.charts] == ["debug"])

    asyncio.run(use())
