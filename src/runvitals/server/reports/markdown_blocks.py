"""Markdown as blocks of a report: each heading, paragraph, list, table or fence is a block of its own."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import islice
from typing import Any, Final

from runvitals.model.report_panels import new_id
from runvitals.server.reports import document
from runvitals.server.user_content.markdown_elements import elements_of

MAX_MARKDOWN: Final = 200_000
"""Characters; that of a long book's chapter."""
_MATH: Final = re.compile(r"^\$\$[ \t]*\n.*?^\$\$[ \t]*$", re.MULTILINE | re.DOTALL)
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})")


def text_block(markdown: str) -> dict[str, Any]:
    """Return a new block of text."""
    return {"id": new_id(), "kind": "text", "text": markdown}


def blocks_of_markdown(markdown: str) -> list[dict[str, Any]]:
    r"""Return a text as blocks. Parts that are too long for a block are split between lines.

    Raises:
        DocumentTooLarge: the text is too long.

    Example:
        >>> [block["text"] for block in blocks_of_markdown("# Result\nIt works.\n\n- a\n- b\n")]
        ['# Result', 'It works.', '- a\n- b']
    """
    if len(markdown) > MAX_MARKDOWN:
        raise document.DocumentTooLarge(
            f"markdown: {len(markdown):,} characters; expected at most {MAX_MARKDOWN:,}"
        )
    texts: list[str] = []
    position = 0
    for formula in _formulas(markdown):
        texts += elements_of(markdown[position : formula.start()])
        texts.append(formula.group())
        position = formula.end()
    texts += elements_of(markdown[position:])
    parts = [part for text in texts for part in _parts(text)]
    if len(parts) > document.MAX_BLOCKS:
        raise document.DocumentTooLarge(
            f"markdown: {len(parts):,} blocks; expected at most {document.MAX_BLOCKS:,}"
        )
    return [text_block(part) for part in parts]


def _formulas(markdown: str) -> list[re.Match[str]]:
    """Return the formulas between lines of `$$` that are in no fence: CommonMark would split them."""
    if "$$" not in markdown:
        return []
    fenced: list[tuple[int, int]] = []
    opened: tuple[str, int] | None = None
    offset = 0
    for line in markdown.splitlines(keepends=True):
        fence = _FENCE.match(line)
        if fence and opened is None:
            opened = fence[1], offset
        elif fence and opened and fence[1].startswith(opened[0]):
            fenced.append((opened[1], offset + len(line)))
            opened = None
        offset += len(line)
    if opened is not None:
        fenced.append((opened[1], len(markdown)))
    formulas = list(islice(_MATH.finditer(markdown), document.MAX_BLOCKS + 1))
    if len(formulas) > document.MAX_BLOCKS:
        raise document.DocumentTooLarge(f"markdown: expected at most {document.MAX_BLOCKS:,} blocks")
    edges = [edge for fence in fenced for edge in fence]
    return [match for match in formulas if bisect_right(edges, match.start()) % 2 == 0]


def _parts(text: str) -> list[str]:
    """Return a text in parts that a block may have."""
    if len(text) <= document.MAX_TEXT:
        return [text]
    parts = [""]
    for line in text.splitlines(keepends=True):
        for first in range(0, len(line), document.MAX_TEXT):
            piece = line[first : first + document.MAX_TEXT]
            if len(parts[-1]) + len(piece) > document.MAX_TEXT:
                parts.append("")
            parts[-1] += piece
    return [part for part in parts if part.strip()]
