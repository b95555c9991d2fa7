"""Facts, events and missing values that sources report are recorded; a blocking source delays nothing."""

from __future__ import annotations

import time
from pathlib import Path

from runvitals.journal import frames
from tests.patience import PATIENCE_S
from tests.sdk.runs import Journals, start, succeeded

SOURCE = """
import time
from runvitals.monitoring.collectors.plumbing.background import BackgroundReader

class Fridge:
    name = "fridge"
    facts = {"shelves": ["a"]}
    absent = {}

    def __init__(self):
        self.hanging = BackgroundReader(lambda tick: time.sleep(600.0), patience_s=0.01)

    def sample(self, tick):
        if not self.absent:
            self.absent = {"lamp": "burnt out"}
            tick.events.append({"name": "door_open", "level": "warning", "text": "it is open", "shelf": 2})
            tick.events.append({"name": "unwritable", 7: 8, (1, 2): 3})
        self.hanging.sample(tick)

    def close(self):
        self.hanging.close()
        open(CLOSED, "w").close()

def probe(scope):
    return Fridge()
"""


def test_reports_are_recorded_and_a_blocking_source_does_not_delay_the_end(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / "fridge-1.dist-info").mkdir(parents=True)
    (site / "fridge-1.dist-info" / "entry_points.txt").write_text(
        "[runvitals.collectors]\nfridge = fridge:probe\n"
    )
    closed = tmp_path / "closed"
    (site / "fridge.py").write_text(f"CLOSED = {str(closed)!r}\n{SOURCE}")
    process = start(
        tmp_path / "data",
        f"""
        import sys
        sys.path.append({str(site)!r})
        import runvitals
        runvitals.init(settings={{"finish_timeout": {2 * PATIENCE_S}}}).finish()
        """,
    )
    succeeded(process)  # within less time than it would have waited for the source
    journals = Journals(tmp_path / "data")
    records = [r.value for r in journals.records() if r.type in (frames.INFO, frames.EVENT)]
    assert any(value.get("machine", {}).get("shelves") == ["a"] for value in records)
    assert any(
        value.get("sources", {}).get("fridge") == {"state": "on", "reason": "lamp: burnt out"}
        for value in records
    )
    events = [value for value in records if "name" in value]
    (opened,) = (event for event in events if event["name"] == "door_open")
    assert (opened["level"], opened["shelf"]) == ("warning", 2)
    assert abs(opened["t"] / 1000 - time.time()) < 60
    assert any(
        "a collector returned an invalid value" in event["text"]
        for event in events
        if event["name"] == "bad_reading"
    )
    assert closed.exists()
    assert journals.end()["state"] == "finished"
