"""Released clients of wandb against our server: whether all arrives, and the server's CPU.

    scripts/bench clients [--rows 20000] [--version 0.16.6]

Each version is installed in an environment of its own (`build/clients`) and runs `wandb_session.py` against a
server of its own. Ends with 1 if one of them read back something else than it had logged.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.ingest import server
from benchmarks.store.measure import cpu_s

ROOT: Final = Path(__file__).parents[2]
SESSION: Final = Path(__file__).with_name("wandb_session.py")
NEWEST: Final = "newest"
VERSIONS: Final[Mapping[str, Sequence[str]]] = {
    "0.16.6": ("wandb==0.16.6", "setuptools<81", "numpy<2"),
    "0.19.11": ("wandb==0.19.11",),
    "0.22.3": ("wandb==0.22.3",),
    "0.28.0": ("wandb==0.28.0",),
    NEWEST: ("wandb",),
}
KEY: Final = "0123456789" * 4
FINISHED: Final = {"ordered": True, "state": "finished"}
WAIT_S: Final = 900


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000, help="of the large run (default: 20000)")
    parser.add_argument(
        "--version", choices=tuple(VERSIONS), action="append", help="repeatable; default: all"
    )
    options = parser.parse_args()
    print("| wandb | rows | CPU of the server, s | what it read back |")
    print("|---|---|---|---|")
    wrong = 0
    for version in options.version or VERSIONS:
        session_result, used_s = session(python_of(version), options.rows)
        problems = differences(session_result, options.rows)
        wrong += bool(problems)
        outcome = "; ".join(problems) or "what it had logged"
        print(f"| {session_result['version']} | {options.rows:,} | {used_s:.1f} | {outcome} |", flush=True)
    sys.exit(wrong > 0)


def python_of(version: str) -> str:
    """The Python of an environment that has a version of wandb, which is installed if it is missing."""
    packages = VERSIONS[version]
    command = [str(ROOT / "scripts" / "old-client"), *packages]
    python = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    if version == NEWEST:
        update = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
        subprocess.run([*update, *packages], check=True, stdout=sys.stderr)
    return python


def session(python: str, rows: int) -> tuple[dict[str, Any], float]:
    """Return what a client read back, and the CPU time of the server."""
    with tempfile.TemporaryDirectory() as folder, server.serving(f"{folder}/store") as (pid, port):
        home = f"{folder}/home"
        os.mkdir(home)
        environment = {
            **{name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ},
            **dict.fromkeys(("HOME", "WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "TMPDIR"), home),
            "WANDB_ERROR_REPORTING": "false",
            "WANDB_BASE_URL": f"http://127.0.0.1:{port}",
            "WANDB_API_KEY": KEY,
        }
        before_s = cpu_s(pid)
        printed = subprocess.run(
            [python, str(SESSION), str(rows)],
            env=environment,
            cwd=home,
            check=True,
            stdout=subprocess.PIPE,
            timeout=WAIT_S,
        ).stdout
        return json.loads(printed.splitlines()[-1]), cpu_s(pid) - before_s


def differences(result: dict[str, Any], rows: int) -> list[str]:
    """Return what a client read that it had not logged."""
    expected: dict[str, Any] = {
        "large": {"rows": rows, **FINISHED},
        "begun again": {"rows": 3, **FINISHED},
        "resumed": {"rows": 5, **FINISHED},
        "sent twice": {"rows": 50, **FINISHED},
        "artifact": "kept",
    }
    return [f"{name}: {result[name]}" for name, value in expected.items() if result[name] != value]


if __name__ == "__main__":
    main()
