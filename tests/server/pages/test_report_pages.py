"""Reports in a real browser, at a real server: reading, writing, and two people in one report."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.patience import eventually
from tests.server.accounts.routes.people import serving_people
from tests.server.browser import Browser
from tests.server.pages.accessibility import accessible, looked_at
from tests.server.pages.test_account_pages import at, signed_in
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_project_pages import DIGITS, Lab
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401

REPORTS = f"{DIGITS}/reports"
HOSTILE = (
    "<script>document.title='owned'</script> <img src=x onerror=\"document.title='owned'\"> "
    "[a](javascript:document.title='owned')"
)


def _pixel() -> str:
    content = io.BytesIO()
    Image.new("RGB", (1, 1), "red").save(content, "PNG")
    return base64.b64encode(content.getvalue()).decode()


PIXEL = _pixel()
CELL = "<td><p class=MsoNormal>"
WORD = f"""<html xmlns:o="urn:schemas-microsoft-com:office:office"><style>p {{margin:0}}</style>
<!--[if gte mso 9]><xml></xml><![endif]-->
<p class=MsoNormal><b style='mso-bidi-font-weight:normal'>Bold</b> and
<span style='text-decoration:line-through'>gone</span><o:p></o:p></p>
<p style='mso-list:l0 level1 lfo1'><![if !supportLists]>
<span style='mso-list:Ignore'>·&nbsp;</span><![endif]>One</p>
<p style='mso-list:l0 level2 lfo1'><span style='mso-list:Ignore'>o&nbsp;</span>Nested</p>
<p style='mso-list:l0 level1 lfo1'><span style='mso-list:Ignore'>·&nbsp;</span>Two</p>
<p class=MsoNormal><o:p>&nbsp;</o:p></p>
<table><tr><td colspan=2><p>A<o:p></o:p></p></td>{CELL}C</p></td></tr>
<tr><td rowspan=2>tall</td>{CELL}b</p><p>second</p></td>{CELL}c</p></td></tr>
<tr>{CELL}d</td>{CELL}e</td></tr></table>
<img src="file:///C:/clip_image001.png" onerror="document.title='owned'">
<img src="data:image/png;base64,{PIXEL}">
<p class=MsoQuote>Quoted</p></html>"""


HOLD_REPORTS = """(send => {
    fetch = (url, how) => !String(url).includes('/api/v1/reports/') ? send(url, how) : new Promise(answer => {
        const release = (response) => (answer(response.clone()), response.text());
        held.push(() => send(url, how).then(release, () => null));
    });
})(fetch)"""
"""Keeps requests of a report until `held[0]()`, which resolves when there is the answer."""


class ReportLab(Lab):
    """The same, with a report of vera's team that rita wrote."""

    def ask(self, name: str, method: str, path: str, **body: Any) -> Any:
        """The JSON of an answer to a user."""
        response = self.people.browser(name).request(method, path, json=body or None)
        assert response.status_code < 300, response.text
        return response.json() if response.content else None

    def report(self, *, publish: bool = True, blocks: list[dict[str, Any]] | None = None) -> dict[str, Any]:
        """A new report of rita."""
        run_set = {"id": "runs", "entity": "vision", "project": "digits"}
        panel = {
            "id": "cpu0",
            "kind": "line",
            "columns": 6,
            "rows": 5,
            "run_sets": ["runs"],
            "settings": {"metrics": ['system:"cpu"'], "x": "relative"},
            "queries": [{"source": "system", "name": "cpu"}],
        }
        own = [
            text("head", "# Result"),
            text("tell", f"A rate of **0.1** is best. {HOSTILE}"),
            text("math", "$$\n\\frac{a}{b}\n$$"),
            text("more", "## Details"),
            text("last", "## Next steps"),
            {"id": "grid", "kind": "panels", "run_sets": [run_set], "panels": [panel]},
        ]
        body = {"title": "Which rate?", "blocks": own if blocks is None else blocks, "publish": publish}
        made: dict[str, Any] = self.ask("rita", "POST", REPORTS, **body)
        return made


def text(block_id: str, markdown: str) -> dict[str, Any]:
    """A block of text."""
    return {"id": block_id, "kind": "text", "text": markdown}


