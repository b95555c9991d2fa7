"""The page of a run in a real browser: what its head says, its first tab, and one selection for all tabs."""

from __future__ import annotations

import os
from pathlib import Path

from tests.readers.journals.journals import Monitor, Trainer
from tests.server.browser import Browser
from tests.server.pages.test_page import browser, now_ms, page, static  # noqa: F401
from tests.server.test_build import hook  # noqa: F401

TAB = "nav[aria-label='Views of this run'] a[aria-current=page]"


def spiking(folder: Path) -> int:
    """600 s of a training that logs each 2 s; its loss spikes at the steps 150 to 159. Returns its start."""
    start_ms = now_ms() - 600_000
    monitor, trainer = Monitor(folder, start_ms=start_ms), Trainer(folder, start_ms=start_ms)
    monitor.info(start_ms, config={"max_steps": 1000})
    for second in range(600):
        monitor.sample(start_ms + second * 1000, {"gpu.0.gpu": 90.0, "gpu.0.powerWatts": 300.0, "cpu": 20.0})
        if second % 2 == 0:
            step = second // 2
            loss = 18.0 if 150 <= step < 160 else 0.2
            trainer.log(start_ms + second * 1000, step, **{"train/loss": loss, "epoch": step / 100})
    monitor.end(start_ms + 600_000, exit_code=0)
    return start_ms


def selected_times(page: Browser) -> list[float]:  # noqa: F811
    query = "new URLSearchParams(location.search)"
    return [float(page.evaluate(f"{query}.get('{name}')")) for name in ("from", "to")]


def test_the_head_says_how_it_is_going_and_charts_come_first(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    spiking(tmp_path)
    Monitor(tmp_path, "quiet", start_ms=now_ms() - 5000).sample(now_ms(), {"cpu": 5.0})

    page.open("/runs/abc")
    assert page.text(TAB) == "Charts"
    head = page.text("dl[aria-label='How it is going'][aria-busy=false]").replace("\n", " ")
    assert "train/loss 0.2 best 0.2 at step" in head
    assert "step 299 of 1,000 (30%)" in head
    assert "0.5 steps/s" in head
    assert "GPU 90% idle 0%" in head

    page.open("/runs/quiet")
    page.wait(f"document.querySelector(\"{TAB}\")?.innerText === 'System'")


def test_a_selected_part_is_the_same_in_all_tabs(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    start_ms = spiking(tmp_path)

    page.open("/runs/abc/charts?charts=loss")
    left, top, width, height = page.box("figure .u-over")
    page.mouse("mousePressed", left + width * 0.5, top + height / 2, 1)
    page.mouse("mouseMoved", left + width * 0.55, top + height / 2, 1)
    page.mouse("mouseReleased", left + width * 0.55, top + height / 2, 1)
    page.wait("new URLSearchParams(location.search).has('steps')")
    first, last = map(float, page.evaluate("new URLSearchParams(location.search).get('steps')").split("~"))
    assert 140 < first < 160 < last < 175
    times = selected_times(page)
    assert abs((times[0] - start_ms) / 2000 - first) < 0.01

    page.evaluate("[...document.querySelectorAll(\"nav[aria-label='Views of this run'] a\")][1].click()")
    page.wait("location.pathname === '/runs/abc/system'")
    assert selected_times(page) == times
    assert "shown · show all" in page.text(".tools .zoomed")

    page.open(f"/runs/abc/charts?charts=loss&from={start_ms + 300_000}&to={start_ms + 320_000}")
    assert "10 steps shown" in page.text(".tools .zoomed")
    page.evaluate("document.querySelector('.tools .zoomed').click()")
    page.wait("location.search === '?charts=loss'")


def keep_picture(page: Browser, name: str) -> None:  # noqa: F811
    """For who wants to look: PICTURES=folder."""
    if folder := os.environ.get("PICTURES"):
        page.screenshot(Path(folder, f"{name}.png"))


def point_at(page: Browser, selector: str, share: float) -> None:  # noqa: F811
    left, top, width, height = page.box(selector)
    page.mouse("mouseMoved", left + width * share, top + height / 2)


def test_a_step_chart_says_where_a_training_was_resumed(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    start_ms = now_ms() - 700_000
    monitor, trainer = Monitor(tmp_path, start_ms=start_ms), Trainer(tmp_path, start_ms=start_ms)
    for row, step in enumerate([*range(400), *range(200, 400)]):
        monitor.sample(start_ms + row * 1000, {"gpu.0.gpu": 90.0, "gpu.0.powerWatts": 300.0, "cpu": 20.0})
        trainer.log(start_ms + row * 1000, step, **{"train/loss": 3.0 - step / 200 + (row >= 400) / 2})
    monitor.end(start_ms + 600_000, exit_code=0)

    page.open("/runs/abc/charts?charts=loss")
    page.wait("document.querySelector('figure .u-over')")
    point_at(page, "figure .u-over", 200 / 399)
    page.wait("document.querySelector('figure .where').innerText.includes('at step 200, back from 399')")
    keep_picture(page, "resumed-by-step")

    page.open("/runs/abc/charts?charts=loss&x=elapsed")
    page.wait("document.querySelector('figure .u-over')")
    point_at(page, "figure .u-over", 400 / 600)
    page.wait("document.querySelector('figure .where').innerText.includes('at step 200, back from 399')")
    keep_picture(page, "resumed-by-time")
