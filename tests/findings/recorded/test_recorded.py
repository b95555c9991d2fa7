"""Real runs, recorded on a machine without accelerators (`record.py`), are judged right.

Other work used all processors of that machine during most of them, the long ones (25 to 45 minutes) too.
`noisy_neighbour` says so, as information, of those that compute themselves.
"""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest

from runvitals.findings.finding import Findings
from runvitals.readers.journals.run_handle import open_run

FOLDER = Path(__file__).parent
SICK = {
    "starved_loader": "input_bound_cpu",
    "full_disk": "disk_full_soon",
    "out_of_memory": "out_of_memory_near",
    "slow_disk": "input_bound_disk",
    "not_finite": "loss_not_finite",
    "hung_rank": "hang",
    "slow_leak": "memory_growth",
}
HEALTHY = (
    *("fed_loader", "sawtooth", "rotated_checkpoints", "ranks_that_validate", "plain"),
    *("ranks_that_evaluate", "epoch_cache", "filled_cache"),
)


def judge_recorded(name: str, folder: Path) -> Findings:
    """Judge a recorded run as the command does."""
    (folder / "runs").mkdir()
    with tarfile.open(FOLDER / f"{name}.tar.gz") as packed:
        packed.extractall(folder / "runs", filter="data")
    (run_id,) = (each.name for each in (folder / "runs").iterdir())
    return open_run(run_id, str(folder)).findings()


def accused(findings: Findings) -> set[str]:
    """What is said to be wrong with a run."""
    return {each.id for each in findings.findings if each.severity != "info"}


@pytest.mark.parametrize(("name", "expected"), SICK.items(), ids=list(SICK))
def test_what_is_wrong_with_a_real_run_is_found(name: str, expected: str, tmp_path: Path) -> None:
    findings = judge_recorded(name, tmp_path)
    assert findings.verdict == expected, findings.text
    assert accused(findings) - {"noisy_neighbour"} == {expected}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_real_run_is_not_accused(name: str, tmp_path: Path) -> None:
    assert accused(judge_recorded(name, tmp_path)) == set()


def test_a_container_that_is_limited_is_found_beside_a_busy_disk(tmp_path: Path) -> None:
    """Another run read from the host's disk meanwhile: this one, which read nothing, did not wait for that.

    Its quota throttled it for three minutes; then others left it fewer processors than the quota allows.
    """
    found = accused(judge_recorded("processors_limited", tmp_path))
    assert "cpu_limit" in found
    assert found <= {"cpu_limit", "input_bound_cpu", "noisy_neighbour"}


def test_a_rank_that_stays_stopped_hangs_the_others(tmp_path: Path) -> None:
    """It was stopped after 2.5 minutes of 25: processes that do nothing tell the same as devices."""
    (hang,) = judge_recorded("hung_rank", tmp_path).findings
    assert (hang.severity, hang.confidence) == ("critical", "likely")
    assert 0.85 < hang.share < 0.95


def test_a_leak_has_an_end_in_sight(tmp_path: Path) -> None:
    """It took 37 MiB a minute of 1,800 for 41 minutes, of which 250 were left: for seven minutes more."""
    (leak,) = judge_recorded("slow_leak", tmp_path).findings
    assert leak.severity == "critical"
    assert re.search(
        r"by 2\.[1-3] GiB an hour; the memory would have been used up (6|7|8|9|10) min later", leak.text
    )


def test_a_stop_of_few_minutes_is_no_hang_yet(tmp_path: Path) -> None:
    """A rank was stopped (SIGSTOP) for 5 minutes: without devices a hang is certain only after longer."""
    assert accused(judge_recorded("stopped_rank", tmp_path)) == set()


def test_recordings_are_small() -> None:
    assert [path.name for path in FOLDER.glob("*.tar.gz") if path.stat().st_size > 200_000] == []