def address_of(report: dict[str, Any], rest: str = "") -> str:
    """The path of a report's page."""
    return f"/vision/digits/reports/{report['slug']}--{report['id']}{rest}"


@pytest.fixture
def lab(tmp_path: Path, static: str) -> Iterator[ReportLab]:  # noqa: F811
    with serving_people(tmp_path, static=static) as people:
        yield ReportLab(people)


@pytest.fixture
def page(lab: ReportLab, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    with at(browser, lab.people.url):
        yield browser


def test_a_report_is_read(lab: ReportLab, page: Browser) -> None:
    report = lab.report()
    signed_in(page)
    page.open("/vision/digits/reports")
    shown(page, "Which rate?")
    click(page, "td a", "Which rate?")
    shown(page, "A rate of 0.1 is best.")
    page.wait("document.querySelector('[data-panel=cpu0] canvas')")
    assert page.evaluate("document.title").startswith("Which rate?")
    assert page.evaluate("!document.querySelector('article script, article img')")
    page.wait("document.querySelector('article math mfrac')")
    assert page.evaluate("[...document.querySelectorAll('nav[aria-label=Outline] a')].map(a => a.text)") == [
        "Result",
        "Details",
        "Next steps",
    ]
    looked_at(page, "report")
    page.open(address_of(report, "").replace(f"--{report['id']}", "--Vmlldzox"))
    shown(page, "A rate of 0.1 is best.")  # the address that clients of W&B print

    page.open("/vision/digits/reports")
    shown(page, "Which rate?")
    page.evaluate(f"window.held = []; {HOLD_REPORTS}")
    click(page, "td a", "Which rate?")
    page.wait("held.length === 1")
    click(page, "header nav a", "Runs")
    page.evaluate("held[0]().then(() => new Promise(drawn => requestAnimationFrame(() => drawn())))")
    assert page.evaluate("location.pathname") == "/runs"  # who has left a page is not led back to it


def test_a_viewer_reads_and_may_not_write(lab: ReportLab, page: Browser) -> None:
    report = lab.report()
    signed_in(page, "vera")
    page.open(address_of(report))
    shown(page, "A rate of 0.1 is best.")
    assert not page.evaluate("[...document.querySelectorAll('main a')].some(a => a.text === 'Edit')")
    page.open(address_of(report, "/edit"))
    shown(page, "may")
    page.wait("!location.pathname.endsWith('/edit')")


def test_a_report_is_written_with_markdown_and_published(lab: ReportLab, page: Browser) -> None:
    signed_in(page)
    page.open("/vision/digits/reports")
    click(page, "main button", "New report")
    page.wait("document.querySelector('.ProseMirror')")
    page.evaluate("document.querySelector('input.title').focus(); true")
    page.call("Input.insertText", text="Learned today")
    page.evaluate("document.querySelector('.ProseMirror').focus(); true")
    page.call("Input.insertText", text="# ")
    page.call("Input.insertText", text="Result")
    page.press("Enter")
    page.call("Input.insertText", text="It works.")
    page.press("Enter")
    paste(page, WORD)
    shown(page, "Saved")
    [listed] = lab.ask("rita", "GET", REPORTS)["reports"]

    def stored() -> list[str]:
        whole = lab.ask("rita", "GET", f"/reports/{listed['id']}?draft=1")
        return [whole["title"], *(block.get("text", "") for block in whole["blocks"])]

    pasted = [
        "**Bold** and ~~gone~~",
        "* One\n * Nested\n* Two",
        "| A | <br /> | C |\n| :- | :- | :- |\n| tall | b second | c |\n| <br /> | d | e |",
        "> Quoted",
        "",  # the image, which is no part of the quote
    ]
    eventually(lambda: [re.sub(" +|-+", lambda gap: gap[0][0], text) for text in stored()[3:]] == pasted)
    assert stored()[:3] == ["Learned today", "# Result", "It works."]
    looked_at(page, "report-editor")
    click(page, "main button", "Publish")
    shown(page, "It works.", "article")
    assert lab.ask("vera", "GET", f"/reports/{listed['id']}")["title"] == "Learned today"
    # Another one begins with what was copied.
    page.open("/vision/digits/reports")
    page.permit("clipboardReadWrite", "clipboardSanitizedWrite")
    page.call("Page.bringToFront")
    page.wait("document.hasFocus()")
    page.evaluate("navigator.clipboard.writeText('# From notes\\n\\nIt *learns*.')")
    click(page, "main button[aria-label='New report from a template or the clipboard']")
    click(page, "[role=menuitem]", "Markdown, or rows of a sheet")
    page.wait("location.pathname.endsWith('/edit')")
    shown(page, "It learns.", ".ProseMirror")
    titles = [row["title"] for row in lab.ask("rita", "GET", REPORTS)["reports"]]
    assert "From notes" in titles


def test_panels_are_added_from_the_list_of_elements(lab: ReportLab, page: Browser) -> None:
    report = lab.report(blocks=[text("only", "One")])
    signed_in(page)
    page.open(address_of(report, "/edit"))
    page.wait("document.querySelector('.ProseMirror p')")
    type_into(page, 0, "")
    page.press("Enter")
    page.call("Input.insertText", text="/sys")
    page.wait("document.querySelector('[role=listbox] [role=option]')")
    page.press("Enter")
    page.wait("document.querySelector('.ProseMirror [data-kind=system] canvas')")

    def kinds() -> list[str]:
        whole = lab.ask("rita", "GET", f"/reports/{report['id']}?draft=1")
        return [block["kind"] for block in whole["blocks"]]

    eventually(lambda: kinds() == ["text", "panels"])
    looked_at(page, "report-panels")


def test_two_people_in_one_report_lose_no_words(lab: ReportLab, page: Browser) -> None:
    report = lab.report(blocks=[text("aaaa", "One"), text("bbbb", "Two")])
    path = f"/reports/{report['id']}"
    signed_in(page)
    page.open(address_of(report, "/edit"))
    page.wait("document.querySelectorAll('.ProseMirror p').length >= 2")
    # While rita writes the second paragraph, somebody saves another first one.
    lab.ask("rita", "PATCH", path, revision=1, blocks=[text("aaaa", "ONE"), text("bbbb", "Two")])
    type_into(page, 1, " and a half")
    shown(page, "ONE", ".ProseMirror")
    eventually(lambda: texts_of(lab, path) == ["ONE", "Two and a half"])
    # Both change the same paragraph: rita sees both texts and chooses.
    now = lab.ask("rita", "GET", f"{path}?draft=1")
    theirs = [text("aaaa", "theirs"), text("bbbb", "Two and a half")]
    lab.ask("rita", "PATCH", path, revision=now["revision"], blocks=theirs)
    type_into(page, 0, " mine")
    shown(page, "Somebody else changed the same", "dialog")
    shown(page, "theirs", "dialog")
    shown(page, "ONE mine", "dialog")
    accessible(page)
    keep_both(page)
    eventually(lambda: texts_of(lab, path) == ["theirs", "ONE mine", "Two and a half"])
    # All were saved as rita's. In an editor that is opened later they are undone one by one, and done again.
    page.open(address_of(report, "/edit"))
    page.wait("document.querySelectorAll('.ProseMirror p').length >= 3")
    type_into(page, 2, " more")
    saved = ["ONE mine", "theirs", "Two and a half"]
    for words in (" more", *saved):
        page.press("z", ctrl=True)
        page.wait(f"!document.querySelector('.ProseMirror').innerText.includes({words!r})")
    eventually(lambda: texts_of(lab, path) == ["ONE", "Two"])
    for words in saved[::-1]:
        page.press("z", ctrl=True, shift=True)
        page.wait(f"document.querySelector('.ProseMirror').innerText.includes({words!r})")
    eventually(lambda: texts_of(lab, path) == ["theirs", "ONE mine", "Two and a half"])


def test_two_browsers_write_one_report_at_once(lab: ReportLab, page: Browser) -> None:
    """Rita and Bob, each in a browser of their own, type into one report."""
    report = lab.report(blocks=[text("aaaa", "One"), text("bbbb", "Two")])
    path = f"/reports/{report['id']}"
    lab.ask("rita", "PUT", f"{path}/shares/bob", role="edit")
    with Browser() as bobs, at(bobs, lab.people.url):
        for window, name in ((page, "rita"), (bobs, "bob")):
            signed_in(window, name)
            window.open(address_of(report, "/edit"))
            window.wait("document.querySelectorAll('.ProseMirror p').length >= 2")
        for number in range(3):
            type_into(page, 0, f" r{number}")
            type_into(bobs, 1, f" b{number}")
        merged = ["One r0 r1 r2", "Two b0 b1 b2"]
        eventually(lambda: texts_of(lab, path) == merged)
        for window in (page, bobs):
            for words in merged:
                shown(window, words, ".ProseMirror")
        # Both change one paragraph: nobody's words are overwritten, and who saves second sees both.
        type_into(page, 0, " rita's")
        type_into(bobs, 0, " bob's")
        eventually(
            lambda: any(
                window.evaluate("!!document.querySelector('dialog[open]')") for window in (page, bobs)
            )
        )
        [asked] = [
            window for window in (page, bobs) if window.evaluate("!!document.querySelector('dialog[open]')")
        ]
        shown(asked, "Somebody else changed the same", "dialog")
        shown(asked, "r2 rita's", "dialog")
        shown(asked, "r2 bob's", "dialog")
        keep_both(asked)
        both = ["One r0 r1 r2 bob's", "One r0 r1 r2 rita's", "Two b0 b1 b2"]
        eventually(lambda: sorted(texts_of(lab, path)) == both)
        for window in (page, bobs):
            shown(window, "Saved")


def keep_both(page: Browser) -> None:
    """Answer the dialog that shows two texts of a block."""
    page.wait(
        "(e => e && (e.click(), true))"
        "([...document.querySelectorAll('dialog label')].find(e => e.innerText.includes('Keep both')))"
    )
    click(page, "dialog button", "Go on")


def paste(page: Browser, markup: str) -> None:
    """Paste HTML where the cursor is."""
    page.evaluate(
        "(data => { data.setData('text/html', " + json.dumps(markup) + ");"
        "document.querySelector('.ProseMirror').dispatchEvent(new ClipboardEvent('paste',"
        "{clipboardData: data, bubbles: true, cancelable: true})); return true })(new DataTransfer())"
    )


def texts_of(lab: ReportLab, path: str) -> list[str]:
    """The texts of the working copy."""
    return [block["text"] for block in lab.ask("rita", "GET", f"{path}?draft=1")["blocks"]]


def type_into(page: Browser, paragraph: int, words: str) -> None:
    """Type at the end of a paragraph of the editor."""
    page.evaluate(
        "(p => { document.querySelector('.ProseMirror').focus(); const range = document.createRange();"
        "range.selectNodeContents(p); range.collapse(false); getSelection().removeAllRanges();"
        "getSelection().addRange(range); return true })"
        f"(document.querySelectorAll('.ProseMirror p')[{paragraph}])"
    )
    page.wait("new Promise(done => setTimeout(() => done(true), 50))")
    page.call("Input.insertText", text=words)


def test_a_team_chooses_the_reports_that_its_page_shows(lab: ReportLab, page: Browser) -> None:
    lab.report()
    depths = lab.ask("rita", "POST", REPORTS, title="Which depth?", publish=True)
    signed_in(page)
    page.open("/vision")
    click(page, "button", "Choose reports")
    add = "[...document.querySelectorAll('label select')].find(s => s.options[0].text === 'Choose a report')"
    page.wait(f"{add}?.length === 3")
    for title in ("Which rate?", "Which depth?"):
        page.evaluate(
            f"(s => {{ s.value = [...s.options].find(o => o.text === {title!r}).value;"
            f"s.dispatchEvent(new Event('change', {{bubbles: true}})); }})({add}); true"
        )
        page.wait(f"[...document.querySelectorAll('ol li a')].some(a => a.text === {title!r})")
    click(page, "button[aria-label='Move Which depth? up']")
    page.wait(f"document.querySelector('ol li a').pathname.endsWith('--{depths['id']}')")
    looked_at(page, "pinned-reports")
    accessible(page)
    pinned = lab.ask("rita", "GET", "/teams/vision/profile")["pinned_reports"]
    assert [report["title"] for report in pinned] == ["Which depth?", "Which rate?"]
