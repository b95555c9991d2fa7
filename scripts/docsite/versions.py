"""The sites of several versions in one folder, as mike lays them out: the theme's list of versions reads it.

Each version has a folder, `latest` has a copy of the newest, and `versions.json` names them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from packaging.version import Version

LATEST = "latest"
_ENTRANCE = """<!doctype html>
<meta charset="utf-8">
<title>runvitals</title>
<meta http-equiv="refresh" content="0; url=latest/index.html">
<a href="latest/index.html">The documentation of the latest version</a>
"""


def add(site: Path, version: str, published: Path) -> None:
    """Put the site of a version among those of others; one that was there of this version is replaced."""
    published.mkdir(parents=True, exist_ok=True)
    _replace(site, published / version)
    found = [folder.name for folder in published.iterdir() if (folder / "index.html").is_file()]
    versions = sorted((name for name in found if name != LATEST), key=Version, reverse=True)
    newest = next((name for name in versions if not Version(name).is_prerelease), versions[0])
    _replace(published / newest, published / LATEST)
    listed = [
        {"version": name, "title": name, "aliases": [LATEST] if name == newest else []} for name in versions
    ]
    (published / "versions.json").write_text(json.dumps(listed, indent=2) + "\n")
    (published / "index.html").write_text(_ENTRANCE)
    (published / ".nojekyll").touch()  # GitHub Pages leaves out files whose names begin with `_` otherwise


def _replace(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
