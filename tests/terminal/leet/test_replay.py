"""The replay of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from runvitals.terminal.leet.app import LeetApp
from runvitals.terminal.leet.opening import OpeningTarget
from runvitals.terminal.leet.replay import Replay, speed_of
from runvitals.terminal.leet.run_screen import RunScreen
from runvitals.terminal.leet.sources.journal_catalogue import JournalCatalogue
from tests.readers.journals.journals import T0, Monitor, Trainer
from tests.terminal.leet.test_app import screen_of, until


def test_speeds() -> None:
    assert [speed_of(text) for text in ("10x", "0.5", "300x")] == [10.0, 0.5, 300.0]
    for text in ("", "x", "0x", "-1", "1e9", "fast"):
        with pytest.raises(ValueError, match="expected a speed such as 10x"):
            speed_of(text)


def test_a_replay_moves_with_the_clock() -> None:
    now_s = 100.0
    replay = Replay(10.0, lambda: now_s)
    replay.begin(0.0, 100_000.0)
    now_s = 102.0
    assert replay.position() == 20_000.0
    replay.toggle_pause()
    now_s = 110.0
    assert replay.position() == 20_000.0
    replay.seek(0.05)
    replay.toggle_pause()
    replay.change_speed(1)
    now_s = 111.0
    assert replay.position() == 55_000.0
    assert "".join(text for text, _ in replay.row()).startswith(" ⏵ 30× 55s of 1m40s ━")
    now_s = 200.0
    assert replay.position() == 100_000.0
    replay.set_end(130_000.0)  # the run goes on
    now_s = 201.0
    assert replay.position() == 130_000.0
    replay.seek(-2.0)
    assert replay.position() == 0.0
    replay.seek(2.0)
    replay.toggle_pause()  # at the end it starts again
    assert (replay.position(), replay.is_paused) == (0.0, False)


def test_a_replay_shows_a_run_as_it_was(tmp_path: Path) -> None:
    monitor, trainer = Monitor(tmp_path), Trainer(tmp_path)
    for second in range(101):
        monitor.sample(T0 + second * 1000, {"cpu": float(second)})
        trainer.log(T0 + second * 1000, second, loss=float(second))
        monitor.printed(T0 + second * 1000, f"line {second}\n")
    monitor.end(T0 + 100_000)

    async def use() -> None:
        app = LeetApp(OpeningTarget(JournalCatalogue(str(tmp_path)), "abc"), 0.1, replay_speed=1000.0)
        async with app.run_test(size=(140, 44)) as pilot:
            screen = await screen_of(pilot, RunScreen)
            assert screen.replay is not None
            await until(pilot, lambda: "of 1m40s" in screen.header.text)
            await until(pilot, lambda: "line 100" in screen.console.text)
            screen.replay.speed = 1e-6
            await pilot.press("space")  # at the end it starts again
            await until(pilot, lambda: "line 100" not in screen.console.text)
            await pilot.press("space", "left_curly_bracket")
            await until(pilot, lambda: "⏸" in screen.header.text)
            screen.replay.seek(-2.0)
            await pilot.press(*["right_curly_bracket"] * 10)
            await until(pilot, lambda: screen.data.until_ms == T0 + 50_000)
            ((loss,),) = screen.data.logged_lines(screen.data.metric_charts(), on_time=False)
            assert loss.series.newest == 50.0
            ((cpu,),) = screen.data.system_lines(screen.data.system_charts(), (0, T0))
            assert cpu.series.newest == 50.0
            assert screen.data.time_range()[1] == T0 + 50_000
            await until(pilot, lambda: screen.console.text.endswith("line 50"))
            await pilot.press("q")

    asyncio.run(use())
