"""docs/architecture.md names files and packages that exist."""

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


def test_packages_match_the_import_contract() -> None:
    """The table lists the packages in the layers of the import contract."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [layer.split(" | ") for layer in settings["contracts"][0]["layers"]]
    numbers = {name: len(layers) - 1 - index for index, layer in enumerate(layers) for name in layer}
    table = PAGE.partition("## Packages and layers")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", table, re.MULTILINE)
    documented = {
        name.rstrip("/"): int(layer) for layer, names in rows for name in re.findall(r"`([\w/]+)`", names)
    }
    assert documented == numbers
    top_level = {
        path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert set(numbers) == top_level - {"__init__", "__main__", "version"}
