"""The keys of the program, in one process with Textual's pilot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import pytest
from textual import events
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget

from runvitals.terminal.leet.app import LeetApp
from runvitals.terminal.leet.opening import OpeningTarget
from runvitals.terminal.leet.question_screen import QuestionScreen
from runvitals.terminal.leet.run_screen import RunScreen
from runvitals.terminal.leet.runs_screen import RunsScreen
from runvitals.terminal.leet.sources.journal_catalogue import JournalCatalogue
from runvitals.terminal.leet.text_pane import TextPane
from tests.patience import PATIENCE_S
from tests.readers.journals.journals import MACHINE, T0, Monitor, Trainer

Mouse = TypeVar("Mouse", bound=events.MouseEvent)
Shown = TypeVar("Shown", bound=Screen[None])
EVIL = "\x1b]0;owned\x07\x1b[31m\u202e学習e\u0301"


def plant(folder: Path) -> tuple[Monitor, Trainer]:
    """Two ended runs, and one that still records."""
    for index in range(2):
        ended, logged = Monitor(folder, f"ended-{index}"), Trainer(folder, f"ended-{index}")
        logged.log(T0, 0, loss=1.0 + index)
        logged.log(T0 + 1, 1, loss=0.5 + index)
        ended.end(T0 + 1000)
    start_ms = time.time_ns() // 1_000_000 - 60_000
    monitor, trainer = Monitor(folder, "live", start_ms=start_ms), Trainer(folder, "live", start_ms=start_ms)
    monitor.info(start_ms, run={"name": f"live {EVIL}"}, machine=MACHINE, config={EVIL: EVIL, "lr": 0.1})
    keys = [f"gpu.{index}.temp" for index in range(4)]
    for second in range(60):
        values = {**dict.fromkeys(keys, 60.0 + second % 7), "cpu": float(second), f"odd.{EVIL}": 1.0}
        monitor.sample(start_ms + second * 1000, values)
        trainer.log(start_ms + second * 1000, second, **{"loss": 1 / (1 + second), "val/acc": 0.5, EVIL: 1.0})
        monitor.printed(start_ms + second * 1000, f"epoch {second} {EVIL}\n")
    return monitor, trainer


def mouse(kind: type[Mouse], widget: Widget, at: Offset, button: int = 0) -> Mouse:
    screen = at + widget.region.offset
    return kind(widget, at.x, at.y, 0, 0, button, False, False, False, *screen)


async def until(pilot: Pilot[None], holds: Callable[[], object]) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < give_up_s, pilot.app.screen
        await pilot.pause(0.02)


async def screen_of(pilot: Pilot[None], kind: type[Shown]) -> Shown:
    """The screen of a kind, once it is there with its panes."""
    await until(pilot, lambda: isinstance(pilot.app.screen, kind) and pilot.app.screen.is_mounted)
    return cast(Shown, pilot.app.screen)


def test_keys(tmp_path: Path) -> None:
    monitor, trainer = plant(tmp_path)

    async def use() -> None:
        app = LeetApp(OpeningTarget(JournalCatalogue(str(tmp_path)), "live"), interval_s=0.05)
        async with app.run_test(size=(140, 44)) as pilot:
            await run_screen(pilot)
            await zoom_and_crosshair(pilot)
            await small_terminals(pilot)
            await runs_screen(pilot)
        assert app.return_code == 0

    async def run_screen(pilot: Pilot[None]) -> None:
        screen = await screen_of(pilot, RunScreen)
        await until(pilot, lambda: screen.system.charts and "epoch 59" in screen.console.text)
        assert [chart.title for chart in screen.metrics.charts][-2:] == ["loss", "val/acc"]
        for shown in (screen.metrics, screen.system, screen.overview, screen.console, screen.header):
            assert shown.text.replace("\n", "").isprintable()
        assert "°C" in screen.system.text
        assert "odd." in screen.system.text

        now_ms = time.time_ns() // 1_000_000
        trainer.log(now_ms, 60, fresh=1.0)  # appears while the screen is open
        await until(pilot, lambda: any(chart.title == "fresh" for chart in screen.metrics.charts))

        folder = tmp_path / "runs" / "live"
        folder.rename(tmp_path / "moved")
        await until(pilot, lambda: "the run cannot be read: No such file" in screen.footer.text)
        await pilot.press("slash", *"^val", "enter")  # goes on with what was read
        await until(pilot, lambda: "1 of 4 with ^val" in screen.metrics.text)
        (tmp_path / "moved").rename(folder)
        await until(pilot, lambda: "help" in screen.footer.text)
        await pilot.press("ctrl+l")
        await until(pilot, lambda: "val" in screen.metrics.text and not screen.metrics.pattern)
        await pilot.press("slash", *"^val", "enter")
        await until(pilot, lambda: [chart.title for chart in screen.metrics.charts] == ["val/acc"])
        await pilot.press("slash", "(")  # invalid: the message says so, and esc takes it back
        await until(pilot, lambda: "invalid regular expression" in screen.footer.text)
        await pilot.press("escape")
        await until(pilot, lambda: screen.metrics.pattern == "^val")
        await pilot.press("ctrl+l", "slash", *"val/*")
        await until(pilot, lambda: "regular expression (tab: glob)" in screen.footer.text)
        await until(pilot, lambda: [chart.title for chart in screen.metrics.charts] == ["val/acc"])
        await pilot.press("tab")
        await until(pilot, lambda: "glob (tab: regular expression)" in screen.footer.text)
        await pilot.press("backspace")
        await until(pilot, lambda: screen.metrics.charts == [])  # the whole name has to match
        await pilot.press("escape", "slash", *"*a[bc]c", "tab")
        await until(pilot, lambda: "1 of 4 with glob *a[bc]c" in screen.metrics.text)
        await pilot.press("enter", "slash", "tab", "escape")  # esc takes back the kind too
        await until(pilot, lambda: "with glob" in screen.metrics.text)
        await pilot.press("ctrl+l", "slash", "tab", "enter", "backslash", *"temp", "enter")
        await until(pilot, lambda: len(screen.metrics.charts) == 4)
        await until(pilot, lambda: [chart.unit for chart in screen.system.charts] == ["°C"])
        await until(pilot, lambda: screen.system.has_focus)

        await pilot.press("enter")
        await until(pilot, lambda: screen.system.size.width > 130)
        await until(pilot, lambda: not screen.console.is_on_screen)
        await pilot.press("y", "g")
        await until(pilot, lambda: "(log)" in screen.system.text)
        await pilot.press("escape", "ctrl+backslash")
        await until(pilot, lambda: screen.console.is_on_screen)

        await until(pilot, lambda: "last 10m" in screen.system.text)
        await pilot.press("plus", "plus")
        await until(pilot, lambda: "last 2m" in screen.system.text)
        await pilot.press(*["minus"] * 9)
        await until(pilot, lambda: "whole run" in screen.system.text)

        await pilot.press("4", "left_square_bracket", "2")
        await pilot.pause()
        await until(pilot, lambda: not screen.console.is_on_screen)
        await until(pilot, lambda: not screen.overview.is_on_screen)
        await until(pilot, lambda: not screen.system.is_on_screen)
        await pilot.press("4", "left_square_bracket", "right_square_bracket")
        await until(pilot, lambda: screen.console.is_on_screen and screen.overview.is_on_screen)
        await pilot.press("o", *"^State", "enter")
        await until(pilot, lambda: "with ^State" in screen.overview.text)
        await pilot.press("o", *["backspace"] * 6, *"Proj*", "tab", "enter")
        await until(pilot, lambda: "with glob Proj\nProject" in screen.overview.text)
        await pilot.press("ctrl+o")
        await until(pilot, lambda: "Project" in screen.overview.text)
        await pilot.press("escape")  # leaves the pane, not the run
        await until(pilot, lambda: screen.metrics.has_focus)
        await pilot.press("r", "1", "c", "1", "home", "n", "X")
        await until(pilot, lambda: "page 2 of 4 · whole run · over time" in screen.metrics.text)
        await pilot.press("tab")
        await until(pilot, lambda: screen.system.has_focus)
        await pilot.resize_terminal(60, 20)
        await pilot.press("question_mark")
        await until(pilot, lambda: "or the\n" in pilot.app.screen.query_one("#help", TextPane).text)
        await pilot.resize_terminal(140, 44)
        await until(pilot, lambda: "or the pane; back" in pilot.app.screen.query_one("#help", TextPane).text)
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)

    async def zoom_and_crosshair(pilot: Pilot[None]) -> None:
        screen = await screen_of(pilot, RunScreen)
        grid = screen.system
        await pilot.press("L", "minus")
        place = grid.shown[0]
        low, high = place.x_range
        at = Offset(place.plot_left + 1, place.top + 2)
        grid.post_message(mouse(events.MouseScrollUp, grid, at))
        await until(pilot, lambda: grid.window.is_frozen and "frozen" in grid.text)
        assert grid.shown[0].x_at(at.x) == pytest.approx(place.x_at(at.x), abs=(high - low) / 50)
        await pilot.press("greater_than_sign", "less_than_sign", "L")
        await until(pilot, lambda: not grid.window.is_frozen)
        await pilot.press("A")
        await until(pilot, lambda: "whole run" in grid.text)
        grid.post_message(mouse(events.MouseMove, grid, at, button=3))
        await until(pilot, lambda: grid.cross is not None and screen.metrics.cross == grid.cross)
        await pilot.press("comma", "full_stop")
        assert "│" in grid.text
        await pilot.press("l")
        await until(pilot, lambda: "linked" in screen.footer.text)
        assert screen.data.run is not None
        second = int((float(grid.cross or 0.0) - screen.data.run.started_ms) // 1000)
        await until(pilot, lambda: f"epoch {second} " in screen.console.marked_text)
        screen.console.focus()
        await pilot.press("up", "up")  # the crosshair follows the line
        await until(pilot, lambda: f"epoch {second - 2} " in screen.console.marked_text)
        await until(pilot, lambda: grid.cross == screen.data.time_of_step("loss", second - 2))
        await pilot.press("X")  # over steps, too
        screen.metrics.focus()
        await pilot.press("comma", "end", "full_stop")
        await until(pilot, lambda: "epoch 59" in screen.console.marked_text)
        await pilot.press("X", "l")
        await until(pilot, lambda: screen.console.marked_text == "" and "epoch 59" in screen.console.text)
        await pilot.press("v")
        await until(pilot, lambda: grid.cross is screen.metrics.cross is None)

    async def small_terminals(pilot: Pilot[None]) -> None:
        screen = await screen_of(pilot, RunScreen)
        for size in ((60, 20), (20, 8), (1, 1), (200, 60), (60, 20)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        await until(pilot, lambda: not screen.overview.is_on_screen)
        await until(pilot, lambda: screen.metrics.is_on_screen)
        await until(pilot, lambda: screen.system.is_on_screen)

    async def runs_screen(pilot: Pilot[None]) -> None:
        await pilot.resize_terminal(140, 44)
        await pilot.press("escape", "escape")
        screen = await screen_of(pilot, RunsScreen)
        await until(pilot, lambda: len(screen.table.runs) == 3)
        await until(pilot, lambda: screen.runs.text.replace("\n", "").isprintable())
        await pilot.press("f", *"state:finished", "enter", "ctrl+a")
        await until(pilot, lambda: isinstance(pilot.app.screen, QuestionScreen))
        await pilot.press("y")
        await until(pilot, lambda: "2 of 3 · 2 selected" in screen.runs.text)
        await until(pilot, lambda: [chart.title for chart in screen.metrics.charts] == ["loss"])
        await until(pilot, lambda: "ended-0 ended-1" in screen.metrics.text)
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: not screen.runs.is_on_screen and screen.overview.is_on_screen)
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: screen.metrics.size.width == 140)
        await pilot.press("left_square_bracket", "right_square_bracket", "escape")
        await until(pilot, lambda: screen.runs.has_focus)
        await pilot.press("x", "ctrl+f", "d", "d")  # to the end
        await until(pilot, lambda: screen.table.cursor == 2)
        await pilot.press("home", "enter")
        opened = await screen_of(pilot, RunScreen)
        await until(pilot, lambda: opened.data.run is not None and opened.data.run.id == "live")
        await pilot.press("alt+r")
        await until(pilot, lambda: cast(LeetApp, pilot.app).wants_restart)

    asyncio.run(use())
    monitor.close()
    trainer.close()
