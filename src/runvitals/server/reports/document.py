"""What a report consists of: title, description and blocks of text, images and live panels."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from runvitals.model.names import shorten

MAX_BYTES: Final = 2 * 1024 * 1024
"""Of a document, as JSON."""
MAX_BLOCKS: Final = 2000
MAX_PANELS: Final = 200
MAX_RUN_SETS: Final = 20
"""In one block; a report may have ten times as many."""
MAX_RUNS: Final = 100
"""That a run set shows."""
MAX_TITLE: Final = 256
MAX_DESCRIPTION: Final = 2000
MAX_QUERIES: Final = 50
"""Metrics that one panel reads."""
MAX_TEXT: Final = 20_000
"""Characters of one block."""
_MAX_WORDS: Final = 100_000
"""Characters that searches look at."""

Document = dict[str, Any]
"""`title`, `description` and `blocks`, as JSON; blocks are as `routes.block_models` has them."""


class DocumentTooLarge(ValueError):
    """A document has more than it may."""


def document_of(title: str, description: str, blocks: Sequence[Mapping[str, Any]]) -> Document:
    """Return a document as it is stored.

    Args:
        blocks: each of them is valid.

    Raises:
        ValueError: ids are not unique, or there is too much of something. It names the limit.
    """
    _check_ids(blocks)
    document = {"title": title.strip(), "description": description.strip(), "blocks": list(blocks)}
    size = len(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))
    if size > MAX_BYTES:
        raise DocumentTooLarge(f"blocks: the report has {size:,} bytes; expected at most {MAX_BYTES:,}")
    return document


def panels_of(document: Document) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Iterate over the panels of a document, each with its block."""
    for block in document["blocks"]:
        if block["kind"] == "panels":
            for panel in block["panels"]:
                yield block, panel


def words_of(document: Document) -> str:
    """Return what a search finds a report by, in lower case."""
    texts = [document["title"], document["description"]]
    texts += [block["text"] for block in document["blocks"] if block["kind"] == "text"]
    texts += [block["caption"] for block in document["blocks"] if block["kind"] == "image"]
    texts += [panel["title"] for _, panel in panels_of(document)]
    return shorten("\n".join(text for text in texts if text).lower(), _MAX_WORDS)


def check_json(value: object, depth: int = 10) -> None:
    """Raise ValueError unless a value is JSON of finite numbers, not nested deeper than `depth`."""
    if depth == 0:
        raise ValueError("nested too deeply")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("expected finite numbers")
    children: Iterable[object] = ()
    if isinstance(value, Mapping):
        children = value.values()
    elif isinstance(value, list):
        children = value
    for child in children:
        check_json(child, depth - 1)


def _check_ids(blocks: Sequence[Mapping[str, Any]]) -> None:
    ids = [block["id"] for block in blocks]
    panels = [panel["id"] for block in blocks if block["kind"] == "panels" for panel in block["panels"]]
    for what, names, most in (("block", ids, MAX_BLOCKS), ("panel", panels, MAX_PANELS)):
        if len(names) > most:
            raise DocumentTooLarge(f"blocks: {len(names):,} {what}s; expected at most {most:,}")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"blocks: two {what}s have the id {twice!r}")
