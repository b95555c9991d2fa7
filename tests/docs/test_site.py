"""The documentation builds, loads nothing from other sites, and has a complete reference."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from scripts.docsite import commands, finding_pictures, links, pages, python_api, routes

import runvitals
from runvitals.cli.command_list import COMMANDS
from runvitals.findings.rules import RULES
from runvitals.monitoring.settings.settings import SETTINGS
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
RECENT = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="this machine has Python 3.10 and Zensical needs 3.11"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the configuration and all pages, to build the site in."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copyfile(ROOT / "mkdocs.yml", folder / "mkdocs.yml")
    pages.stage(ROOT, folder / "build" / "docs" / "pages")
    return folder


@RECENT
def test_site_builds_and_its_links_are_valid(folder: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    site = folder / "build" / "docs" / "site"
    assert links.problems(site) == []
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    for page in (folder / "build" / "docs" / "pages").rglob("*.md"):
        built_page = page.relative_to(folder / "build" / "docs" / "pages").with_suffix(".html")
        target = built_page.with_name("index.html") if page.name == "README.md" else built_page
        assert (site / target).is_file(), f"{target} was not built"
        name = page.relative_to(folder / "build" / "docs" / "pages").as_posix()
        assert name in navigation, f"{name} is missing from the navigation"


def test_every_command_is_in_the_reference() -> None:
    page = commands.page()
    assert [name for name in COMMANDS if f"\n## runvitals {name}\n" not in page] == []
    assert "\n### runvitals token create\n" in page


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_every_finding_has_a_small_picture(rule: str) -> None:
    picture = ElementTree.fromstring(finding_pictures.picture(rule))
    shaded = picture.find("rect")
    assert shaded is not None
    assert 0 <= float(shaded.attrib["x"]) < 640
    lines = picture.findall("path[@class='values']")
    assert 1 <= len(lines) <= 3
    assert all(len(line.attrib["d"].split("L")) > 20 for line in lines)
    assert rule in picture.attrib["aria-label"]
    assert len(ElementTree.tostring(picture)) < 15_000


def test_every_setting_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    assert [name for name in SETTINGS if f"| `{name}`<br>" not in page] == []


def test_every_route_and_type_is_in_the_reference() -> None:
    page, described = routes.page(), routes.document()
    calls = [(method.upper(), path) for path, calls in described["paths"].items() for method in calls]
    assert ("POST", "/api/v1/ingest") in calls
    assert [call for call in calls if f"### `{call[0]} {call[1]}`" not in page] == []
    for name in {part.split(")")[0] for part in page.split("](#")[1:]}:
        assert f"{{#{name}}}" in page, f"the page has no anchor {name}"


def test_every_public_name_is_in_the_reference(folder: Path) -> None:
    page = (folder / "build" / "docs" / "pages" / "reference" / "python.md").read_text("utf-8")
    assert [name for name in runvitals.__all__ if f"\n### runvitals.{name}\n" not in page] == []
    assert "project: str | None = None" in page
    for module in python_api.MODULES:
        assert f"\n## {module}\n" in page
        if module != "runvitals.mlflow":  # it needs MLflow
            importlib.import_module(module)
