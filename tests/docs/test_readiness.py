"""The page about `/readyz` quotes what the server says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operations/readiness.md").read_text(encoding="utf-8")
OF_SQLITE = {"disk is full", "database is locked", "attempt to write a readonly database"}
QUOTED = [
    text for line in PAGE.splitlines() if line.startswith("### ") for text in re.findall('"([^"]+)"', line)
]


@pytest.fixture(scope="module")
def source() -> str:
    texts = [
        path.read_text()
        for room in ("server", "store")
        for path in (ROOT / "src/runvitals" / room).rglob("*.py")
    ]
    return re.sub(r'"\s+f?"', "", "".join(texts))  # strings that are continued in the next line


@pytest.mark.parametrize("text", sorted({*QUOTED} - OF_SQLITE))
def test_a_quoted_text_is_one_of_the_server(text: str, source: str) -> None:
    assert text in source
