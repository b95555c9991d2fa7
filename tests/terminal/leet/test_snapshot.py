"""The whole screen of a run as text: what its parts look like together."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from runvitals.terminal.leet.app import LeetApp
from runvitals.terminal.leet.opening import OpeningTarget
from runvitals.terminal.leet.run_screen import RunScreen
from runvitals.terminal.leet.sources.journal_catalogue import JournalCatalogue
from tests.readers.journals.journals import T0, Monitor, Trainer
from tests.terminal.leet.test_app import screen_of, until

SNAPSHOTS = Path(__file__).with_name("snapshots")


def plant(folder: Path) -> None:
    monitor, trainer = Monitor(folder), Trainer(folder)
    for second in range(61):
        values = {f"gpu.{index}.temp": 60.0 + index + second % 10 for index in range(12)}
        monitor.sample(T0 + second * 1000, {**values, "cpu": float(second), "my.own_key": 2.0 * second})
        trainer.log(T0 + second * 1000, second, loss=2.0 / (1 + second), accuracy=second / 60)
        monitor.printed(T0 + second * 1000, f"step {second}\n")
    monitor.info(T0, run={"name": "snapshot"}, config={"lr": 0.1})
    trainer.close()
    monitor.end(T0 + 61_000)


@pytest.mark.parametrize(("name", "size", "keys"), [
    ("wide", (120, 36), ()),
    ("small", (60, 20), ()),
    ("heatmap", (80, 24), ("tab", "backslash", *"temp", "enter", "enter", "comma")),
])  # fmt: skip
def test_screens(
    tmp_path: Path, name: str, size: tuple[int, int], keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delete the files in `snapshots/` to write them anew; then look at what has changed."""
    monkeypatch.setenv("TZ", "UTC")
    plant(tmp_path)
    shown = ""

    async def use() -> None:
        nonlocal shown
        app = LeetApp(OpeningTarget(JournalCatalogue(str(tmp_path)), "abc"), 0.05)
        async with app.run_test(size=size) as pilot:
            screen = await screen_of(pilot, RunScreen)
            await until(pilot, lambda: "step 60" in screen.console.text and screen.system.charts)
            await pilot.press(*keys)
            await until(pilot, lambda: not keys or screen.system.cross is not None)
            panes = (screen.header, screen.overview, screen.metrics, screen.system, screen.console)
            parts = [pane.text for pane in panes if pane.is_on_screen]
            shown = "\n".join(line for line in "\n".join(parts).split("\n") if "Started" not in line) + "\n"

    asyncio.run(use())
    path = SNAPSHOTS / f"{name}.txt"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown, encoding="utf-8")
        pytest.fail(f"{path} is new: look at it")
    assert shown == path.read_text(encoding="utf-8")
