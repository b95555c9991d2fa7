"""Collects the pages of the site: docs/, some files of the repository's root, and the generated reference."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from scripts.docsite import commands, findings, python_api, routes

FROM_THE_ROOT = {
    "benchmarks/RESULTS.md": "results.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Pages outside docs/, and their names in the site."""
_CODE_OR_LINK = re.compile(
    r"^(?P<fence>```|~~~).*?^(?P=fence)|`[^`\n]*`|\[(?P<text>[^\]]*)\]\((?P<address>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)",
    re.MULTILINE | re.DOTALL,
)


def stage(root: Path, target: Path) -> None:
    """Fill ``target`` with all pages of the site.

    Raises:
        ValueError: a page links to a file that does not exist.
    """
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(root / "docs", target)
    for source, name in FROM_THE_ROOT.items():
        shutil.copyfile(root / source, target / name)
    for page in sorted(target.rglob("*.md")):
        name = page.relative_to(target).as_posix()
        source = next((source for source, staged in FROM_THE_ROOT.items() if staged == name), f"docs/{name}")
        page.write_text(relinked(page.read_text("utf-8"), root, source, name), "utf-8")
    reference = target / "reference"
    (reference / "cli.md").write_text(commands.page(), "utf-8")
    (reference / "findings.md").write_text(findings.page(), "utf-8")
    (reference / "http.md").write_text(routes.page(), "utf-8")
    (reference / "python.md").write_text(python_api.page(root / "src"), "utf-8")


def relinked(text: str, root: Path, source: str, name: str) -> str:
    """A page with its links adapted to the site.

    In the repository, links are relative to the file. Links to files that are not part of the site are
    replaced by their text.

    Args:
        root: the repository.
        source: the page's path in the repository, to which its links are relative.
        name: its path in the site.
    """

    def relink(match: re.Match[str]) -> str:
        address = match["address"]
        if address is None or ":" in address:
            return match[0]
        file = os.path.normpath(os.path.join(os.path.dirname(source), address))
        if file in FROM_THE_ROOT:
            file = f"docs/{FROM_THE_ROOT[file]}"
        elif not file.startswith("docs/"):
            if not (root / file).exists():
                raise ValueError(f"{source}: link to {address!r}, which does not exist")
            return match["text"]
        target = os.path.relpath(file.removeprefix("docs/"), os.path.dirname(name) or ".")
        return f"[{match['text']}]({target}{match['anchor'] or ''})"

    return _CODE_OR_LINK.sub(relink, text)
