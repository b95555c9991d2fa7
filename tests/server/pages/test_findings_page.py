"""Findings on the page of a run, in a real browser: the card, the charts that decided, marks on charts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.findings.scenarios import sick
from tests.findings.scenarios.journal import write_journal
from tests.server.browser import Browser, keep_picture
from tests.server.pages.test_account_pages import check
from tests.server.pages.test_page import browser, page, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401

STARVED = "The GPUs wait for the data loader"
MARK = "figure[data-chart] .frame a"


def marked_charts(page: Browser) -> list[str]:  # noqa: F811
    """The titles of the charts with a mark."""
    titles: list[str] = page.evaluate(
        "[...document.querySelectorAll('figure:has(.frame a) h3')].map(e => e.innerText)"
    )
    return titles


def test_the_card_leads_to_the_charts_that_decided(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    write_journal(sick.input_bound_cpu("h100", seed=3, interval_s=10.0), tmp_path, "sick")
    page.open("/runs/sick/system")
    assert STARVED in page.text(".verdict .text")
    click(page, ".verdict summary")
    shown(page, "Looked at and found fine", ".verdict")
    click(page, ".verdict a", "Show the charts that decided")
    shown(page, "What decided: input_bound_cpu")
    page.wait("document.querySelectorAll('.deciding .one').length >= 3")
    page.wait("document.querySelector('.deciding figure canvas')")
    asked = page.evaluate("Object.fromEntries(new URLSearchParams(location.search))")
    assert asked["finding"].startswith("input_bound_cpu~")
    assert int(asked["from"]) < int(asked["finding"].split("~")[1]) < int(asked["to"])
    keep_picture(page, "finding-charts")
    page.resize(390, 800, dark=True)
    check(page, page.evaluate("location.pathname + location.search"))
    keep_picture(page, "finding-charts-phone")
    page.resize(1280, 900)
    page.call("Page.navigateToHistoryEntry", entryId=_first_entry(page))
    page.wait("!document.querySelector('.deciding')")


def _first_entry(page: Browser) -> int:  # noqa: F811
    """The entry of the run's page before a link was followed."""
    entries = page.call("Page.getNavigationHistory")["entries"]
    return next(int(entry["id"]) for entry in reversed(entries) if entry["url"].endswith("/runs/sick/system"))


def test_charts_mark_what_was_found(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    write_journal(sick.straggler("h100", seed=3, interval_s=10.0), tmp_path, "slow")
    page.open("/runs/slow/system?charts=SM+clock")
    page.wait(f"document.querySelector('{MARK}')")
    assert marked_charts(page) == ["GPU SM clock"]
    left, top, width, height = page.box(MARK)
    page.mouse("mouseMoved", left + width / 2, top + height / 2)
    page.wait("getComputedStyle(document.querySelector('.frame .tip')).display === 'block'")
    shown(page, "warning GPU 3 (rank 3) holds up the other 7 GPUs", ".frame .tip")
    whole = width
    keep_picture(page, "marks")
    page.evaluate("document.querySelector('figure .plot').focus()")
    page.press("Tab")
    page.wait(f"document.activeElement === document.querySelector('{MARK}')")
    page.press("Enter")
    shown(page, "What decided: straggler")
    page.wait(f"document.querySelector('.deciding {MARK}')")
    assert page.box(f".deciding {MARK}")[2] > 2 * whole  # a wider chart, zoomed to it
    page.open("/runs/slow/system?charts=GPU+temperature")
    page.wait("document.querySelector('figure canvas')")
    page.wait("document.querySelector('.verdict .text')")
    assert marked_charts(page) == []


def test_marks_can_be_switched_off(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    write_journal(sick.straggler("h100", seed=3, interval_s=10.0), tmp_path, "slow")
    page.open("/runs/slow/system?charts=SM+clock")
    page.wait(f"document.querySelector('{MARK}')")
    click(page, "button", "Options and export")
    click(page, "label.marks input")
    page.wait(f"!document.querySelector('{MARK}')")
    assert page.evaluate("new URLSearchParams(location.search).get('marks')") == "off"
    page.open("/runs/slow/system?charts=SM+clock&mode=heatmap")
    page.wait("document.querySelector('.heatmap canvas') && document.querySelector('.marks a')")
    keep_picture(page, "marks-heatmap")


OWN = [
    {"id": "steps", "kind": "line", "metrics": ['"train/loss" * 1']},
    {"id": "times", "kind": "line", "metrics": ['"train/loss"'], "x": "relative"},
]


def test_charts_by_step_mark_the_steps(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    write_journal(sick.nan_loss("h100", seed=3, interval_s=10.0), tmp_path, "nan")
    page.open("/runs/nan/charts")
    page.wait(f"document.querySelector('{MARK}')")
    left, _, width, _ = page.box(MARK)
    plot = page.box("figure .u-over")
    assert plot[0] + plot[2] * 0.4 < left < plot[0] + plot[2] * 0.6  # it is NaN from the half on
    assert left + width == pytest.approx(plot[0] + plot[2], abs=2)
    assert "step" in page.evaluate("document.querySelector('.frame .tip').textContent")
    layout = {"version": 1, "sections": [{"id": "s1", "title": "Mine", "panels": OWN}]}
    page.evaluate(f"localStorage.setItem('runvitals.layout./digits', {json.dumps(json.dumps(layout))})")
    page.open("/runs/nan/charts")
    for panel, half in (("steps", "step"), ("times", "0:")):
        page.wait(f"document.querySelector('[data-panel={panel}] .frame a')")
        left, _, width, _ = page.box(f"[data-panel={panel}] .frame a")
        plot = page.box(f"[data-panel={panel}] .u-over")
        assert left + width == pytest.approx(plot[0] + plot[2], abs=2)
        assert plot[0] + plot[2] * 0.4 < left < plot[0] + plot[2] * 0.6, panel
        assert half in page.evaluate(
            f"document.querySelector('[data-panel={panel}] .frame .tip').textContent"
        )
