"""`runvitals top`: a live view of this machine in the terminal, without a run."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Mapping
from typing import Any

from runvitals.monitoring.settings.settings import SETTINGS, resolve

_WIDTH = 120  # when the output is not a terminal


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals top`."""
    parser.description = (
        "Shows CPU, memory, disks, network, all accelerators and processes until you press q or "
        "Ctrl-C; h shows the keys. With --plain, or without the extra `tui`, a view without charts and keys. "
        "If the output is not a terminal, prints one snapshot as text. Respects NO_COLOR."
    )
    parser.add_argument("--plain", action="store_true", help="a view that only needs Python itself")
    parser.add_argument("--readonly", action="store_true", help="let no process be ended")
    parser.add_argument(
        "--interval", type=_interval, default=1.0, metavar="SECONDS", help="between updates; default: 1"
    )


def _interval(text: str) -> float:
    try:
        return float(SETTINGS["sampling_interval"].parse(text, "--interval"))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(arguments: argparse.Namespace) -> int:
    """Show this machine live, or print a snapshot if the output is no terminal; return the exit code."""
    from runvitals.terminal.top.plain_text import print_repeatedly, print_snapshot

    values = resolve({}, os.environ, os.getcwd())
    is_screen = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if is_screen and not arguments.plain:
        code = _interactive(values, arguments)
        if code is not None:
            return code
    if is_screen and hasattr(os, "posix_spawn"):
        print_repeatedly(values, arguments.interval, sys.stdout)
    print_snapshot(values, sys.stdout, shutil.get_terminal_size((_WIDTH, 0)).columns)
    return 0


def _interactive(values: Mapping[str, Any], arguments: argparse.Namespace) -> int | None:
    """Run leet's screen; None if the extra for it is not installed."""
    try:
        from runvitals.terminal.leet.config import Config
        from runvitals.terminal.leet.machine.machine_data import MachineData
        from runvitals.terminal.leet.machine.machine_screen import MachineApp
    except ModuleNotFoundError:
        return None
    from runvitals.terminal.leet.sources.run_source import now_ms

    data = MachineData(values, arguments.interval, platform.node(), now_ms)
    app = MachineApp(data, arguments.interval, arguments.readonly, Config.of_user(os.environ))
    return app.run_in_terminal(os.environ)
