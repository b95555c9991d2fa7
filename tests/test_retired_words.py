"""Words that this project no longer uses, in names, comments and texts: plain English replaced them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = [
    *sorted((ROOT / "src" / "runvitals").rglob("*.py")),
    *sorted(path for path in (ROOT / "web" / "src").rglob("*") if path.suffix in (".ts", ".svelte")),
]
RETIRED = re.compile(
    r"\b(errands?|bury|buried|thrown away|throws? away|(is|are|was|be) told|to be had|lets? in|far side"
    r"|courier|inquiry|films?)\b"
)


def test_no_retired_word() -> None:
    lines = (
        (path.relative_to(ROOT).as_posix(), number, line)
        for path in FILES
        for number, line in enumerate(path.read_text().splitlines(), 1)
    )
    assert [line for line in lines if RETIRED.search(line[2].replace("_", " "))] == []
