"""The documentation of several versions in one folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scripts.docsite import versions


@pytest.fixture
def published(tmp_path: Path) -> Path:
    for version in ("0.9.0", "0.10.0", "0.11.0rc1", "0.9.0"):  # one is published again
        site = tmp_path / "site"
        site.mkdir(exist_ok=True)
        (site / "index.html").write_text(f"of {version}")
        versions.add(site, version, tmp_path / "published")
    return tmp_path / "published"


def test_the_list_names_each_version_once_and_the_newest_that_is_no_candidate_is_latest(
    published: Path,
) -> None:
    listed = json.loads((published / "versions.json").read_text())
    assert [entry["version"] for entry in listed] == ["0.11.0rc1", "0.10.0", "0.9.0"]
    assert [entry["version"] for entry in listed if "latest" in entry["aliases"]] == ["0.10.0"]


def test_each_version_keeps_its_pages_and_the_entrance_leads_to_the_latest(published: Path) -> None:
    found = {
        folder.name: (folder / "index.html").read_text() for folder in published.iterdir() if folder.is_dir()
    }
    assert found == {
        "0.9.0": "of 0.9.0",
        "0.10.0": "of 0.10.0",
        "0.11.0rc1": "of 0.11.0rc1",
        "latest": "of 0.10.0",
    }
    assert "latest/index.html" in (published / "index.html").read_text()
