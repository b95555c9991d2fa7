"""The borders between panes, dragged by the mouse."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.events import MouseMove
from textual.pilot import Pilot

from runvitals.terminal.leet.app import LeetApp
from runvitals.terminal.leet.opening import OpeningTarget
from runvitals.terminal.leet.run_screen import RunScreen
from runvitals.terminal.leet.runs_screen import RunsScreen
from runvitals.terminal.leet.sources.journal_catalogue import JournalCatalogue
from tests.terminal.leet.test_app import plant, screen_of, until


async def drag(pilot: Pilot[None], start: tuple[int, int], end: tuple[int, int]) -> None:
    """Drag with the left button, from one cell of the screen to another."""
    await pilot.mouse_down(offset=start)
    await pilot._post_mouse_events([MouseMove], offset=end, button=1)
    await pilot.mouse_up(offset=end)
    await pilot.pause()


def app_of(folder: Path) -> LeetApp:
    environ = {"XDG_STATE_HOME": str(folder / "state")}
    return LeetApp(OpeningTarget(JournalCatalogue(str(folder)), "live"), 0.05, environ=environ)


def test_borders_are_dragged_and_kept(tmp_path: Path) -> None:
    monitor, trainer = plant(tmp_path)

    async def use() -> None:
        async with app_of(tmp_path).run_test(size=(140, 44)) as pilot:
            screen = await screen_of(pilot, RunScreen)
            await until(pilot, lambda: screen.system.charts and screen.overview.size.width == 32)
            await drag(pilot, (31, 5), (49, 5))
            await until(pilot, lambda: screen.overview.size.width == 50)
            left = screen.system.region.x
            await drag(pilot, (left, 8), (left - 10, 8))
            await until(pilot, lambda: screen.system.region.x == left - 10)
            top = screen.console.region.y
            await drag(pilot, (60, top), (60, top - 7))
            await until(pilot, lambda: screen.console.region.y == top - 7)
            await drag(pilot, (60, top - 7), (60, 0))  # a pane keeps a part
            await until(pilot, lambda: screen.metrics.size.height > 1)
            await drag(pilot, (60, screen.console.region.y), (60, 30))
            await until(pilot, lambda: screen.console.region.y == 30)

            screen.metrics.focus()
            await pilot.press("enter")  # the full screen is full, and the sizes come back
            await until(pilot, lambda: screen.metrics.size.width == 140)
            await pilot.press("escape")
            await until(pilot, lambda: screen.overview.size.width == 50 and screen.console.region.y == 30)
            await drag(pilot, (70, 20), (90, 20))  # no border
            await until(pilot, lambda: screen.system.region.x == left - 10)
            await pilot.press("q")
        async with app_of(tmp_path).run_test(size=(80, 44)) as pilot:  # too narrow for the overview
            screen = await screen_of(pilot, RunScreen)
            await until(pilot, lambda: screen.system.charts and not screen.overview.is_on_screen)
            await pilot.press("q")
        async with app_of(tmp_path).run_test(size=(140, 44)) as pilot:
            screen = await screen_of(pilot, RunScreen)
            await until(pilot, lambda: screen.overview.size.width == 50 and screen.console.region.y == 30)
            await pilot.resize_terminal(80, 44)  # system metrics are below the others now
            await until(pilot, lambda: screen.system.region.y > screen.metrics.region.y)
            top = screen.system.region.y
            await drag(pilot, (5, top), (5, top - 3))
            await until(pilot, lambda: screen.system.region.y == top - 3)
            await pilot.resize_terminal(140, 44)
            await until(pilot, lambda: screen.system.region.x == left - 10)
            await pilot.press("0")  # the usual sizes
            await until(pilot, lambda: screen.overview.size.width == 32 and not screen.borders.state())
            await pilot.press("escape", "escape")  # the overview, on which the mouse was; the run
            runs = await screen_of(pilot, RunsScreen)
            await until(pilot, lambda: runs.runs.size.width)
            width = runs.runs.size.width
            await drag(pilot, (width, 9), (width - 20, 9))
            await until(pilot, lambda: runs.runs.size.width == width - 19)

    asyncio.run(use())
    monitor.close()
    trainer.close()
