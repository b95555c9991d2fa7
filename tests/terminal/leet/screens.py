"""Draws the screens of the documentation: `scripts/leet-screens`. `runvitals simulate` records the run."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from textual.app import App

from runvitals.readers.journals.run_handle import find_run
from runvitals.terminal.leet.app import LeetApp
from runvitals.terminal.leet.opening import OpeningTarget
from runvitals.terminal.leet.run_screen import RunScreen
from runvitals.terminal.leet.runs_screen import RunsScreen
from runvitals.terminal.leet.sources.journal_catalogue import JournalCatalogue
from tests.terminal.leet.test_app import screen_of, until

OUTPUT = Path(__file__).resolve().parents[3] / "docs" / "leet"
_SIZE = (140, 42)
_SIMULATED = ("--profile", "h100x8", "--nodes", "4", "--speed", "max", "--hours", "1")
_OTHERS = [("--profile", "a100x8", "--speed", "max", "--hours", "1", "--seed", str(seed)) for seed in (1, 2)]


async def draw(folder: Path, name: str, keys: Sequence[str]) -> None:
    """Press keys on the screen of the run, and write what it shows."""
    run_id = find_run("latest", str(folder))
    app: App[None] = LeetApp(OpeningTarget(JournalCatalogue(str(folder)), run_id), 0.2)
    async with app.run_test(size=_SIZE) as pilot:
        screen = await screen_of(pilot, RunScreen)
        await until(
            pilot,
            lambda: screen.system.charts and screen.metrics.charts and screen.findings.findings is not None,
        )
        await pilot.press(*keys)
        await pilot.pause(1.0)
        svg = app.export_screenshot(title="runvitals leet")
    OUTPUT.mkdir(exist_ok=True)
    (OUTPUT / f"{name}.svg").write_text(svg, encoding="utf-8")


async def draw_list(folder: Path) -> None:
    """Select all runs of the list, and show the system metrics of the one at the cursor."""
    os.chdir(folder)  # the screen has the name of the data folder
    app: App[None] = LeetApp(OpeningTarget(JournalCatalogue("runs"), None), 0.2)
    async with app.run_test(size=_SIZE) as pilot:
        screen = await screen_of(pilot, RunsScreen)
        await until(pilot, lambda: screen.table.runs)
        await pilot.press("ctrl+a", "y", "2")
        await until(pilot, lambda: screen.metrics.charts and screen.system.charts)
        await pilot.pause(1.0)
        svg = app.export_screenshot(title="runvitals leet")
    (OUTPUT / "runs.svg").write_text(svg, encoding="utf-8")


def simulate(folder: Path, options: Sequence[str]) -> None:
    """Record a run."""
    command = [sys.executable, "-m", "runvitals", "simulate", *options, "--dir", str(folder)]
    environ = {**os.environ, "RUNVITALS_SAMPLING_INTERVAL": "5"}
    subprocess.run(command, check=True, timeout=600, env=environ)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "runs"
        simulate(folder, _SIMULATED)
        asyncio.run(draw(folder, "run", ()))
        asyncio.run(draw(folder, "findings", ("f",)))
        temperature = ("backslash", *"gpu.*gpu$", "enter", "enter")
        asyncio.run(draw(folder, "heatmap", temperature))
        for options in _OTHERS:
            simulate(folder, options)
        asyncio.run(draw_list(Path(name)))


if __name__ == "__main__":
    main()
