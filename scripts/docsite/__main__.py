"""`python -m scripts.docsite build|serve`: stage the pages, then build and check the site, or serve it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from scripts.docsite import links, pages

ROOT = Path(__file__).resolve().parents[2]
STAGED = ROOT / "build" / "docs" / "pages"
SITE = ROOT / "build" / "docs" / "site"


def main(action: str) -> int:
    pages.stage(ROOT, STAGED)
    zensical = [str(Path(sys.executable).with_name("zensical")), action]
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
    print(f"the documentation is in {SITE / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if sys.argv[1:] else "build"))
