"""`python -m scripts.docsite build|serve|publish FOLDER`: stage the pages, then build and check the site.

`serve` shows it instead; `publish` also puts it into a folder with the sites of other versions.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import runvitals
from scripts.docsite import links, pages, versions

ROOT = Path(__file__).resolve().parents[2]
STAGED = ROOT / "build" / "docs" / "pages"
SITE = ROOT / "build" / "docs" / "site"


def main(action: str = "build", published: str = "") -> int:
    pages.stage(ROOT, STAGED)
    zensical = [str(Path(sys.executable).with_name("zensical")), "serve" if action == "serve" else "build"]
    if action == "serve":
        return subprocess.call(zensical, cwd=ROOT)
    built = subprocess.run([*zensical, "--strict", "--clean"], cwd=ROOT, capture_output=True, text=True)
    if built.returncode:
        print(built.stdout, built.stderr, sep="\n", file=sys.stderr)
        return built.returncode
    problems = links.problems(SITE)
    if problems:
        print(*problems, sep="\n", file=sys.stderr)
        return 1
    if action == "publish":
        versions.add(SITE, runvitals.__version__, Path(published))
    print(f"the documentation is in {(Path(published) if action == 'publish' else SITE) / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
