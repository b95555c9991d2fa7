"""Pages with the same charts in other libraries, which npm installs for the measurement only."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

PAGES = Path(__file__).with_name("pages")
INSTALL_LIMIT_S = 300


class Peer(NamedTuple):
    """A chart library.

    Args:
        name: of its page.
        package: on npm.
        script: its smallest whole build, in the package.
    """

    name: str
    title: str
    package: str
    script: str


PEERS = (
    Peer("echarts", "ECharts", "echarts", "dist/echarts.min.js"),
    Peer("plotly", "Plotly", "plotly.js-basic-dist-min", "plotly-basic.min.js"),
)


def install(peer: Peer, folder: Path) -> str:
    """Put the page of a library into a folder, with the library. Returns its version.

    Raises:
        SystemExit: npm is missing or fails.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is not on PATH: --no-peers measures without it")
    packages = folder / "packages"
    command = [
        npm,
        "install",
        "--prefix",
        str(packages),
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        peer.package,
    ]
    subprocess.run(command, check=True, stdout=sys.stderr, timeout=INSTALL_LIMIT_S)
    package = packages / "node_modules" / peer.package
    shutil.copy(package / peer.script, folder / "library.js")
    for name in (f"{peer.name}.html", f"{peer.name}.js", "common.js"):
        shutil.copy(PAGES / name, folder / name)
    version: str = json.loads((package / "package.json").read_text())["version"]
    return version
