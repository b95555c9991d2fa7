"""The pages about the code name files and rooms that exist, and all rooms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "runvitals"
MAP = ROOT / "docs" / "architecture.md"
PAGES = [MAP, *(ROOT / "docs" / "concepts" / f"{name}.md" for name in ("monitor", "relay", "security"))]
PATH = re.compile(r"`((?:[\w.]+/)+(?:[\w.]+)?|\w+\.py)`")


def paths() -> list[str]:
    texts = (page.read_text("utf-8") for page in PAGES)
    return sorted({path for text in texts for path in PATH.findall(text)})


@pytest.mark.parametrize("path", paths())
def test_paths_exist(path: str) -> None:
    assert (ROOT / path).exists() or (SOURCE / path).exists()


@pytest.mark.parametrize(
    ("heading", "room"),
    [("## Rooms", SOURCE), ("### Rooms of the server", SOURCE / "server")],
    ids=["all", "server"],
)
def test_every_room_is_in_the_table(heading: str, room: Path) -> None:
    table = MAP.read_text("utf-8").partition(heading + "\n")[2].partition("\n#")[0]
    cells = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    documented = [Path(name).name for cell in cells for name in re.findall(r"`([\w/]+)`", cell)]
    folders = [path.name for path in room.iterdir() if path.is_dir() and any(path.rglob("*.py"))]
    modules = (
        [path.stem for path in room.glob("[a-z]*.py") if path.stem != "version"] if room == SOURCE else []
    )
    assert sorted(documented) == sorted(folders + modules)
