"""Artifacts in the journals of a machine: versions lead to their files and to the runs that used them."""

from __future__ import annotations

import base64
from pathlib import Path

import httpx
import pytest

import runvitals
from tests.patience import PATIENCE_S
from tests.server.browser import Browser, keep_picture
from tests.server.pages.test_page import EVIL, browser, page, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC"
)


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A run that logged two versions, and one that used one of them."""
    how = {"project": "digits", "dir": str(tmp_path), "mode": "offline", "reinit": True}
    with runvitals.init(id="maker", **how) as run:  # type: ignore[arg-type]
        for rows in (1, 2):
            artifact = runvitals.Artifact("mnist", "dataset", "handwritten digits")
            for number in range(rows):
                with artifact.new_file(f"train/part-{number}.txt") as file:
                    file.write(f"line {number} {EVIL}\n")
            with artifact.new_file("picture.png", mode="wb") as file:
                file.write(PNG)
            artifact.add_reference("s3://bucket/raw.tar")
            run.log_artifact(artifact)
    with runvitals.init(id="user", **how) as run:  # type: ignore[arg-type]
        run.use_artifact("mnist:v0")
    return tmp_path


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_version_is_a_link_to_its_files(
    trained: Path,
    page: Browser,  # noqa: F811
    width: int,
    dark: bool,
) -> None:
    page.resize(width, 900, dark)
    page.open("/runs/maker/artifacts")
    click(page, "main a", "mnist:v1")
    page.wait("location.search == '?version=mnist%3Av1'")
    shown(page, "train/part-1.txt")
    shown(page, "s3://bucket/raw.tar")
    shown(page, "not used by another run yet")
    click(page, "main li button", "train/part-1.txt")
    shown(page, f"line 1 {EVIL}")
    click(page, "main li button", "picture.png")
    page.wait("document.querySelector('main li img')?.naturalWidth == 10")
    keep_picture(page, f"artifact-{width}")
    href = page.evaluate("document.querySelector('main a[download]').href")
    response = httpx.get(href, timeout=PATIENCE_S)
    assert response.headers["content-disposition"].startswith("attachment")
    page.evaluate("history.back()")
    page.wait("!document.querySelector('ul[aria-label^=\"Files of\"]')")
    click(page, "main a", "mnist:v0")
    click(page, "main p a", "user")
    page.wait("location.pathname == '/runs/user/artifacts'")
    shown(page, "Used")
    shown(page, "mnist:v0")


def test_the_artifacts_of_a_project_are_listed(trained: Path, page: Browser) -> None:  # noqa: F811
    page.open("/projects/digits")
    click(page, "main a", "Artifacts")
    shown(page, "mnist")
    click(page, "main table a", "mnist")
    click(page, "main table a", "mnist:v0")
    shown(page, "train/part-0.txt")
    keep_picture(page, "project-artifacts")
    base = f"{page.base}/api/v1/projects/digits/artifacts"
    for path, text in (
        ("none", "there is no artifact 'none'"),
        ("mnist/v9", "there is no artifact"),
        ("mnist/v0/content?path=../../x", "has no file"),
    ):
        response = httpx.get(f"{base}/{path}", timeout=PATIENCE_S)
        assert response.status_code == 404
        assert text in response.json()["error"]
