"""Reports made of Markdown, of templates and of other reports."""

from __future__ import annotations

import pytest

from runvitals.server.reports.markdown_blocks import MAX_MARKDOWN, blocks_of_markdown
from runvitals.server.reports.templates import TEMPLATES
from tests.server.accounts_server import AccountsServer
from tests.server.reports.documents import REPORTS, create

TEXT = """# Result
It *works*.

$$
a

b
$$

```text
$$
not math
$$

still code
```

> [!NOTE]
> A callout.

| a |
|---|
| 1 |

[link]: https://example.org
- one

  more
- two
"""


def test_each_element_of_markdown_is_a_block() -> None:
    texts = [block["text"] for block in blocks_of_markdown(TEXT)]
    assert [part.splitlines()[0] for part in texts] == [
        "# Result",
        "It *works*.",
        "$$",
        "```text",
        "> [!NOTE]",
        "| a |",
        "[link]: https://example.org",
    ]
    assert "\n\n".join(texts).replace("\n", "") == TEXT.replace("\n", "")


@pytest.mark.parametrize(
    "unit", ["[", "![", "> ", "- ", "a\n\n", "$$\nx\n$$\n", "```\n$$\n", "|a|\n|-|\n", "[a]: b\n"]
)
def test_any_markdown_ends_in_blocks_or_an_error_that_names_the_limit(
    digits: AccountsServer, unit: str
) -> None:
    text = (unit * MAX_MARKDOWN)[:MAX_MARKDOWN]
    with digits.client("bob") as client:
        answer = client.post(REPORTS, json={"title": "t", "markdown": text})
    assert answer.status_code == 201 or (answer.status_code == 422 and "2,000" in answer.text)


def test_a_long_fence_is_split_between_lines() -> None:
    blocks = blocks_of_markdown("```\n" + "line\n" * 10_000 + "```\n")
    assert len(blocks) == 3
    assert all(len(block["text"]) <= 20_000 for block in blocks)


def test_a_report_of_markdown(digits: AccountsServer) -> None:
    report = create(digits, blocks=[], markdown="# One\n\ntwo")
    assert list(report["html"].values()) == ["<h2>One</h2>\n", "<p>two</p>\n"]
    long = {"title": "t", "markdown": "x" * (MAX_MARKDOWN + 1)}
    assert "markdown" in str(digits.ask("bob", "POST", REPORTS, 422, json=long))
    both = {"title": "t", "markdown": "x", "from": "incident"}
    assert "only one of" in str(digits.ask("bob", "POST", REPORTS, 422, json=both))


@pytest.mark.parametrize("name", list(TEMPLATES))
def test_a_report_of_a_template(digits: AccountsServer, name: str) -> None:
    report = digits.ask("bob", "POST", REPORTS, 201, json={"from": name})
    assert report["title"] == TEMPLATES[name]  # type: ignore[index]
    [grid] = [block for block in report["blocks"] if block["kind"] == "panels"]
    assert (grid["run_sets"][0]["entity"], grid["run_sets"][0]["project"]) == ("vision", "digits")
    assert {panel["run_sets"][0] for panel in grid["panels"]} == {grid["run_sets"][0]["id"]}


def test_unknown_templates_are_refused(digits: AccountsServer) -> None:
    digits.ask("bob", "POST", REPORTS, 422, json={"title": "t", "from": "other"})
    digits.ask("bob", "POST", REPORTS, 422, json={"blocks": []})


def test_a_copy_has_what_its_reader_sees(digits: AccountsServer) -> None:
    report = create(digits, publish=True)
    digits.ask("bob", "PATCH", f"reports/{report['id']}", json={"revision": 1, "title": "Not yet"})
    digits.ask("eve", "POST", f"reports/{report['id']}/duplicate", 403, json={})
    copy = digits.ask("ada", "POST", f"reports/{report['id']}/duplicate", 201, json={"title": "Mine"})
    assert (copy["title"], copy["author"], copy["state"]) == ("Mine", "ada", "draft")
    assert copy["blocks"] == report["blocks"]
    mine = digits.ask("bob", "POST", REPORTS, 201, json={"from": report["id"]})
    assert mine["title"] == "Not yet"


def test_nobody_copies_what_they_may_not_read(digits: AccountsServer) -> None:
    draft = create(digits)
    digits.ask("ada", "POST", f"reports/{draft['id']}/duplicate", 404, json={})
    digits.ask("ada", "POST", REPORTS, 404, json={"from": draft["id"]})
    digits.ask("ada", "POST", REPORTS, 404, json={"from": 10**9})
