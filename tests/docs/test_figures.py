"""A cost in the documentation can be measured again: its paragraph names or links the benchmark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "reference"),
]
_FIGURE = r"\d[\d.,]* ?(?:µs|ms|kB|KiB|MB|MiB)\b"
# A cost of ours, not a limit such as "a tick waits at most 20 ms".
COST = re.compile(
    rf"\b(?:costs?|takes|took|adds)\b[^.|]{{0,40}}?{_FIGURE}"
    rf"|{_FIGURE} (?:of|more) (?:CPU|memory|a core)|CPU[^.|]{{0,30}}?{_FIGURE}"
)
LIMIT = re.compile(r"at most|no more than|longer than|within|limit")
MEASURED = re.compile(r"RESULTS\.md|scripts/bench|python -m benchmarks\.|`time runvitals ")


def paragraphs(text: str) -> list[str]:
    """The paragraphs and tables of a page; with the paragraph that follows a table, which explains it."""
    parts = re.split(r"\n\s*\n", re.sub(r"```.*?```", "", text, flags=re.S))
    return [
        part + (parts[n + 1] if part.startswith("|") and n + 1 < len(parts) else "")
        for n, part in enumerate(parts)
    ]


def unmeasured(text: str) -> list[str]:
    """The paragraphs that state a cost without saying what measures it."""
    return [
        part
        for part in paragraphs(text)
        if any(not LIMIT.search(cost[0]) for cost in COST.finditer(part)) and not MEASURED.search(part)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_cost_names_the_benchmark_that_gives_it(page: Path) -> None:
    assert unmeasured(page.read_text()) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("A row costs 10 µs.", 1),
        ("With cards: 0.1 ms of CPU for each card.", 1),
        ("It takes 4 s and 3 MB of memory.", 1),
        ("A row costs 10 µs (`scripts/bench overhead`).", 0),
        ("A tick waits at most 20 ms; a body may take at most 8 MiB.", 0),
        ("| log() | costs 18 µs |\n\nMeasured by `scripts/bench overhead`.", 0),
    ],
)
def test_costs_are_recognized(text: str, count: int) -> None:
    assert len(unmeasured(text)) == count
