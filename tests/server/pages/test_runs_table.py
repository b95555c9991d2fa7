"""The table of runs in a real browser: many rows, columns, order, groups, selection, changes, views."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from runvitals.model.ending import Ending
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.server.runs.storage.writers import WriterEnd
from tests.server.browser import Browser, keep_picture
from tests.server.pages.accessibility import violations
from tests.server.pages.test_page import browser, static, type_into  # noqa: F401
from tests.server.pages.test_page_charts import downloads
from tests.server.serving import Served, serving
from tests.server.test_build import hook  # noqa: F401

RUNS = 3000
EVIL = '<img src=x onerror="document.title=1">\u202e" onfocus=1 ' + "W" * 300
GRID = "table[role=grid]"


def seed(served: Served, project: str, names: list[str]) -> None:
    """Runs of a project that are over, the first the oldest: each tenth failed, with two learning rates."""
    start_ms = time.time_ns() // 1_000_000 - 86_400_000
    metadata = served.metadata_store
    joined = metadata.writers.join(
        [
            WriterRegistration(
                f"{project}-{i}",
                "monitor.node1.1",
                project=project,
                role="monitor",
                host=f"node{i % 4}",
                started_ms=start_ms + i * 1000,
            )
            for i in range(len(names))
        ],
        start_ms,
    )
    updates = []
    for i, (who, name) in enumerate(zip(joined, names, strict=True)):
        about = {"name": name, "tags": ["even" if i % 2 == 0 else "odd"], "notes": f"note {i}\nmore"}
        updates += [
            SectionUpdate(who.run_id, "run", about, start_ms),
            SectionUpdate(who.run_id, "config", {"lr": 0.1 if i % 3 else 0.01, "name": name}, start_ms),
            SectionUpdate(who.run_id, "summary", {"loss": float(i)}, start_ms),
        ]
    metadata.sections.merge(updates)
    metadata.writers.record_ends(
        [
            WriterEnd(
                who.writer_id,
                Ending("failed", 1) if i % 10 == 0 else Ending("finished", 0),
                start_ms + i * 1000 + 60_000,
            )
            for i, who in enumerate(joined)
        ]
    )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, static: str) -> Iterator[Served]:  # noqa: F811
    with serving(tmp_path_factory.mktemp("runs"), static=static) as served:
        seed(served, "many", [f"run {i}" for i in range(RUNS)])
        for project in ("changed", "renamed", "views", "groups", "keys"):
            seed(served, project, [f"{project} {i}" for i in range(12)])
        seed(served, "evil", [EVIL] * 3)
        yield served


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Browser]:  # noqa: F811
    browser.base = served.url
    browser.complaints.clear()
    browser.resize(1280, 800)
    yield browser
    assert browser.complaints == []
    browser.leave()


def names(page: Browser) -> list[str]:
    """The names in view, from top to bottom."""
    texts: list[str] = page.evaluate(
        "[...document.querySelectorAll('tbody .run .name')].map(e => e.innerText)"
    )
    return texts


def address(page: Browser) -> dict[str, str]:
    query: dict[str, str] = page.evaluate("Object.fromEntries(new URLSearchParams(location.search))")
    return query


def click(page: Browser, selector: str, text: str = "", shift: bool = False) -> None:
    """The first element that fits and says that, as soon as it is there and is not disabled."""
    page.wait(
        f"(e => e && (e.dispatchEvent(new MouseEvent('click', {{bubbles: true, cancelable: true, shiftKey: "
        f"{json.dumps(shift)}}})), true))([...document.querySelectorAll({json.dumps(selector)})]"
        f".find(e => !e.disabled && e.innerText.includes({json.dumps(text)})))"
    )


def headings(page: Browser) -> list[str]:
    texts: list[str] = page.evaluate("[...document.querySelectorAll('thead .title')].map(e => e.innerText)")
    return texts


def test_thousands_of_rows_are_scrolled_and_few_are_in_the_page(page: Browser) -> None:
    page.open("/projects/many?table=1&sort=-started_ms")
    page.wait(f"document.querySelector('{GRID}')?.getAttribute('aria-rowcount') == {RUNS + 2}")
    page.wait(f"document.querySelector('tbody .name')?.innerText == 'run {RUNS - 1}'")
    assert page.evaluate("document.querySelectorAll('tbody tr').length") < 60
    for share, name in ((0.5, "run 15"), (1, "run 0")):
        page.evaluate(
            f"(e => e.scrollTop = {share} * (e.scrollHeight - e.clientHeight))"
            "(document.querySelector('.scroll'))"
        )
        page.wait(
            f"[...document.querySelectorAll('tbody .name')].some(e => e.innerText.startsWith({name!r}))"
        )
    assert page.evaluate("document.querySelectorAll('tbody tr').length") < 60
    keep_picture(page, "scrolled")
    # another order begins at the top
    click(page, "thead .sorts", "Run")
    page.wait("document.querySelector('tbody .name')?.innerText == 'run 0'")
    assert page.evaluate("document.querySelector('.scroll').scrollTop") == 0


def test_columns_are_chosen_moved_pinned_and_sorted_and_a_link_shows_the_same(page: Browser) -> None:
    page.open("/projects/many?table=1&columns=state,tags&sort=-started_ms")
    page.wait("document.querySelectorAll('thead .title').length === 3")
    click(page, "button", "Columns")
    page.wait("document.querySelector('.popover input[type=search]')")
    type_into(page, ".popover input[type=search]", "loss")
    page.wait("document.querySelectorAll('.popover label').length === 2")  # the value and its course
    page.evaluate("document.querySelector('.popover label input').click()")
    page.press("Escape")
    page.wait("!document.querySelector('.popover')")
    assert page.evaluate("document.activeElement.innerText") == "Columns"
    assert headings(page) == ["Run", "State", "Tags", "loss"]

    page.evaluate("[...document.querySelectorAll('thead .sorts')].at(-1).focus()")
    page.press("ArrowLeft", alt=True)
    page.wait("new URLSearchParams(location.search).get('columns') === 'state,summary.loss,tags'")
    page.evaluate(
        """(() => {
            const [from, to] = [2, 1].map(i => document.querySelectorAll('thead th[draggable=true]')[i]);
            const data = new DataTransfer();
            const send = (e, kind, x) => e.dispatchEvent(new DragEvent(kind, {bubbles: true, cancelable: true,
                dataTransfer: data, clientX: x}));
            send(from, 'dragstart', 0);
            send(to, 'dragover', to.getBoundingClientRect().left + 2);
            send(to, 'drop', 0);
            send(from, 'dragend', 0);
        })()"""
    )
    page.wait("new URLSearchParams(location.search).get('columns') === 'state,tags,summary.loss'")

    click(page, "thead th:last-child .column-menu")
    click(page, ".menu-item", "Pin")
    page.wait("new URLSearchParams(location.search).get('pinned') === 'summary.loss'")
    assert headings(page) == ["Run", "loss", "State", "Tags"]
    page.wait(
        "getComputedStyle(document.querySelectorAll('tbody tr:first-child td')[2]).position === 'sticky'"
    )

    click(page, "thead .sorts", "State")
    page.wait("new URLSearchParams(location.search).get('sort') === 'state'")
    click(page, "thead .sorts", "loss", shift=True)
    page.wait("new URLSearchParams(location.search).get('sort') === 'state,-summary.loss'")
    page.wait("document.querySelector('tbody .name')?.innerText === 'run 2990'")
    link = page.evaluate("location.pathname + location.search")
    page.open("/projects/keys?table=1&sort=-started_ms")
    page.wait("document.querySelector('tbody .name')?.innerText === 'keys 11'")
    page.open(link)
    page.wait("document.querySelector('tbody .name')?.innerText === 'run 2990'")
    assert headings(page) == ["Run", "loss", "State", "Tags"]


def test_the_filter_is_coloured_completed_and_corrected(page: Browser) -> None:
    page.open("/projects/many?table=1&sort=-started_ms")
    page.wait("document.querySelector('tbody .name')")
    type_into(page, "input[type=search]", "sta")
    page.wait("document.querySelector('[role=option]')?.innerText.startsWith('state:')")
    page.press("ArrowDown")
    page.press("Enter")
    page.wait("document.querySelector('input[type=search]').value === 'state:'")
    page.call("Input.insertText", text="fa")
    page.wait("document.querySelectorAll('[role=option]').length === 1")
    page.press("ArrowDown")
    page.press("Enter")
    page.wait("document.querySelector('[role=status]')?.innerText === '300'")
    page.call("Input.insertText", text="config.lr<0.05")
    page.wait("document.querySelector('[role=status]')?.innerText === '100'")
    assert page.text(".paint .name") == "state"
    assert address(page)["q"] == "state:failed config.lr<0.05"
    page.call("Input.insertText", text=" colour:red")
    page.wait("document.querySelector('.filter [role=alert]')?.innerText.includes('colour')")
    assert page.evaluate("document.querySelector('input[type=search]').ariaInvalid") == "true"
    assert names(page)[0] == "run 2970"  # what was found before stays
    assert address(page)["q"] == "state:failed config.lr<0.05"


def test_what_was_found_stays_until_a_term_is_complete(page: Browser) -> None:
    page.open("/projects/many?table=1&sort=-started_ms")
    page.wait("document.querySelector('tbody .name')")
    page.evaluate("document.querySelector('input[type=search]').focus()")
    page.evaluate(
        "window.seen = new Set(); new MutationObserver(() => seen.add(document.querySelector('.empty')"
        " ? 'empty' : document.querySelector('[role=status]')?.innerText))"
        ".observe(document.body, {subtree: true, childList: true, characterData: true}); true"
    )
    for letter in "state:failed config.lr<0.05":
        page.call("Input.insertText", text=letter)
    page.wait("document.querySelector('[role=status]')?.innerText === '100'")
    assert set(page.evaluate("[...seen]")) <= {"3,000", "300", "100", None}


def test_a_table_begins_with_its_goal_and_what_differs(page: Browser) -> None:
    page.open("/projects/keys?table=1")
    page.wait("document.querySelector('tbody .name')?.innerText === 'keys 0'")
    assert headings(page)[:5] == ["Run", "State", "loss (result)", "loss (course)", "lr"]
    assert page.evaluate("location.search") == "?table=1"
    click(page, "thead .sorts", "Started")
    page.wait("document.querySelector('tbody .name')?.innerText === 'keys 11'")
    assert address(page)["sort"] == "-started_ms"


def test_groups_have_totals_and_open(page: Browser) -> None:
    page.open("/projects/groups?table=1&columns=state,summary.loss&by=config.lr")
    page.wait("document.querySelectorAll('tr.group').length === 2")
    texts = page.evaluate(
        "[...document.querySelectorAll('tr.group')].map(e => e.innerText.replace(/\\s+/g, ' '))"
    )
    assert sorted(text.partition("runs")[0].strip(" ▸") for text in texts) == ["lr 0.01 4", "lr 0.1 8"]
    click(page, "tr.group button", "0.01")
    page.wait("document.querySelectorAll('tbody .run').length === 4")
    assert set(names(page)) == {f"groups {i}" for i in (0, 3, 6, 9)}
    assert address(page)["expanded"] == "[0.01]"
    page.open("/projects/groups?table=1&by=tag&expanded=%5B%22odd%22%5D")  # with the usual columns
    page.wait("document.querySelectorAll('tbody .run').length === 6")
    keep_picture(page, "groups")
    assert violations(page, tolerated=("minor",)) == []


def test_totals_and_widths_of_columns_are_chosen_and_kept(page: Browser) -> None:
    def totals() -> str:
        text: str = page.evaluate("document.querySelector('tfoot')?.innerText.replace(/\\s+/g, ' ').trim()")
        return text

    page.open("/projects/many?table=1&columns=state,summary.loss,duration&sort=summary.loss")
    page.wait("document.querySelector('tfoot')?.innerText.includes('⌀')")
    assert totals() == f"3,000 runs mean of each column ▾ 300 2700 ⌀ {(RUNS - 1) / 2} ⌀ 1 min 00 s"
    click(page, "tfoot button")
    click(page, "[role=menuitemcheckbox]", "Sum")
    page.wait("document.querySelector('tfoot').innerText.includes('Σ')")
    assert totals().endswith(f"Σ {sum(range(RUNS))} Σ 2 d 2 h")
    page.press("Escape")
    heading = "[...document.querySelectorAll('th')].find(e => e.innerText.startsWith('loss'))"
    left, top, before = page.evaluate(
        f"(e => [e.right - 3, e.top + 9, e.width])({heading}.getBoundingClientRect())"
    )
    page.mouse("mouseMoved", left, top)
    page.mouse("mousePressed", left, top, clicks=1)
    page.mouse("mouseMoved", left + 80, top, clicks=1)
    page.mouse("mouseReleased", left + 80, top, clicks=1)
    page.wait(f"Math.abs({heading}.offsetWidth - {before} - 80) < 2")
    page.evaluate(f"{heading}.querySelector('.sorts').focus()")
    page.press("ArrowLeft", alt=True, shift=True)
    page.wait(f"new URLSearchParams(location.search).get('widths') === 'summary.loss:{before + 70:.0f}'")
    assert address(page)["total"] == "sum"


def test_a_phone_has_headings_to_sort_by_and_totals(page: Browser) -> None:
    page.resize(390, 800)
    page.open("/projects/many?table=1&columns=state,summary.loss,duration&sort=-started_ms")
    page.wait("document.querySelector('tfoot')?.innerText.includes('⌀')")
    assert headings(page) == ["Run", "State", "loss", "Duration"]
    click(page, "thead .sorts", "loss")
    click(page, "thead .sorts", "loss")
    page.wait("document.querySelector('tbody .name').innerText === 'run 0'")
    assert page.evaluate("getComputedStyle(document.querySelector('.pencil')).opacity") == "1"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(page, tolerated=("minor",)) == []


def test_selected_runs_are_tagged_deleted_and_restored(page: Browser, served: Served) -> None:
    page.open("/projects/changed?table=1&sort=started_ms&columns=tags")
    page.wait("document.querySelector('tbody .name')?.innerText === 'changed 0'")
    click(page, "tbody tr:nth-child(2) input[type=checkbox]")
    click(page, "tbody tr:nth-child(4) input[type=checkbox]", shift=True)
    page.wait("document.querySelector('.bulk b')?.innerText === '3 runs selected'")
    keep_picture(page, "selected")
    downloads(page)
    click(page, ".bulk button", "Export CSV")
    saved = page.wait("window.saved[0]")[2].splitlines()
    assert [row.split(",")[0] for row in saved] == ["id", "changed-1", "changed-2", "changed-3"]
    click(page, ".bulk button", "Tag")
    page.wait("document.querySelector('dialog textarea')")
    type_into(page, "dialog textarea", "chosen")
    click(page, "dialog button[type=submit]")
    page.wait(
        "[...document.querySelectorAll('tbody tr')].filter(e => e.innerText.includes('chosen')).length === 3"
    )

    click(page, ".bulk button", "Delete")
    page.wait("document.querySelector('[role=status][aria-label=\"9 runs\"]')")
    click(page, ".notice button", "Undo")
    page.wait("document.querySelector('[role=status][aria-label=\"12 runs\"]')")
    click(page, "tbody tr:nth-child(2) input[type=checkbox]")
    click(page, "tbody tr:nth-child(4) input[type=checkbox]")
    click(page, ".bulk button", "Compare")
    page.wait("location.pathname + location.search === '/compare?runs=changed-1&runs=changed-3'")
    page.evaluate("history.back()")
    click(page, "thead input[type=checkbox]")
    page.wait("document.querySelector('.bulk b')?.innerText === '12 runs selected'")
    click(page, ".bulk button", "Move")
    page.wait("document.querySelector('dialog input')")
    type_into(page, "dialog input", "elsewhere")
    click(page, "dialog button[type=submit]")
    page.wait("document.querySelector('[role=status][aria-label=\"0 runs\"]')")
    page.open("/projects/elsewhere?table=1")
    page.wait("document.querySelector('[role=status][aria-label=\"12 runs\"]')")


def test_a_run_is_renamed_and_tagged_in_the_table(page: Browser) -> None:
    page.open("/projects/renamed?table=1&sort=started_ms&columns=tags,notes")
    page.wait("document.querySelector('tbody .name')?.innerText === 'renamed 0'")
    page.evaluate(f"document.querySelector('{GRID}').focus()")
    page.press("ArrowDown")
    page.press("F2")
    page.wait("document.activeElement.matches('tbody input.field')")
    page.call("Input.insertText", text="another name")
    page.press("Enter")
    page.wait("document.querySelectorAll('tbody .name')[1]?.innerText === 'another name'")
    assert page.evaluate(f"document.activeElement === document.querySelector('{GRID}')")
    click(page, "tbody tr:nth-child(2) [data-edit=tags]")
    page.wait("document.querySelector('.popover textarea:enabled')")
    above = "getComputedStyle(document.querySelector('.popover').parentElement).zIndex"
    assert page.evaluate(above) == "40"  # the table has layers of its own
    type_into(page, ".popover textarea", "\nnew tag")
    page.evaluate("document.querySelector('.popover form').requestSubmit()")
    page.wait("document.querySelectorAll('tbody tr')[1].innerText.includes('new tag')")
    click(page, "tbody tr:nth-child(2) [data-edit=notes]")
    page.wait("document.querySelector('.popover textarea:enabled')?.value === 'note 1\\nmore'")
    page.press("Escape")
    page.wait("!document.querySelector('.popover')")


def test_the_table_is_used_by_keys_alone(page: Browser) -> None:
    page.open("/projects/keys?table=1&sort=started_ms")
    page.wait("document.querySelector('tbody .name')?.innerText === 'keys 0'")
    page.press("?")
    assert "In a table of runs" in page.text("dialog[open]")
    page.press("Escape")
    page.wait("!document.querySelector('dialog[open]')")
    page.evaluate(f"document.querySelector('{GRID}').focus()")
    page.press(" ")
    page.press("ArrowDown", shift=True)
    page.press("ArrowDown", shift=True)
    page.wait("document.querySelector('.bulk b')?.innerText === '3 runs selected'")
    page.press("End")
    line = "document.getElementById(document.querySelector('table').getAttribute('aria-activedescendant'))"
    page.wait(f"{line}?.innerText.includes('keys 11')")
    page.press("Enter")
    page.wait("location.pathname === '/runs/keys-11'")


def test_views_are_saved_and_shown_again(page: Browser) -> None:
    page.open("/projects/views?table=1&q=state:failed&columns=state")
    page.wait("document.querySelectorAll('tbody .run').length === 2")
    click(page, "button", "Views")
    page.wait("document.querySelector('.popover form input')")
    type_into(page, ".popover form input", "failures")
    click(page, ".popover button[type=submit]")
    page.wait("document.querySelector('.popover li')?.innerText.includes('failures')")
    page.open("/projects/views?table=1")
    page.wait("document.querySelectorAll('tbody .run').length === 12")
    click(page, "button", "Views")
    click(page, ".popover li button", "failures")
    page.wait("document.querySelectorAll('tbody .run').length === 2")
    assert address(page) == {"table": "1", "q": "state:failed", "columns": "state"}


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_names_are_inert_and_the_table_is_accessible(page: Browser, width: int, dark: bool) -> None:
    page.resize(width, 800, dark)
    page.open("/projects/evil?table=1&columns=state,tags,notes,config.name,duration,cpu")
    page.wait("document.querySelectorAll('tbody .run').length === 3")
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    assert names(page)[0].startswith("<img src=x")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    keep_picture(page, f"evil-{width}-{'dark' if dark else 'light'}")
    assert violations(page, tolerated=("minor",)) == []
