"""The link check of `scripts/docs`, and the rewriting of links for the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts.docsite.links import problems
from scripts.docsite.pages import relinked

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]+)")


@pytest.mark.parametrize(
    "page", [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))], ids=lambda page: page.name
)
def test_pages_link_to_files_of_the_checkout(page: Path) -> None:
    links = _LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL))
    assert [link for link in links if not (page.parent / link).exists()] == []


def site(folder: Path, **pages: str) -> Path:
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text)
    return folder


def test_valid_links_pass(tmp_path: Path) -> None:
    first = '<a href="b.html#top">b</a><a href="#here" id="here"></a><a href="https://example.org">far</a>'
    assert problems(site(tmp_path, a=first, b='<h1 id="top">b</h1>')) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<a href="missing.html">', "a.html: link to missing.html, which does not exist"),
        ('<a href="b.html#no">', "a.html: link to b.html#no, a page without that anchor"),
        ('<img src="no.png">', "a.html: link to no.png, which does not exist"),
        (
            '<script src="https://cdn.example.org/x.js">',
            "a.html: loads https://cdn.example.org/x.js from another site",
        ),
        (
            '<link rel="stylesheet" href="//fonts.example.org/x">',
            "a.html: loads //fonts.example.org/x from another site",
        ),
    ],
)
def test_invalid_links_are_reported(tmp_path: Path, text: str, problem: str) -> None:
    assert problems(site(tmp_path, a=text, b="<p>")) == [problem]


def test_style_sheets_must_not_load_from_other_sites(tmp_path: Path) -> None:
    (tmp_path / "style.css").write_text("@font-face{src:url(https://fonts.example.org/a.woff2)}")
    assert problems(tmp_path) == ["style.css: loads from another site"]


def test_links_are_rewritten_for_the_site(tmp_path: Path) -> None:
    for name in ("docs/guides/mlflow.md", "docs/index.md", "benchmarks/RESULTS.md", "LICENSE"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    text = "[r](../../benchmarks/RESULTS.md#mlflow) [h](../index.md) [l](../../LICENSE) `[c](x)` [w](https://a.b)"
    page = relinked(text, tmp_path, "docs/guides/mlflow.md", "guides/mlflow.md")
    assert page == "[r](../results.md#mlflow) [h](../index.md) l `[c](x)` [w](https://a.b)"
    page = relinked("[m](../docs/guides/mlflow.md)", tmp_path, "benchmarks/RESULTS.md", "results.md")
    assert page == "[m](guides/mlflow.md)"
    with pytest.raises(ValueError, match=r"link to '\.\./gone\.py', which does not exist"):
        relinked("[x](../gone.py)", tmp_path, "docs/x.md", "x.md")
