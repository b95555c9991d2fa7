"""The example in `docs/reference/api.md`, section From Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.readers.journals.journals import Training

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "api.md"


def test_example_of_the_page_works(url: str, tmp_path: Path) -> None:
    match = re.search(r"## From Python\n.*?```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert match is not None
    training = Training(tmp_path, "brave-otter-1", gpus=1)
    training.advance(30)
    training.trainer.info(training.now_ms, summary={"loss": 0.1})
    reported: dict[str, Any] = {"print": lambda *words: reported.setdefault("printed", []).append(words)}
    exec(match[1].replace("http://127.0.0.1:8900", url), reported)
    reported["client"].close()
    assert reported["printed"][0] == ("brave-otter-1", "running", 0.1)
    assert reported["printed"][1][:2] == ("brave-otter-1", "node1")
    assert len(reported["watts"]) == 30
