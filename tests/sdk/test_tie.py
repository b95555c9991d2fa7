"""What becomes of a training whose monitor cannot live."""

from __future__ import annotations

from pathlib import Path

from runvitals.journal import frames
from tests.sdk.runs import Journals, finished, start


def test_a_monitor_that_cannot_live_is_not_started_at_every_call_and_says_why(tmp_path: Path) -> None:
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
    code, _, err = finished(process)
    assert code == 0, err
    journals = Journals(tmp_path / "data")
    assert [row["data"]["i"] for row in journals.history()] == list(range(60))
    lives = {r.writer for r in journals.records() if r.writer.startswith("monitor.")}
    assert 2 <= len(lives) <= 4, "at once, then after 1 s"


def test_a_reading_that_is_no_number_is_left_out_and_said_so_once(tmp_path: Path) -> None:
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
