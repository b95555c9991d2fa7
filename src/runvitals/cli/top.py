"""`runvitals top`: a live view of this machine in the terminal, without a run."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from typing import Any

from runvitals.sdk.settings import SETTINGS, resolve

_WIDTH = 120  # when the output is not a terminal


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "top",
        help="live view of this machine in the terminal, without a run",
        description="Shows CPU, memory, disks, network, all accelerators and the busiest processes until you "
        "press q or Ctrl-C. If the output is not a terminal, prints one snapshot as text. Respects NO_COLOR.",
    )
    parser.add_argument(
        "--interval", type=_interval, default=1.0, metavar="SECONDS", help="between updates; default: 1"
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
