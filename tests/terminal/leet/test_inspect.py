"""The record browser: over journals and W&B's files, on the screen and as JSON."""

from __future__ import annotations

import asyncio
import io
import json
import re
from pathlib import Path

from runvitals.terminal.leet.inspect_screen import InspectApp, InspectScreen
from runvitals.terminal.leet.inspection import print_records, print_summary, source_of
from runvitals.terminal.leet.opening import OpeningTarget, Surroundings, target
from runvitals.terminal.leet.sources.journal_catalogue import JournalCatalogue
from tests.readers.journals.journals import T0, Monitor, Trainer
from tests.readers.wandb_files import files
from tests.terminal.leet.test_app import EVIL, until


def plant(folder: Path) -> tuple[Monitor, Trainer]:
    monitor, trainer = Monitor(folder), Trainer(folder)
    monitor.sample(T0, {"cpu": 50.0, f"odd.{EVIL}": float("nan")})
    trainer.log(T0 + 1500, 3, loss=0.5, note=EVIL)
    monitor.printed(T0, f"hello {EVIL}\n")
    return monitor, trainer


def test_records_as_json(tmp_path: Path) -> None:
    monitor, _ = plant(tmp_path)
    source = source_of(OpeningTarget(JournalCatalogue(str(tmp_path)), None))
    out = io.StringIO()
    print_records(source, out, follow=False)
    lines = out.getvalue().splitlines()
    assert all(line.isascii() and line.isprintable() for line in lines)
    records = [json.loads(line) for line in lines]
    assert [record["kind"] for record in records] == [
        "start", "schema", "sample", "console", "start", "history"
    ]  # fmt: skip
    assert records[2]["value"] == {"cpu": 50.0, f"odd.{EVIL}": None}
    assert records[3]["value"] == {"stream": "stdout", "text": f"hello {EVIL}\n"}
    assert records[5]["time_ms"] == T0 + 1500

    paused = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        monitor.end(T0 + 3000)

    out = io.StringIO()
    source._clock = lambda: T0 + 1000  # type: ignore[attr-defined]
    print_records(source, out, follow=True, pause=pause)
    assert json.loads(out.getvalue().splitlines()[-1])["value"]["what"] == "end"
    assert paused == [1.0]


def test_records_of_a_wandb_file(tmp_path: Path) -> None:
    path = files.write(tmp_path / "run-abc.wandb", files.started(), b"\x32\x01a", b"\xff", files.ended(0, 9))
    opened = target(path, Surroundings(str(tmp_path), "/", None, {}))
    source = source_of(opened)
    out = io.StringIO()
    print_records(source, out, follow=False)
    kinds = [json.loads(line)["kind"] for line in out.getvalue().splitlines()]
    assert kinds == ["RunStart", "type 6", "damaged", "RunExit"]
    source.close()


def test_summary(tmp_path: Path) -> None:
    monitor, trainer = plant(tmp_path)
    source = source_of(OpeningTarget(JournalCatalogue(str(tmp_path)), "abc"))
    out = io.StringIO()
    print_summary(source, out, as_json=False)
    assert out.getvalue().replace("\n", "").isprintable()
    assert re.search(
        r"(?s)^State .*\nProject digits\n.*\nSummary\n.*loss 0\.5\n.*\nConsole\nhello ", out.getvalue()
    )
    out = io.StringIO()
    print_summary(source, out, as_json=True)
    summary = json.loads(out.getvalue())
    assert (summary["id"], summary["summary"]["loss"], summary["console"][0][:5]) == ("abc", 0.5, "hello")
    monitor.close()
    trainer.close()


def test_record_browser(tmp_path: Path) -> None:
    monitor, trainer = plant(tmp_path)

    async def use() -> None:
        source = source_of(OpeningTarget(JournalCatalogue(str(tmp_path)), "abc"))
        app = InspectApp(source, follows=False, interval_s=0.02)
        async with app.run_test(size=(120, 30)) as pilot:
            await until(pilot, lambda: isinstance(app.screen, InspectScreen) and app.screen.records.count)
            screen = app.screen
            assert isinstance(screen, InspectScreen)
            await pilot.press("slash", *"loss", "enter")
            await until(pilot, lambda: "1 of 6 with loss" in screen.records.text)
            await until(pilot, lambda: '"loss": 0.5' in screen.detail.text)
            for shown in (screen.records.text, screen.detail.text, screen.header.text):
                assert shown.replace("\n", "").isprintable()
            trainer.log(T0 + 2000, 4, loss=0.25)
            await until(pilot, lambda: "2 of 7" in screen.records.text)
            await pilot.press("f")
            await until(pilot, lambda: '"loss": 0.25' in screen.detail.text)
            await pilot.press("f", "ctrl+l", "home")
            await until(pilot, lambda: '"role": "monitor"' in screen.detail.text)
            await pilot.press("down", "down")
            await until(pilot, lambda: '"cpu": 50.0' in screen.detail.text)
            await pilot.resize_terminal(60, 20)
            await pilot.press("question_mark")
            await until(pilot, lambda: app.screen is not screen)
            await pilot.press("escape", "end")  # follows what is written, until the cursor moves away
            await until(pilot, lambda: "following" in screen.records.text)
            await pilot.press("up", "tab")
            await until(pilot, lambda: screen.detail.has_focus and "following" not in screen.records.text)
            await pilot.press("escape")  # back to the list
            await until(pilot, lambda: screen.records.has_focus)
            await pilot.press("q")
        assert app.return_code == 0

    asyncio.run(use())
    monitor.close()
    trainer.close()
