"""Panels of the fields of all runs, and the comparison of many runs, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

from tests.readers.journals.journals import Trainer
from tests.server.browser import Browser, keep_picture
from tests.server.pages.test_page import browser, now_ms, static  # noqa: F401
from tests.server.pages.test_page_charts import click
from tests.server.pages.test_panels_page import PANELS, fill, folder, lay_out, page, panel, served  # noqa: F401
from tests.server.test_build import hook  # noqa: F401

RUNS = 24
KINDS = [
    panel("axes", "parallel", columns=12, rows=6),
    panel("causes", "importance", columns=6, rows=5),
    panel("dots", "scatter", metrics=["summary.val/loss"], across="config.lr", columns=6, rows=5),
]


def swept(folder: Path, project: str, keys: int = 0) -> list[str]:  # noqa: F811
    """Runs whose loss is that of their learning rate; one diverged, one has a configuration of its own."""
    begin = now_ms() - 120_000
    names = [f"{project}-{i:02}" for i in range(RUNS)]
    for i, name in enumerate(names):
        trainer = Trainer(folder, name, start_ms=begin + i, project=project)
        lr = 10 ** (-5 + i % 6)
        config = {"lr": lr, "batch": 2 ** (i % 3), "optimizer": ("adam", "sgd")[i % 2]}
        config |= {f"group.key{k}": (i * k) % 7 for k in range(keys)} | ({"only": 1} if i == 0 else {})
        trainer.info(begin, config=config)
        for step in range(3):
            loss = float("nan") if i == 1 and step == 2 else lr**0.75 * (3 - step)
            trainer.log(begin + step, step, **{"val/loss": loss})
        trainer.close()
    return names


def test_panels_show_the_fields_of_all_runs(page: Browser, folder: Path) -> None:  # noqa: F811
    swept(folder, "swept")
    lay_out(page, "swept", KINDS)
    page.open("/projects/swept")
    page.wait(f"document.querySelectorAll('[data-panel=axes] svg path').length === {RUNS}")
    assert "1 lacks a finite value on an axis" in page.text("[data-panel=axes] p.note")
    assert "summary.val/loss: 1 of 24 not finite" in page.text("[data-panel=axes]")
    assert "yellow is better" in page.text("[data-panel=axes]")
    page.wait("document.querySelector('[data-panel=causes] tbody tr')")
    assert page.text("[data-panel=causes] tbody td").startswith("lr")
    page.wait("document.querySelector('[data-panel=dots]').innerText.includes('r² 1.00, n 23')")
    assert "Fit (log x, log y)" in page.text("[data-panel=dots]")
    keep_picture(page, "field-panels")

    left, top, width, height = page.box("[data-panel=axes] svg .grip")
    page.mouse("mousePressed", left + width / 2, top + 2, clicks=1)
    page.mouse("mouseMoved", left + width / 2, top + height / 3, clicks=1)
    page.mouse("mouseReleased", left + width / 2, top + height / 3, clicks=1)
    page.wait("document.querySelector('[data-panel=axes] p.note').innerText.includes(' of 24 runs selected')")
    assert page.evaluate("document.querySelectorAll('[data-panel=axes] path.out').length") > 0


def test_a_panel_of_parallel_coordinates_is_added(page: Browser, folder: Path) -> None:  # noqa: F811
    swept(folder, "added")
    page.open("/projects/added")
    click(page, "Add panel", PANELS)
    page.wait(
        "(e => e && (e.value = 'parallel', e.dispatchEvent(new Event('change', {bubbles: true})), true))"
        "([...document.querySelectorAll('dialog select')].find(e => e.labels[0]?.innerText === 'Kind'))"
    )
    page.wait(f"document.querySelectorAll('dialog svg path').length === {RUNS}")
    fill(page, "Axis", "config.optimizer")
    page.wait("document.querySelectorAll('dialog svg .grip').length === 1")
    keep_picture(page, "field-panel-dialog")
    click(page, "Add", "dialog")
    page.wait("document.querySelectorAll('[data-panel] svg .grip').length === 1")
    page.open("/projects/added")
    page.wait("document.querySelectorAll('[data-panel] svg .grip').length === 1")


def test_many_runs_are_compared_by_the_lines_in_view(page: Browser, folder: Path) -> None:  # noqa: F811
    names = swept(folder, "wide", 200)
    page.open("/compare?" + "&".join(f"runs={name}" for name in names))
    facts = '[aria-label="Table of facts"]'
    page.wait(f"document.querySelector('{facts} tbody th.section')")
    assert page.evaluate(f"document.querySelectorAll('{facts} tbody tr').length") < 60
    assert int(page.evaluate(f"document.querySelector('{facts} table').getAttribute('aria-rowcount')")) > 150
    assert "yellow is better: lower" in page.text("main")
    keep_picture(page, "compare-many")

    page.evaluate(f"document.querySelector('{facts}').scrollTop = 1e6")
    rare = "1 row that only a few runs have"
    page.wait(
        f"[...document.querySelectorAll('{facts} button')].some(e => e.innerText === {json.dumps(rare)})"
    )
    click(page, rare, facts)
    page.wait(f"[...document.querySelectorAll('{facts} th')].some(e => e.innerText === 'only')")


def test_charts_over_a_logarithmic_axis(page: Browser, folder: Path) -> None:  # noqa: F811
    trainer = Trainer(folder, "long", start_ms=now_ms() - 120_000, project="long")
    for step in range(20_000):
        trainer.log(now_ms() - 120_000 + step, step, loss=9.0 if step == 7 else (step + 1) ** -0.5)
    trainer.close()
    page.open("/projects/long")
    page.wait("document.querySelector('figure canvas')")
    page.evaluate(
        "[...document.querySelectorAll('main label')].find(e => e.innerText.trim() === 'log x').click()"
    )
    page.wait("location.search.includes('logx=1')")
    page.wait("performance.getEntriesByType('resource').some(e => /overlay.logged.*scale=log/.test(e.name))")
    page.wait("!document.querySelector('[aria-busy=true]')")
    keep_picture(page, "log-x")
    page.evaluate("document.querySelector('.plot[role=img]').focus()")
    page.press("+")
    page.wait("location.search.includes('from=')")
    low, high = (
        float(page.evaluate(f"new URLSearchParams(location.search).get('{end}')")) for end in ("from", "to")
    )
    assert 0 < low < high
    keep_picture(page, "log-x-zoomed")
