"""The lineage of 3 and of 300 runs and versions in a real browser."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from runvitals.server.artifacts.storage.run_lineage import Lineage
from runvitals.server.registry.storage.logged_model_metrics import ModelMetric
from runvitals.server.registry.storage.logged_models import LoggedModel
from tests.server.artifacts.graph import link_runs, run_number
from tests.server.browser import Browser
from tests.server.database.artifacts.making import T0
from tests.server.database.runs import made
from tests.server.pages.test_account_pages import check
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.serving import Served, serving
from tests.server.test_build import hook  # noqa: F401

RUNS = 150
SMALL = "/projects/small?artifacts=1&lineage=run&run=run-train"
WIDE = "/projects/wide?artifacts=1&name=data&version=data%3Av0&lineage=version"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, static: str) -> Iterator[Served]:  # noqa: F811
    """A server with a data set, a run and a model; and with a data set that 150 runs made models of."""
    with serving(tmp_path_factory.mktemp("server"), static=static) as served:
        store = served.metadata_store
        made(store, "run-train", project="small")
        for uid in ("run-logged", "run-later"):
            made(store, uid, project="logged")
        link_runs(store, "logged", "run-logged > kept > run-later")
        link_runs(store, "small", "raw-data > run-train > classifier")
        for number in range(RUNS):
            made(store, f"run-{number}", project="wide")
        link_runs(store, "wide", ";".join(f"data > run-{number} > model-{number}" for number in range(RUNS)))
        yield served


@pytest.fixture
def page(browser: Browser, served: Served) -> Browser:  # noqa: F811
    browser.base = served.url
    browser.complaints.clear()
    browser.resize(1280, 900)
    return browser


def pictured(page: Browser, name: str) -> None:
    """For who wants to look: PICTURES=folder."""
    if folder := os.environ.get("PICTURES"):
        page.screenshot(os.path.join(folder, f"lineage-{name}.png"))


def nodes(page: Browser, which: str = "") -> list[str]:
    """The names of the nodes."""
    listed: list[str] = page.evaluate(
        f"[...document.querySelectorAll('main svg g.node{which}')].map(e => e.getAttribute('aria-label'))"
    )
    return listed


def choose(page: Browser, name: str) -> None:
    """Select the node whose name begins so."""
    page.wait(
        f"(e => e && (e.dispatchEvent(new MouseEvent('click', {{bubbles: true}})), true))"
        f"(document.querySelector('main svg g.node[aria-label^={json.dumps(name)}]'))"
    )


def drawn(page: Browser, path: str, count: int) -> None:
    page.open(path)
    page.wait(f"document.querySelectorAll('main svg g.node').length === {count}")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False), (390, True)])
def test_three_nodes(page: Browser, width: int, dark: bool) -> None:
    page.resize(width, 900, dark)
    drawn(page, SMALL, 3)
    assert {name.partition(",")[0] for name in nodes(page)} == {"raw-data:v0", "run-train", "classifier:v0"}
    assert len(nodes(page, ".start")) == 1
    choose(page, "classifier")
    shown(page, "Start from here")
    pictured(page, f"3-{width}{'-dark' if dark else ''}")
    if width == 390:
        check(page, SMALL)
    assert page.complaints == []


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_three_hundred_nodes_are_collapsed_until_they_are_shown_apart(
    page: Browser, width: int, dark: bool
) -> None:
    page.resize(width, 900, dark)
    drawn(page, WIDE, 2 + RUNS)  # each model has a name of its own
    assert any("150 runs" in name for name in nodes(page))
    pictured(page, f"300-collapsed-{width}{'-dark' if dark else ''}")
    click(page, "label input[type=checkbox]")
    page.wait(f"document.querySelectorAll('main svg g.node').length === {1 + 2 * RUNS}")
    pictured(page, f"300-{width}{'-dark' if dark else ''}")
    click(page, "button", "All")
    pictured(page, f"300-all-{width}{'-dark' if dark else ''}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.complaints == []


def test_search_and_path(page: Browser) -> None:
    drawn(page, WIDE, 2 + RUNS)
    page.evaluate(
        "(e => { e.value = 'model-149'; e.dispatchEvent(new Event('input', {bubbles: true}));"
        " e.form.requestSubmit() })(document.querySelector('main input[type=search]'))"
    )
    shown(page, "1 found")
    page.wait("document.querySelector('main svg g.node.selected')?.ariaLabel?.startsWith('model-149')")
    page.evaluate(
        "(e => { e.value = [...e.options].find(o => o.text === 'data:v0').value;"
        " e.dispatchEvent(new Event('change', {bubbles: true})) })"
        "(document.querySelector('section[aria-label=\"The selected node\"] select'))"
    )
    page.wait("document.querySelectorAll('main svg path.edge.marked').length === 2")
    shown(page, "data:v0 – Runs of wide – model-149:v0")
    pictured(page, "path")


def key_down(page: Browser, key: str) -> None:
    event = f"new KeyboardEvent('keydown', {{key: {key!r}, bubbles: true}})"
    page.evaluate(f"document.activeElement.dispatchEvent({event})")


def test_the_keyboard(page: Browser) -> None:
    """Arrows lead from node to node; on the graph itself they move it, and + and - zoom."""
    drawn(page, SMALL, 3)
    box = "document.querySelector('main svg[role=group]').getAttribute('viewBox')"
    page.evaluate("document.querySelector('main svg[role=group]').focus()")
    whole = page.evaluate(box)
    for key in ("+", "ArrowRight", "-"):
        before = page.evaluate(box)
        key_down(page, key)
        page.wait(f"{box} !== {before!r}")
    key_down(page, "0")
    page.wait(f"{box} === {whole!r}")
    choose(page, "run-train")
    page.press("ArrowRight")
    page.wait("document.activeElement.ariaLabel?.startsWith('classifier')")
    page.press("ArrowLeft")
    page.press("ArrowLeft")
    page.wait("document.querySelector('main svg g.selected')?.ariaLabel?.startsWith('raw-data')")
    assert page.complaints == []


def test_the_list_says_the_same(page: Browser) -> None:
    page.resize(390, 900)
    check(page, f"{SMALL}&view=list")
    shown(page, "1 step before")
    shown(page, "from raw-data:v0; led to classifier:v0")
    pictured(page, "list-390")
    click(page, "main a", "classifier:v0")
    shown(page, "classifier:v0")


def test_pictures_are_saved(page: Browser) -> None:
    drawn(page, SMALL, 3)
    page.evaluate(
        "window.saved = [];"
        "HTMLAnchorElement.prototype.click = function () { saved.at(-1).push(this.download) }"
        ";URL.createObjectURL = blob => (saved.push([blob]), 'blob:')"
    )
    for number, label in enumerate(("SVG", "PNG"), 1):
        click(page, "main button", label)
        page.wait(f"saved.length === {number} && saved.at(-1).length === 2")
    files = page.evaluate(
        "Promise.all(saved.map(async ([blob, name]) => [name, blob.type, (await blob.text()).slice(0, 60)]))"
    )
    by_type = {kind: (name, text) for name, kind, text in files}
    assert by_type["image/svg+xml"][0] == "Lineage-of-run-train.svg"
    assert by_type["image/svg+xml"][1].startswith("<svg xmlns=")
    assert by_type["image/png"][0] == "Lineage-of-run-train.png"
    assert page.complaints == []


def test_a_version_leads_to_its_lineage(page: Browser) -> None:
    page.open("/projects/small?artifacts=1&name=classifier&version=classifier%3Av0")
    click(page, "main a", "Lineage")
    page.wait("document.querySelectorAll('main svg g.node').length === 3")
    shown(page, "Lineage of classifier:v0", "h2")


def test_a_deletion_says_what_breaks(page: Browser, served: Served) -> None:
    """A linked version cannot be deleted; once it is unlinked it can."""
    store = served.metadata_store
    made(store, "run-last", project="last")
    versions = link_runs(store, "last", "last-data > run-last > last-model")
    links = store.artifacts.links
    link = links.link(versions["last-data"], store.projects.id("last"), "approved", ["prod"], 1)
    path = "/projects/last?artifacts=1&name=last-data&version=last-data%3Av0"
    for width in (390, 1280):
        page.resize(width, 900, width == 390)
        page.open(path)
        page.wait("document.querySelectorAll('main button.danger').length === 2")
        page.evaluate("[...document.querySelectorAll('main button.danger')].at(-1).click()")
        shown(page, "It is linked, and must be unlinked there first", "dialog")
        shown(page, "last/approved:v0", "dialog")
        shown(page, "1 run used it, and can no longer download it: run-last", "dialog")
        shown(page, "last-model:v0", "dialog")
        assert page.evaluate("document.querySelector('dialog button.main').disabled") is True
        pictured(page, f"deletion-linked-{width}")
    links.unlink(versions["last-data"], link.collection.id, 1)
    page.open(path)
    page.wait("document.querySelectorAll('main button.danger').length === 2")
    page.evaluate("[...document.querySelectorAll('main button.danger')].at(-1).click()")
    shown(page, "It is deleted for good", "dialog")
    pictured(page, "deletion")
    click(page, "dialog button", "Delete")
    shown(page, "last-data:v0 was deleted.")
    shown(page, "It has no versions any more.")
    assert page.complaints == []


def test_a_dataset_and_a_logged_model_have_pages(page: Browser, served: Served) -> None:
    """They are listed with the artifacts of their project, and reached from the run and the graph."""
    store = served.metadata_store
    number = run_number(store, "run-logged")
    rows = {"name": "rows", "digest": "0f3a", "source_type": "s3", "source": "s3://lake/<b>rows</b>"}
    params = {"lr": "0.1"}
    model = LoggedModel("m-1", store.projects.id("logged"), "net", "torch", "READY", None, params, {}, T0, T0)
    store.logged_models.add(model, number)
    store.logged_model_metrics.record(
        [ModelMetric("m-1", "run-logged", "accuracy", 0.93, T0, 1, "rows", "0f3a")]
    )
    store.run_lineage.add(number, Lineage(datasets=[{"tags": [], "dataset": rows}]))
    page.open("/projects/logged?artifacts=1")
    shown(page, "s3://lake/<b>rows</b>", "main")
    click(page, "main td a", "net")
    shown(page, "models:/m-1", "main")
    shown(page, "0.93", "main table")
    for width, dark in ((1280, False), (1280, True), (390, False)):
        page.resize(width, 900, dark)
        pictured(page, f"model-{width}{'-dark' if dark else ''}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.resize(1280, 900)
    click(page, "main a", "Lineage")
    page.wait("document.querySelectorAll('main svg g.node').length > 1")
    choose(page, "rows")
    click(page, "section h3 a", "rows")
    shown(page, "0f3a", "main dl")
    click(page, "main section a", "run-logged")
    click(page, "a", "Artifacts")
    shown(page, "Datasets and models of MLflow", "main")
    pictured(page, "run")
    # Who deletes the run is told first what depends on it.
    click(page, "button", "Delete")
    shown(page, "run-later", "dialog")
    pictured(page, "deletion")
    assert page.complaints == []
