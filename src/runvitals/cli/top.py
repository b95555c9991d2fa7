"""`runvitals top`: this machine in the terminal, live, without a run."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from typing import Any

from runvitals.sdk.settings import SETTINGS, resolve

_WIDTH = 120  # of lines that no terminal shows


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "top",
        help="this machine in the terminal, live, without a run",
        description="CPU, memory, disks, network, every accelerator and the heaviest processes, until q or "
        "Ctrl-C. Where the output is no terminal: once, as lines of text. NO_COLOR is respected.",
    )
    parser.add_argument(
        "--interval", type=_interval, default=1.0, metavar="SECONDS", help="between two looks; default: 1"
    )


def _interval(text: str) -> float:
    try:
        return float(SETTINGS["sampling_interval"].parse(text, "--interval"))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(arguments: argparse.Namespace) -> int:
    from runvitals.top import live, snapshot

    values = resolve({}, os.environ, os.getcwd())
    is_screen = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if is_screen and hasattr(os, "posix_spawn"):
        return live(values, arguments.interval)
    snapshot(values, sys.stdout, shutil.get_terminal_size((_WIDTH, 0)).columns)
    return 0
