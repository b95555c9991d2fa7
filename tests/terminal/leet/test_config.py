"""The configuration, its editor, the command palette, and what is kept of a project."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from runvitals.terminal.leet.app import LeetApp
from runvitals.terminal.leet.command_screen import CommandScreen
from runvitals.terminal.leet.config import CHOICES, Config, ProjectState
from runvitals.terminal.leet.config_screen import ConfigApp, ConfigScreen
from runvitals.terminal.leet.machine.machine_screen import MachineScreen
from runvitals.terminal.leet.opening import OpeningTarget
from runvitals.terminal.leet.run_screen import RunScreen
from runvitals.terminal.leet.sources.journal_catalogue import JournalCatalogue
from tests.readers.journals.journals import T0, Monitor, Trainer
from tests.terminal.leet.test_app import screen_of, until


def test_settings_are_kept_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "config" / "leet.json"
    config = Config(str(path))
    assert config.as_dict() == {choice.name: choice.default for choice in CHOICES}
    config.set("tail_minutes", "30")
    assert json.loads(path.read_text()) == {"tail_minutes": 30}
    path.write_text(json.dumps({"tail_minutes": 7, "metrics_rows": 2, "unknown": [1]}))
    config = Config(str(path))
    assert (config["tail_minutes"], config["metrics_rows"]) == (10, 2)  # 7 is not one of the values
    config.set("guides", "dots")
    assert json.loads(path.read_text())["unknown"] == [1]
    assert config.next_value("guides", 1) == "lines"
    assert config.next_value("guides", -1) == "off"
    with pytest.raises(ValueError, match="guides is one of off, dots, lines, not 'x'"):
        config.set("guides", "x")
    with pytest.raises(ValueError, match="no setting 'colour'; there are startup"):
        config.set("colour", 1)


@pytest.mark.parametrize("content", ["[", "[]", "\udcff"])
def test_a_file_that_is_no_json_object_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "leet.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r"leet\.json is not"):
        Config(str(path))


def test_state_of_a_project(tmp_path: Path) -> None:
    state = ProjectState(str(tmp_path), "../\x00evil")
    assert state.read() == {}
    state.write({"on_time": True})
    assert ProjectState(str(tmp_path), "../\x00evil").read() == {"on_time": True}
    assert ProjectState(str(tmp_path), "other").read() == {}
    assert len(list(tmp_path.iterdir())) == 1
    next(tmp_path.iterdir()).write_text("[")
    assert state.read() == {}


def test_editor(tmp_path: Path) -> None:
    config = Config(str(tmp_path / "leet.json"))

    async def use() -> None:
        app = ConfigApp(config)
        async with app.run_test(size=(100, 30)) as pilot:
            screen = app.screen
            assert isinstance(screen, ConfigScreen)
            await until(pilot, lambda: "‹ run ›" in screen.rows.text)
            await pilot.press("down", "right", "right", "left", "up", "right")
            await until(pilot, lambda: "‹ list ›" in screen.rows.text)
            await pilot.press("escape")
        assert app.return_code == 0

    asyncio.run(use())
    stored = json.loads((tmp_path / "leet.json").read_text())
    assert stored == {"startup": "list", "line_colours": "tol-bright"}


def test_palette_configuration_and_state_of_a_run(tmp_path: Path) -> None:
    for run in ("first", "second"):
        monitor, trainer = Monitor(tmp_path, run), Trainer(tmp_path, run)
        for host in ("node1", "node2"):
            node = Monitor(tmp_path, run, host=host, start_ms=T0 + 1)
            node.sample(T0 + 10, {"cpu": 1.0, "gpu.0.temp": 60.0, "gpu.1.temp": 70.0})
            node.close()
        trainer.log(T0, 1, loss=1.0, accuracy=0.5)
        monitor.end(T0 + 1000)
    environ = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    config = Config.of_user(environ)
    config.set("metrics_columns", 1)

    def app_of(run_id: str) -> LeetApp:
        return LeetApp(OpeningTarget(JournalCatalogue(str(tmp_path)), run_id), 0.05, config, environ)

    async def first() -> None:
        app = app_of("first")
        async with app.run_test(size=(140, 44)) as pilot:
            screen = await screen_of(pilot, RunScreen)
            await until(pilot, lambda: len(screen.metrics.charts) == 2 and screen.system.charts)
            assert {place.left for place in screen.metrics.shown} == {0}  # one column
            await pilot.press("colon")
            await until(pilot, lambda: isinstance(app.screen, CommandScreen))
            commands = app.screen
            assert isinstance(commands, CommandScreen)
            await pilot.press(*"hide console")
            await until(pilot, lambda: [key.action for key in commands.matching] == ["digit(4)"])
            await pilot.press("enter")
            await until(pilot, lambda: not screen.console.is_on_screen)
            await pilot.press("F", *"node:node2 device:1", "enter")
            await until(pilot, lambda: "node:node2 device:1" in screen.header.text)
            lines = {line[:2] for chart in screen.system.charts for line in chart.lines}
            assert lines == {("cpu", "node2"), ("gpu.1.temp", "node2")}
            await pilot.press("slash", *"loss", "enter", "y", "X", "o", *"^Id", "enter")
            await until(pilot, lambda: "loss (log)" in screen.metrics.text)
            await until(pilot, lambda: "Id first" in screen.overview.text)
            assert "State" not in screen.overview.text
            await pilot.press("S")
            await until(pilot, lambda: isinstance(app.screen, ConfigScreen))
            await pilot.press(*["down"] * 3, "right", "escape")
            await until(pilot, lambda: app.screen is screen and config["guides"] == "dots")
            await pilot.press("M")
            await until(pilot, lambda: isinstance(app.screen, MachineScreen))
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is screen)
            await pilot.press("q")

    async def second() -> None:
        app = app_of("second")
        async with app.run_test(size=(140, 44)) as pilot:
            screen = await screen_of(pilot, RunScreen)
            await until(pilot, lambda: "1 of 2 with loss" in screen.metrics.text)
            await until(pilot, lambda: "loss (log)" in screen.metrics.text)
            await until(pilot, lambda: not screen.console.is_on_screen)
            assert screen.on_time
            assert screen.data.only.text == "node:node2 device:1"
            await pilot.press("q")

    asyncio.run(first())
    asyncio.run(second())
