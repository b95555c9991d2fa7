"""The findings on the screen of a run: the verdict, the pane, the charts that decided."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runvitals.findings.finding import Evidence, Finding, Findings, Undecided
from runvitals.findings.judge import judge
from runvitals.terminal.leet.app import LeetApp
from runvitals.terminal.leet.finding_rows import finding_rows, verdict_row
from runvitals.terminal.leet.findings_pane import node_filter, pattern_of, time_range
from runvitals.terminal.leet.judging import COST_SHARE, JUDGE_EVERY_S, JudgingTimes
from runvitals.terminal.leet.opening import OpeningTarget
from runvitals.terminal.leet.run_screen import RunScreen
from runvitals.terminal.leet.sources.journal_catalogue import JournalCatalogue
from runvitals.terminal.leet.sources.journals import JournalSource
from tests.findings.scenarios import healthy, sick
from tests.findings.scenarios.journal import write_journal
from tests.terminal.leet.test_app import screen_of, until

SLOW_HOST = sick.slow_host("a100", seed=3, interval_s=10.0)
FINDING = judge(SLOW_HOST.run()).findings[0]
EVIL = "\x1b]0;owned\x07\u202e<b>"


def text_of(findings: Findings, width: int) -> str:
    """What the pane shows."""
    return "\n".join("".join(text for text, _ in row) for row in finding_rows(findings, width, 0.0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with a slow host and a healthy run."""
    folder = tmp_path_factory.mktemp("leet-findings")
    write_journal(SLOW_HOST, folder, "slow")
    write_journal(healthy.plain("h100", seed=1, interval_s=10.0), folder, "fine")
    yield folder


def test_the_verdict_fits_one_row_with_its_cost() -> None:
    findings = judge(SLOW_HOST.run())
    for width in (40, 80, 200):
        row = verdict_row(findings, width)
        shown = "".join(text for text, _ in row)
        assert len(shown) <= width
        assert shown.endswith("device-hours lost")
    assert row[0][1] == "warn"


def test_rows_tell_evidence_advice_and_what_would_help() -> None:
    findings = judge(SLOW_HOST.run())
    shown = text_of(findings, 80)
    assert all(len(line) <= 80 for line in shown.split("\n"))
    evidence = findings.findings[0].evidence[0]
    assert f"{evidence.key} on node2" in shown
    assert findings.findings[0].advice[:40] in shown
    assert "Found fine: " in shown
    assert "Could not be decided" in shown
    assert "What would help" in shown


def test_what_a_run_calls_things_is_inert() -> None:
    evil = replace(
        FINDING,
        text=EVIL,
        evidence=(Evidence(EVIL, EVIL, 1.0, EVIL),),
        advice=EVIL,
    )
    findings = Findings(evil.id, EVIL, [evil], [], [Undecided("hang", (), EVIL)])
    shown = text_of(findings, 60) + "".join(text for text, _ in verdict_row(findings, 60))
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown


def test_a_run_is_judged_when_something_is_new_and_not_too_often() -> None:
    times = JudgingTimes()
    assert times.is_due(0.0, 100.0)
    times.judged(0.0, 0.01, 100.0)
    assert not times.is_due(JUDGE_EVERY_S + 1, 100.0)
    assert not times.is_due(JUDGE_EVERY_S - 1, 200.0)
    assert times.is_due(JUDGE_EVERY_S, 200.0)
    times.judged(100.0, 2.0, 200.0)
    assert not times.is_due(99.0 + 2.0 * COST_SHARE, 300.0)
    assert times.is_due(100.0 + 2.0 * COST_SHARE, 300.0)


def test_the_charts_of_a_finding_are_those_of_its_series_host_and_time() -> None:
    assert node_filter(FINDING, 4) == "node:^node2$"
    assert node_filter(FINDING, 1) == ""
    spaced = replace(FINDING, evidence=(Evidence("cpu", "node 2", 1.0, "%"),))
    assert node_filter(spaced, 4) == ""
    assert pattern_of(spaced) == "^(cpu)$"
    low, high = time_range(FINDING, 0.0, 9e15)
    assert low < FINDING.from_ms
    assert FINDING.to_ms is None or high > FINDING.to_ms
    started, ended = float(FINDING.from_ms), FINDING.from_ms + 1000.0
    assert time_range(FINDING, started, ended) == (started, ended)


@pytest.mark.parametrize("size", [(80, 24), (140, 42)])
def test_keys_show_findings_and_the_charts_that_decided(folder: Path, size: tuple[int, int]) -> None:
    async def press() -> None:
        app = LeetApp(OpeningTarget(JournalCatalogue(str(folder)), "slow"), 0.05)
        async with app.run_test(size=size) as pilot:
            screen = await screen_of(pilot, RunScreen)
            await until(pilot, lambda: "node2" in screen.verdict.text)
            assert "device-hours lost" in screen.verdict.text
            await pilot.press("f")
            await until(pilot, lambda: "warning straggler" in screen.findings.text)
            await pilot.press("f")
            before = [chart.title for chart in screen.system.charts]
            window = screen.system.window.range(screen.data.time_range())
            await pilot.press("e")
            keys = {evidence.key for evidence in FINDING.evidence}
            for chart in screen.system.charts:
                assert keys & {line.key for line in chart.lines}
                assert {line.origin for line in chart.lines} == {"node2"}
            assert screen.system.window.range(screen.data.time_range()) == time_range(
                FINDING, *screen.data.time_range()
            )
            assert "straggler" in screen.footer.text
            await pilot.press("escape")
            assert [chart.title for chart in screen.system.charts] == before
            assert screen.system.window.range(screen.data.time_range()) == window
            assert screen.data.only.text == ""
            assert app.screen is screen

    asyncio.run(press())


def test_a_healthy_run_says_so(folder: Path) -> None:
    async def press() -> None:
        app = LeetApp(OpeningTarget(JournalCatalogue(str(folder)), "fine"), 0.05)
        async with app.run_test(size=(80, 24)) as pilot:
            screen = await screen_of(pilot, RunScreen)
            await until(pilot, lambda: "Nothing is wrong" in screen.verdict.text)

    asyncio.run(press())


def test_the_journal_is_judged_as_the_command_judges_it(folder: Path) -> None:
    source = JournalSource("slow", str(folder))
    source.poll()
    found: Finding = source.findings().findings[0]
    assert found.id == "straggler"
    assert found.hosts == ("node2",)
