"""Media and files of a run on the page: shown by step, inert, readable by everyone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

import runvitals
from runvitals.journal import frames
from runvitals.journal.paths import run_dir
from runvitals.journal.writer import JournalWriter
from runvitals.sdk.media.base import Media
from runvitals.sdk.media.run_files import RunFiles
from tests.readers.journals.journals import T0, Training
from tests.server.browser import Browser
from tests.server.pages.accessibility import violations
from tests.server.pages.test_page import browser, page, static  # noqa: F401
from tests.server.test_build import hook  # noqa: F401

EVIL = "<img src=x onerror=\"parent.document.title='taken'\"><script>top.document.title='taken'</script>"


DRAWING = (
    b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9' onload='top.document.title=\"taken\"'>"
    b"<script>top.document.title='taken'</script></svg>"
)


class LoggedRun:
    """A run with media, in a training that goes on."""

    def __init__(self, directory: Path, run_id: str = "abc") -> None:
        self.training = Training(directory, run_id)
        self.training.advance(5)
        folder = run_dir(run_id, str(directory))
        self.files = RunFiles(folder)
        about = {"run": run_id, "project": "digits", "host": "node1", "role": "media"}
        self.journal = JournalWriter(folder, "media.node1.9.1", about)

    def log(self, key: str, step: int, *values: Media) -> None:
        items = [{"kind": value.kind, **value.item(self.files)} for value in values]
        self.record(key, values[0].kind, step, items)

    def record(self, key: str, kind: str, step: int, items: object) -> None:
        value = {"t": T0 + step, "step": step, "key": key, "kind": kind, "items": items}
        assert self.journal.json(frames.MEDIA, value)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[LoggedRun]:
    logged_run = LoggedRun(tmp_path)
    for step in range(5):
        pixels = numpy.full((8, 8, 3), step * 50, "uint8")
        described = runvitals.Image(pixels, caption=f"at {step} {EVIL}")
        logged_run.log("samples", step, described, runvitals.Image(pixels))
        logged_run.log("weights", step, runvitals.Histogram(numpy.arange(100) + step))
        logged_run.log("report", step, runvitals.Html(f"<h1>Report {step}</h1>{EVIL}"))
        logged_run.log("drawing", step, runvitals.Image(DRAWING))
    table = runvitals.Table(columns=["image", EVIL, "score"])
    for row in range(30):
        table.add(runvitals.Image(numpy.zeros((4, 4))), f"{row} {EVIL}", 30 - row)
    logged_run.log("worst", 4, table)
    logged_run.log("speech", 4, runvitals.Audio(numpy.zeros(800), sample_rate=8000))
    logged_run.log("story", 4, runvitals.Text(EVIL))
    logged_run.record("failed", "image", 4, [{"kind": "image", "error": EVIL}])
    logged_run.record("model/é\u202e.pt", "file", 4, [{"kind": "file", **logged_run.files.add(b"weights")}])
    logged_run.training.monitor.event(
        T0 + 3000, "alert", "error", f"at step 3 {EVIL}", title=f"diverged {EVIL}"
    )
    logged_run.training.monitor.event(T0 + 2000, "marker", "info", "epoch 1")
    logged_run.training.monitor.event(T0 + 1000, "gap", "warning", "no samples for 9 s")
    yield logged_run
    logged_run.journal.close()


@pytest.fixture(autouse=True)
def the_frame_may_complain(browser: Browser) -> Iterator[None]:  # noqa: F811
    browser.tolerates = from_the_frame
    yield
    browser.tolerates = lambda complaint: False


def from_the_frame(complaint: str) -> bool:
    """Whether it says that the hostile page in the frame could not do what it tried."""
    return "violates" in complaint or "Blocked a frame with origin" in complaint


def test_media_are_shown_by_step(page: Browser, run: LoggedRun) -> None:  # noqa: F811
    page.open("/runs/abc/logged")
    page.wait("document.querySelectorAll('article').length === 8")
    page.wait(
        "(images => images.length === 2 && images.every(image => image.complete && image.naturalWidth === 8))"
        "([...document.querySelectorAll('article[aria-label=samples] img')])"
    )
    assert page.text("article[aria-label=samples] output") == "step 4"
    page.evaluate("document.querySelector('article[aria-label=samples] input').focus()")
    page.press("ArrowDown")
    page.wait("document.querySelector('article[aria-label=samples] output').innerText === 'step 3'")
    page.wait("document.querySelector('article[aria-label=samples] figcaption').innerText.includes('at 3')")
    page.wait("document.querySelector('article[aria-label=weights] canvas')?.width === 5")
    page.wait("document.querySelectorAll('article[aria-label=worst] tbody tr').length === 20")
    page.evaluate("document.querySelector('article[aria-label=worst] th:last-child button').click()")
    page.wait("document.querySelector('article[aria-label=worst] tbody tr td:last-child').innerText === '1'")
    page.wait("document.querySelector('article[aria-label=failed]').innerText.includes('Not recorded')")
    page.wait("document.querySelector('article[aria-label=story] pre').innerText.includes('<script>')")
    sandbox = page.evaluate("document.querySelector('article[aria-label=report] iframe').sandbox.value")
    assert sandbox == "allow-scripts"
    assert "taken" not in page.evaluate("document.title")


def test_everyone_can_use_it(page: Browser, run: LoggedRun) -> None:  # noqa: F811
    for path, ready in (
        ("/runs/abc/logged", "article img"),
        ("/runs/abc/files", "tbody tr"),
        ("/runs/abc/alerts", "ol li"),
        ("/compare?runs=abc", "article img"),
    ):
        page.resize(390, 900)
        page.open(path)
        scroll = "document.querySelector('article')?.scrollIntoView()"  # media are loaded when they are near
        page.wait(f"({scroll}, document.querySelectorAll('{ready}').length > 0)")
        for dark in (False, True):
            page.resize(390, 900, dark)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
            found = violations(page, dark, without="iframe", tolerated=("minor", "moderate"))
            assert (path, dark, found) == (path, dark, [])


def test_saved_files_are_listed_for_download(page: Browser, run: LoggedRun) -> None:  # noqa: F811
    page.open("/runs/abc/files")
    page.wait("document.querySelectorAll('tbody tr').length === 1")
    link = page.evaluate("document.querySelector('tbody a').getAttribute('href')")
    assert link.startswith("/api/v1/runs/abc/files/")
    assert "download=model%2F" in link


def test_alerts_lead_to_their_time(page: Browser, run: LoggedRun) -> None:  # noqa: F811
    page.open("/runs/abc/alerts")
    page.wait("document.querySelectorAll('ol li').length === 2")
    assert page.text("ol li:first-child .title") == f"diverged {EVIL}"
    assert page.text("ol li:first-child .text") == f"at step 3 {EVIL}"
    assert page.text("nav a[aria-current=page]") == "Alerts 2"
    page.evaluate("document.querySelector('input[type=checkbox]').click()")
    page.wait("document.querySelectorAll('ol li').length === 3")
    page.evaluate("document.querySelector('ol li:first-child a').click()")
    page.wait(
        f"location.pathname === '/runs/abc/system' && location.search.includes('from={T0 + 3000 - 120_000}')"
    )


def test_metrics_are_shown_as_the_run_defined(page: Browser, run: LoggedRun) -> None:  # noqa: F811
    trainer = run.training.trainer
    trainer.info(T0, metrics={"val/*": {"x": "epoch"}, "debug/*": {"hidden": True}})
    for step in range(40):
        trainer.log(
            T0 + 6000 + step, 10 + step, **{"val/loss": 1.0 / (step + 1), "epoch": step / 10, "debug/x": 1.0}
        )
    page.open("/runs/abc/charts")
    page.wait("document.querySelector('figure[data-chart=\"val/loss\"] canvas')")
    shown = "document.querySelector('[aria-label=\"x axis\"]').selectedOptions[0].text"
    assert page.evaluate(shown) == "as the run defined"
    charts = page.evaluate(
        "[...document.querySelectorAll('figure[data-chart]')].map(one => one.dataset.chart).sort()"
    )
    assert charts == ["accuracy", "epoch", "loss", "val/loss"]  # lr is constant
    page.evaluate(
        "[...document.querySelectorAll('button')].find(e => e.innerText.startsWith('Show hid')).click()"
    )
    page.wait("document.querySelector('figure[data-chart=\"debug/x\"]')")
    page.open("/runs/abc/charts?zoom.epoch=1~2")
    page.wait("document.querySelector('figure[data-chart=\"val/loss\"] canvas')")
    page.evaluate("document.querySelector('figure[data-chart=\"val/loss\"] .u-over').focus()")
    left, top, width, height = page.box('figure[data-chart="val/loss"] .u-over')
    page.mouse("mouseMoved", left + width / 2, top + height / 2)
    page.wait(
        "document.querySelector('figure[data-chart=\"val/loss\"] .where')?.innerText.startsWith('epoch 1.')"
    )


def test_media_of_several_runs_are_compared(page: Browser, run: LoggedRun, tmp_path: Path) -> None:  # noqa: F811
    other = LoggedRun(tmp_path, "xyz")
    for step in (1, 3):
        other.log(
            "samples", step, runvitals.Image(numpy.full((8, 8, 3), 255, "uint8"), caption=f"other at {step}")
        )
        other.log("weights", step, runvitals.Histogram([1000.0, 1001.0]))
    for step in (1, 2):  # charts above the media
        values = {f"layer/{number}": float(step * number) for number in range(1, 40)}
        run.training.trainer.log(T0 + 6000 + step, step, **values)
    page.open("/projects/digits")
    panel = "document.querySelector('article[aria-label=samples]')"
    page.wait("document.querySelector('figure canvas')")
    code = "performance.getEntriesByType('resource').some(({name}) => name.includes('/MediaCompare'))"
    assert not page.evaluate(code)  # it is loaded when it is nearly in view
    page.wait(f"(scrollTo(0, document.body.scrollHeight), {panel}) && ({panel}.scrollIntoView(), true)")
    page.wait(f"{panel}.querySelectorAll('img').length === 3")  # two of one run, one of the other
    assert page.evaluate(f"{panel}.innerText").count("other at 3") == 1
    page.evaluate(f"{panel}.querySelector('input[type=range]').focus()")
    for _ in range(4):
        page.press("ArrowLeft")
    page.wait(f"{panel}.innerText.includes('Nothing up to this step.')")
    page.press("ArrowRight")
    page.wait(f"{panel}.innerText.includes('other at 1')")
    assert page.text("article[aria-label=samples] output") == "step 1"
    weights = "document.querySelector('article[aria-label=weights]')"
    page.evaluate(f"{weights}.scrollIntoView()")
    page.wait(f"{weights}.querySelectorAll('svg').length === 2 && {weights}.innerText.includes('1000')")
    page.open("/compare?runs=xyz&runs=abc")
    page.wait(f"({panel}?.scrollIntoView(), {panel}?.innerText.includes('other at 3'))")
    other.journal.close()
