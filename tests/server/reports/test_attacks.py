"""Texts of reports that attack their readers or the server."""

from __future__ import annotations

import re

import pytest

from runvitals.server.reports.document import MAX_TEXT
from runvitals.server.reports.routes.shown_reports import html_of_blocks
from runvitals.server.user_content.image_links import ImageLinks
from tests.server.accounts_server import AccountsServer
from tests.server.reports.documents import create, text

INERT = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt&#58;alert(1))",
    "![a](data:image/svg+xml;base64,PHN2Zz4=)",
    "[a](data:text/html,<script>1</script>)",
    "<svg onload=alert(1)><animate onbegin=alert(1)></svg>",
    "<iframe src=//evil.example></iframe>",
    "$\\href{javascript:alert(1)}{x}$",
    "```html\n<script>alert(1)</script>\n```",
    "> " * 500 + "<script>1</script>",
    "| <script>1</script> |\n|---|\n| <b onclick=1>x</b> |",
]
_ALIVE = re.compile(
    r"<(script|iframe|svg|b|object|style)\b|<[^>]*\son\w+=|(href|src)=\"(javascript|data):", re.I
)


@pytest.mark.parametrize("attack", INERT)
def test_no_text_runs_anything(digits: AccountsServer, attack: str) -> None:
    blocks = [text("aaaa", attack)]
    report = create(digits, title=attack[:200], description=attack[:200], blocks=blocks, publish=True)
    digits.ask("eve", "POST", f"reports/{report['id']}/comments", 201, json={"text": attack})
    read = digits.ask("eve", "GET", f"reports/{report['id']}")
    [comment] = digits.ask("eve", "GET", f"reports/{report['id']}/comments")["comments"]
    assert read["blocks"][0]["text"] == attack
    for html in (read["html"]["aaaa"], comment["html"]):
        assert not _ALIVE.search(html), html


@pytest.mark.parametrize(
    "unit", ["[", "![", "[](", "*a_ ", "` `` ", "<a ", "|a|b|\n|-|-|\n", "a\n\n", "~~a", "x"]
)
def test_two_megabytes_of_markup_are_not_all_rendered(unit: str) -> None:
    block = (unit * MAX_TEXT)[:MAX_TEXT]
    document = {"blocks": [text(f"b{number:04}", block) for number in range(104)]}
    html = html_of_blocks(document, ImageLinks(bytes(32)))
    assert len(html) == 104
    plain = [shown for shown in html.values() if shown.startswith("<pre>")]
    # A rendered block of such a text takes up to 0.2 s.
    assert (len(plain) >= 80) is (unit != "x")


def test_a_long_report_of_ordinary_text_is_rendered() -> None:
    paragraph = "A **bold** word, `code` and [a link](https://example.org) in every line of it. "
    document = {"blocks": [text(f"b{number:04}", paragraph * 20) for number in range(300)]}
    html = html_of_blocks(document, ImageLinks(bytes(32)))
    assert not any(shown.startswith("<pre>") for shown in html.values())
