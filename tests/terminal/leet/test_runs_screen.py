"""The list of runs, and what is known of the run at its cursor."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.server.http import cached_read
from runvitals.server.local_app import create_app
from runvitals.terminal.leet.app import LeetApp
from runvitals.terminal.leet.opening import OpeningTarget
from runvitals.terminal.leet.overlay import RunOverlay
from runvitals.terminal.leet.question_screen import QuestionScreen
from runvitals.terminal.leet.runs_screen import RunsScreen
from runvitals.terminal.leet.sources.journal_catalogue import JournalCatalogue
from runvitals.terminal.leet.sources.run_source import RunCatalogue
from runvitals.terminal.leet.sources.server_catalogue import ServerCatalogue
from tests.readers.journals.journals import T0, Monitor, Trainer
from tests.readers.servers.serving import serving
from tests.terminal.leet.test_app import screen_of, until


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    with serving(create_app(str(tmp_path), lambda: T0 + 60_000)) as address:
        yield address


def plant(folder: Path) -> None:
    """Two runs, of which `run-1` is the newest."""
    for index in range(2):
        monitor = Monitor(folder, f"run-{index}", start_ms=T0 + index)
        monitor.info(T0, run={"name": f"name-{index}"}, config={"lr": 0.5 + index})
        for second in range(20):
            monitor.sample(T0 + 1000 * second, {"cpu": 1.0, f"gpu.{index}.temp": 50.0 + second})
        monitor.printed(T0, f"said {index}\n")
        trainer = Trainer(folder, f"run-{index}", start_ms=T0 + index)
        trainer.log(T0, 1, loss=1.0)
        trainer.log(T0 + 1, 2, loss=0.5)
        monitor.end(T0 + 20_000)


async def look(catalogue: RunCatalogue) -> None:
    async with LeetApp(OpeningTarget(catalogue, None), 0.05).run_test(size=(140, 44)) as pilot:
        screen = await screen_of(pilot, RunsScreen)
        await until(pilot, lambda: "Name name-1" in screen.overview.text and "lr 1.5" in screen.overview.text)
        await pilot.press("f", *"name:x")
        await until(pilot, lambda: "no run matches the filter" in screen.runs.text)
        await pilot.press("escape")
        await until(pilot, lambda: len(screen.table.runs) == 2)
        await pilot.click(screen.runs, offset=(5, 2))  # the second run
        await until(pilot, lambda: "Name name-0" in screen.overview.text and "lr 0.5" in screen.overview.text)
        await pilot.press("2", "4")
        await until(pilot, lambda: "said 0" in screen.console.text and "°C" in screen.system.text)
        await until(pilot, lambda: "whole run" in screen.system.text)  # it has ended
        await pilot.press("backslash", *"gpu.0", "enter")
        await until(pilot, lambda: [chart.unit for chart in screen.system.charts] == ["°C"])
        await pilot.press("enter")
        await until(pilot, lambda: screen.system.size.width == 140 and not screen.runs.is_on_screen)
        await pilot.press("escape", "ctrl+backslash")
        await until(pilot, lambda: screen.runs.is_on_screen)
        screen.runs.focus()
        await pilot.press("up")
        await until(pilot, lambda: "said 1" in screen.console.text)
        await pilot.press("2", "4", "right_square_bracket")
        await until(pilot, lambda: not screen.system.is_on_screen and not screen.overview.is_on_screen)
        await pilot.resize_terminal(60, 20)
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: screen.overview.is_on_screen and screen.runs.is_on_screen)


def test_the_run_at_the_cursor(tmp_path: Path, url: str) -> None:
    plant(tmp_path)
    asyncio.run(look(JournalCatalogue(str(tmp_path))))
    asyncio.run(look(ServerCatalogue(url, {})))


def test_a_selected_run_that_is_gone(tmp_path: Path, url: str) -> None:
    plant(tmp_path)
    catalogue = ServerCatalogue(url, {})
    overlay = RunOverlay(catalogue.open)
    overlay.select({"gone": 0, "run-1": 1})
    overlay.poll()
    overlay.lines(overlay.charts(), on_time=False)  # asks for the values
    overlay.poll()
    (lines,) = overlay.lines(overlay.charts(), on_time=False)
    assert [(line.name, line.series.count) for line in lines] == [("name-1", 2)]
    overlay.select({})
    catalogue.close()


def test_a_selected_run_whose_journal_is_deleted(tmp_path: Path) -> None:
    plant(tmp_path)

    async def use() -> None:
        catalogue = JournalCatalogue(str(tmp_path))
        async with LeetApp(OpeningTarget(catalogue, None), 0.05).run_test(size=(140, 44)) as pilot:
            screen = await screen_of(pilot, RunsScreen)
            await until(pilot, lambda: screen.table.runs)
            await pilot.press("ctrl+a")
            await until(pilot, lambda: isinstance(pilot.app.screen, QuestionScreen))
            await pilot.press("y", "2")
            await until(pilot, lambda: "name-1 name-0" in screen.metrics.text and screen.system.charts)
            shutil.rmtree(tmp_path / "runs" / "run-1")  # the one at the cursor
            await until(pilot, lambda: "1 · 1 selected" in screen.runs.text)
            await until(pilot, lambda: "name-1" not in screen.metrics.text and screen.metrics.charts)
            await until(pilot, lambda: "Name name-0" in screen.overview.text and "help" in screen.footer.text)

    asyncio.run(use())


def test_what_was_chosen_is_kept(tmp_path: Path) -> None:
    plant(tmp_path)
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}

    def app_of() -> LeetApp:
        return LeetApp(OpeningTarget(JournalCatalogue(str(tmp_path)), None), 0.05, environ=environ)

    async def choose() -> None:
        async with app_of().run_test(size=(140, 44)) as pilot:
            screen = await screen_of(pilot, RunsScreen)
            await until(pilot, lambda: len(screen.table.runs) == 2)
            await pilot.press("down", "p", "4", "f", *"name-0", "enter", "slash", *"^loss", "enter")
            await until(pilot, lambda: "1 of 1 with ^loss" in screen.metrics.text)

    async def find_again() -> None:
        async with app_of().run_test(size=(140, 44)) as pilot:
            screen = await screen_of(pilot, RunsScreen)
            await until(pilot, lambda: "1 of 1 with ^loss" in screen.metrics.text)
            await until(pilot, lambda: "1 of 2 · 1 selected · name-0" in screen.runs.text)
            await until(pilot, lambda: "said 0" in screen.console.text)
            assert screen.table.pinned == "run-0"

    asyncio.run(choose())
    asyncio.run(find_again())
    (path,) = (tmp_path / "state" / "runvitals" / "leet").iterdir()
    path.write_text(
        json.dumps({**json.loads(path.read_text()), "selected": [1, "gone", "run-0"], "filter": "("})
    )

    async def with_what_is_valid() -> None:
        async with app_of().run_test(size=(140, 44)) as pilot:
            screen = await screen_of(pilot, RunsScreen)
            await until(pilot, lambda: "2 · 1 selected" in screen.runs.text)

    asyncio.run(with_what_is_valid())
