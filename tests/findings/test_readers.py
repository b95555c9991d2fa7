"""Journals, the command and the local server give the same findings, from the same rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.findings.finding import from_json
from runvitals.findings.judge import judge
from runvitals.readers.journals.run_handle import open_run
from tests.findings.scenarios import healthy, sick
from tests.findings.scenarios.course import Course
from tests.findings.scenarios.journal import write_journal

COURSES = {
    "input-bound": sick.input_bound_cpu("h100", seed=1, interval_s=5.0),
    "hang": sick.hang("a100", seed=1, interval_s=5.0),
    "throttled": sick.thermal("h100", seed=1, interval_s=5.0),
    "nan": sick.nan_loss("tpu", seed=1, interval_s=5.0),
    "validates": healthy.marked_validation("h100", seed=1, interval_s=5.0),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the journals of all courses."""
    folder = tmp_path_factory.mktemp("findings")
    for name, course in COURSES.items():
        write_journal(course, folder, name)
    return folder


@pytest.mark.parametrize(("name", "course"), COURSES.items(), ids=list(COURSES))
def test_a_journal_is_judged_as_its_samples_are(folder: Path, name: str, course: Course) -> None:
    assert open_run(name, str(folder)).findings().to_json() == judge(course.run()).to_json()


def test_the_command_prints_the_same_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in COURSES:
        assert main(["findings", name, "--dir", str(folder), "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == open_run(name, str(folder)).findings().to_json()


def test_the_command_tells_what_is_wrong_and_what_to_do(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["findings", "input-bound", "--dir", str(folder), "--price", "2"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("The GPUs wait for the data loader: its 33 processes use all 32 processors.\n")
    for text in (
        "critical: input_bound_cpu",
        "device-hours, ",
        "what to do: Ask for more",
        "fine: ",
        "could not be decided:",
    ):
        assert text in printed


def test_without_a_run_the_command_adds_up_causes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["findings", "--dir", str(folder), "--since", "5000w", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["causes"]) == {"hang", "input_bound_cpu", "loss_not_finite", "thermal_throttling"}
    assert told["causes"]["hang"]["runs"] == ["hang"]
    hours = [cause["device_hours"] for cause in told["causes"].values()]
    assert hours == sorted(hours, reverse=True)
    assert len(told["runs"]) == len(COURSES)
    assert main(["findings", "--dir", str(folder), "--since", "1h"]) == 0
    assert capsys.readouterr().out == "no runs\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--since", "7 days"], "is no time: expected such as 30m, 12h, 7d or 4w"),
        (["--price", "-1"], "is no price: expected a number of 0 or more"),
        (["--price", "nan"], "is no price"),
    ],
)
def test_what_the_command_cannot_read_is_an_error(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["findings", *words])
    assert text in capsys.readouterr().err


def test_findings_are_the_same_after_json() -> None:
    findings = judge(COURSES["throttled"].run())
    assert from_json(findings.to_json()).to_json() == findings.to_json()
