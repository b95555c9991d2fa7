"""Words that this project no longer uses, in names, comments and texts: plain English replaced them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [
    *sorted((ROOT / "src" / "runvitals").rglob("*.py")),
    *sorted(path for path in (ROOT / "web" / "src").rglob("*") if path.suffix in (".ts", ".svelte")),
]
RETIRED = re.compile(
    r"\b(errands?|bury|buried|thrown away|throws? away|(is|are|was|be) told|to be had|lets? in|far side"
    r"|courier|inquiry|films?)\b"
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_retired_word(path: Path) -> None:
    lines = enumerate(path.read_text().splitlines(), 1)
    assert [(number, line) for number, line in lines if RETIRED.search(line.replace("_", " "))] == []
