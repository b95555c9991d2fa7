"""`runvitals docs`: the pages of the documentation in a terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.tools import guides

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]


def test_topics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "--json"]) == 0
    topics = {row["topic"]: row["title"] for row in json.loads(capsys.readouterr().out)}
    assert topics["guides/filters"].startswith("Find runs")
    assert topics["sources"]  # a page README.md
    assert main(["docs", "Filters"]) == 0
    assert capsys.readouterr().out == (ROOT / "docs" / "guides" / "filters.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        ("filter", "did you mean guides/filters"),
        ("wandb", "guides/receive-from/wandb, guides/send-to/wandb"),
        ("xyzzy", "lists the topics"),
        ("../CHANGELOG", "there is no page"),
        ("", "there is no page ''"),
    ],
)
def test_no_such_topic(topic: str, error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", topic]) == 1
    assert error in capsys.readouterr().err


def test_search(capsys: pytest.CaptureFixture[str]) -> None:
    found = guides.search("data LOADER slow")
    assert all(word in found[0].guide.text.lower() for word in ("data", "loader", "slow"))
    assert guides.search("alerts")[0].guide.topic == "guides/alerts"
    assert main(["docs", "--search", "xyzzy alerts"]) == 0
    assert capsys.readouterr().out == "no page has all of these words: xyzzy alerts\n"


def test_wheels_have_all_pages_of_folders() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    folders = {path.name for path in (ROOT / "docs").iterdir() if path.is_dir() and any(path.rglob("*.md"))}
    assert folders == {Path(source).name for source in included if not source.endswith(".md")}
    assert all(
        target == f"runvitals/guides/{source.removeprefix('docs/')}" for source, target in included.items()
    )
