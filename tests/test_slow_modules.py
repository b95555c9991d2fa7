"""tests/slow_modules.txt names modules that exist: `scripts/slow-tests` writes it again."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import slow_modules

ROOT = Path(__file__).parents[1]


def test_each_slow_module_exists() -> None:
    missing = [path for path in slow_modules() if not (ROOT / path).is_file()]
    assert missing == [], "rename or remove these lines of tests/slow_modules.txt"
