"""A report as Markdown: its text as it was written, and what its panels show as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runvitals.readers.servers.reports.exported_report import ExportedReport
from runvitals.readers.servers.reports.html_page import as_of
from runvitals.readers.servers.reports.panel_tables import (
    PanelTable,
    pictures_of,
    problem_of,
    tables_of,
    texts_of,
    title_of,
)


def markdown_of(exported: ExportedReport) -> str:
    """Return a report as Markdown."""
    report = exported.report
    head = [f"# {_inline(report['title'])}"]
    if report["description"]:
        head.append(_inline(report["description"]))
    head.append(f"{report['entity']}/{report['project']} · <{exported.address}>")
    return "\n\n".join([*head, *_blocks(exported)]) + "\n"


def _blocks(exported: ExportedReport) -> Iterator[str]:
    for block in exported.report["blocks"]:
        if block["kind"] == "text":
            yield block["text"].rstrip()
        elif block["kind"] == "image":
            path = f"/api/v1/reports/{exported.report['id']}/files/{block['file']}"
            yield f"![{_inline(block['alt'])}]({exported.url}{path})"
            if block["caption"]:
                yield _inline(block["caption"])
        else:
            for panel, answer in exported.panels(block):
                yield from _panel(panel, answer)


def _panel(panel: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {_inline(title_of(panel))}"
    problem = problem_of(panel, answer)
    if problem:
        yield _inline(problem)
    for table in () if problem else tables_of(panel, answer):
        yield _table(table)
    for _, about in pictures_of(answer):
        yield f"- {_inline(about)}"
    for name, text in texts_of(panel, answer):
        fence = "`" * (3 + text.count("```"))
        yield f"{_inline(name)}\n\n{fence}\n{text.rstrip()}\n{fence}" if name else text.rstrip()
    if time := as_of(answer):
        yield f"*{time}*"


def _table(table: PanelTable) -> str:
    rows = [table.head, ["---"] * len(table.head), *table.rows]
    return "\n".join("| " + " | ".join(_cell(text) for text in row) + " |" for row in rows)


def _cell(text: str) -> str:
    return text if set(text) == {"-"} else _inline(text).replace("|", r"\|")


def _inline(text: str) -> str:
    """Return a text that means nothing in Markdown, on one line."""
    line = " ".join(text.split())
    return "".join(f"\\{character}" if character in r"\`*_[]<>#" else character for character in line)
