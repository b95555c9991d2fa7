"""The summary in the training and in the journal, however the training ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from runvitals.journal import frames
from runvitals.readers.journals.file_ends import EDGE_BYTES
from runvitals.readers.journals.run_handle import now_ms, open_run
from runvitals.readers.journals.runs import RunList
from tests.sdk.runs import Journals, Start, eventually, finished, line, succeeded


def listed(journals: Journals, run_id: str = "run1") -> dict[str, Any]:
    run = RunList(str(journals.directory)).run(run_id, now_ms())
    assert run is not None
    return run.summary


def opened(journals: Journals, run_id: str = "run1") -> dict[str, Any]:
    return open_run(run_id, str(journals.directory)).summary


def test_summary_has_last_values_or_the_defined_aggregates(train: Start, journals: Journals) -> None:
    out, _ = succeeded(
        train("""
            import runvitals
            run = runvitals.init(id="run1")
            run.define_metric("loss", summary="min")
            run.define_metric("val/*", summary="max")
            run.define_metric("speed", summary="mean")
            run.define_metric("debug/*", summary="none")
            for n in range(4):
                run.log({"loss": abs(n - 2), "val/acc": n, "speed": n, "debug/x": n, "lr": 0.1 / (n + 1)})
            run.log({"best": 7, "val": {"acc": 1}})
            run.summary["best"] = "by hand"
            run.log({"best": 8})
            print(dict(run.summary))
            run.finish()
        """)
    )
    expected = {"loss": 0, "val/acc": 3, "speed": 1.5, "lr": 0.025, "best": "by hand", "val.acc": 1}
    assert eval(out) == expected
    assert opened(journals) == expected
    assert listed(journals) == expected


def test_entry_removed_by_hand_follows_logged_values_again(train: Start, journals: Journals) -> None:
    finished(
        train("""
            import runvitals
            run = runvitals.init(id="run1")
            run.log({"loss": 1.0})
            run.summary["loss"] = 0.5
            del run.summary["loss"]
            run.finish()
        """)
    )
    assert opened(journals) == listed(journals) == {"loss": 1.0}


@pytest.mark.parametrize("wrong", ["5", "''", "'x' * 600", "'loss', 'median'"])
def test_invalid_definitions_are_rejected(wrong: str, train: Start) -> None:
    code, _, err = finished(
        train(f"""
            import runvitals
            run = runvitals.init()
            try:
                run.define_metric({wrong})
            except (TypeError, ValueError) as error:
                assert "define_metric" in str(error)
                run.finish()
                raise SystemExit(7)
        """)
    )
    assert code == 7, err


def test_sigkill_loses_nothing_and_listing_reads_only_the_end(train: Start, journals: Journals) -> None:
    process = train("""
        import runvitals, time
        run = runvitals.init(id="run1")
        run.define_metric("loss", summary="min")
        run.define_metric("speed", summary="mean")
        run.log({"once": 1, "loss": -1.0})
        for n in range(4001):
            run.log({"loss": float(n), "speed": n, "text": "x" * 100})
        print("logged", flush=True)
        time.sleep(60)
    """)
    assert line(process) == "logged"
    os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: journals.lifecycle("end", "run1"))
    [path] = (journals.directory / "runs" / "run1").glob("train.*")
    assert path.stat().st_size > 6 * EDGE_BYTES
    expected = {"once": 1, "loss": -1.0, "speed": 2000.0, "text": "x" * 100}
    assert opened(journals) == expected
    assert listed(journals) == expected
    records = journals.records("run1")
    summed_up = [r for r in records if r.type == frames.INFO and "logged" in r.value]
    rows = [r for r in records if r.type == frames.HISTORY]
    assert sum(r.size for r in summed_up) < 0.05 * sum(r.size for r in rows)


def test_listing_knows_the_first_of_thousands_of_metrics(train: Start, journals: Journals) -> None:
    succeeded(
        train("""
            import runvitals
            run = runvitals.init(id="run1")
            run.log({"loss": 1.0, **{f"layer.{n}.norm": n for n in range(5000)}})
            run.finish()
        """)
    )
    assert listed(journals)["loss"] == 1.0
    assert len(listed(journals)) > 100
    assert len(opened(journals)) == 5001


def test_summary_is_written_to_each_segment(tmp_path: Path, train: Start, journals: Journals) -> None:
    process = train("""
        import runvitals
        run = runvitals.init(id="run1")
        run.log({"once": 1})
        while run._journal.segment < 1:
            run.log({"text": "x" * 900, "n": 1})
        run.log({"n": 2})
        print("in another file", flush=True)
        input()
    """)
    assert line(process) == "in another file"
    assert listed(journals)["once"] == 1
    assert listed(journals)["n"] == 2


def test_ranks_share_one_summary(train: Start, journals: Journals) -> None:
    script = """
        import runvitals
        run = runvitals.init()
        run.define_metric("loss", summary="min")
        run.log({"loss": run.rank + 1.0, "rank": run.rank})
        run.finish()
    """
    job = {"TORCHELASTIC_RUN_ID": "job-7", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    for rank in (1, 0):
        finished(train(script, **job, RANK=str(rank), LOCAL_RANK=str(rank)))
    [folder] = journals.folders()
    assert opened(journals, folder.name) == {"loss": 1.0, "rank": 0}
    assert listed(journals, folder.name) == {"loss": 1.0, "rank": 0}
