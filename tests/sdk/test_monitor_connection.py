"""A training whose monitor cannot start or keeps dying."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runvitals.journal import frames
from runvitals.monitoring.monitor import launch
from runvitals.sdk.monitor_connection import MonitorConnection
from tests.sdk.runs import Journals, finished, start, succeeded


def test_failing_monitor_is_not_started_at_every_call(tmp_path: Path) -> None:
    # A collector of another package that takes the whole interpreter down when it is imported.
    site = tmp_path / "site-packages"
    (site / "fridge-1.dist-info").mkdir(parents=True)
    (site / "fridge-1.dist-info" / "entry_points.txt").write_text(
        "[runvitals.collectors]\nfridge = fridge:probe\n"
    )
    (site / "fridge.py").write_text("import os\nos._exit(1)\n")
    process = start(
        tmp_path / "data",
        f"""
        import sys, time
        sys.path.append({str(site)!r})
        import runvitals
        run = runvitals.init()
        for i in range(60):
            run.log({{"i": i}})
            time.sleep(0.02)
        run.finish()
        """,
    )
    succeeded(process)
    journals = Journals(tmp_path / "data")
    assert [row["data"]["i"] for row in journals.history()] == list(range(60))
    lives = {r.writer for r in journals.records() if r.writer.startswith("monitor.")}
    assert 2 <= len(lives) <= 7, "at once, then after 1 s, and three times to say that the run is over"


def test_invalid_readings_are_omitted_and_reported_once(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / "fridge-1.dist-info").mkdir(parents=True)
    (site / "fridge-1.dist-info" / "entry_points.txt").write_text(
        "[runvitals.collectors]\nfridge = fridge:probe\n"
    )
    (site / "fridge.py").write_text(
        "class Fridge:\n"
        "    name = 'fridge'\n"
        "    def sample(self, tick):\n"
        "        tick.gauges['fridge.temp'] = 'cold'\n"
        "        tick.gauges['fridge.beers'] = 10 ** 400\n"
        "        tick.gauges['fridge.milk'] = 1\n"
        "        tick.counters['fridge.opened'] = 'often'\n"
        "def probe(scope):\n"
        "    return Fridge()\n"
    )
    process = start(
        tmp_path / "data",
        f"import sys\nsys.path.append({str(site)!r})\nimport runvitals\nrunvitals.init().finish()",
    )
    assert finished(process)[0] == 0
    journals = Journals(tmp_path / "data")
    events = [r.value for r in journals.records() if r.type == frames.EVENT]
    assert sorted(e["text"][:14] for e in events if e["name"] == "bad_reading") == [
        "fridge.beers =",
        "fridge.opened ",
        "fridge.temp = ",
    ]
    assert all("fridge.milk" in r.keys and "fridge.temp" not in r.keys for r in journals.samples())
    assert journals.end()["state"] == "finished"


WEEK_S = 7 * 24 * 3600


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Mortal(launch.MonitorSocket):
    """A connection to a monitor that dies on demand, or when it is asked something."""

    def __init__(self, answers: bool = True) -> None:
        self.lives = True
        self._answers = answers

    def is_alive(self) -> bool:
        return self.lives

    def is_ours(self) -> bool:
        return True

    def ask(self, message: Mapping[str, object], timeout_s: float) -> dict[str, Any] | None:
        if self.lives and self._answers:
            return {"op": "done", "state": "finished"}
        self.lives = False
        return None

    def close(self) -> None:
        self.lives = False


def test_without_a_monitor_one_attempt_per_minute_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    attempts: list[float] = []

    def connect(spec: Mapping[str, Any]) -> launch.MonitorSocket:
        attempts.append(clock())
        raise launch.Unavailable("there is none on this system")

    connection = MonitorConnection({"run": "abc"}, connect, clock)
    for _ in range(WEEK_S // 5):
        clock.now_s += 5.0
        connection.ensure()
    assert len(attempts) == pytest.approx(WEEK_S / 60, rel=0.01)
    assert connection.ask({"op": "finish"}, 5.0) is None
    assert capsys.readouterr().err.count("no system metrics for run abc") == 1


def test_monitor_that_keeps_dying_is_restarted_once_a_minute() -> None:
    clock = Clock()
    monitors: list[Mortal] = []

    def connect(spec: Mapping[str, Any]) -> launch.MonitorSocket:
        monitors.append(Mortal())
        return monitors[-1]

    connection = MonitorConnection({"run": "abc"}, connect, clock)
    for _ in range(WEEK_S):
        clock.now_s += 1.0
        monitors[-1].lives = False
        connection.ensure()
    assert len(monitors) == pytest.approx(WEEK_S / 61, rel=0.01)


def test_final_message_reaches_a_new_monitor() -> None:
    clock = Clock()
    monitors: list[Mortal] = []

    def connect(spec: Mapping[str, Any]) -> launch.MonitorSocket:
        # Of the last three only the third one lives long enough to answer.
        monitors.append(Mortal(answers=len(monitors) not in (2, 3)))
        return monitors[-1]

    connection = MonitorConnection({"run": "abc"}, connect, clock)
    for _ in range(6):
        clock.now_s += 0.1
        monitors[-1].lives = False
        connection.ensure()
    assert len(monitors) == 2, "the others wait"
    assert connection.ask({"op": "finish"}, 5.0) == {"op": "done", "state": "finished"}
    assert len(monitors) == 5
