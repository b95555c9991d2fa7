"""docs/architecture.md names files and rooms that exist."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "runvitals"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PATHS = sorted(set(re.findall(r"`((?:[\w.]+/)+(?:[\w.]+)?|\w+\.py)`", PAGE)))


@pytest.mark.parametrize("path", PATHS)
def test_paths_exist(path: str) -> None:
    places = (ROOT, SOURCE, SOURCE / "server", SOURCE / "store", SOURCE / "collectors", SOURCE / "relay")
    assert any((place / path).exists() for place in places)


def test_rooms_match_the_import_contract() -> None:
    """The table lists the rooms in the order of the import contract."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [layer.split(" | ") for layer in settings["contracts"][0]["layers"]]
    floors = {room: len(layers) - 1 - place for place, layer in enumerate(layers) for room in layer}
    table = PAGE.partition("## Rooms and floors")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", table, re.MULTILINE)
    documented = {
        room.rstrip("/"): int(floor) for floor, rooms in rows for room in re.findall(r"`([\w/]+)`", rooms)
    }
    assert documented == floors
    top_level = {
        path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert set(floors) == top_level - {"__init__", "__main__", "version"}
