"""`runvitals sample`: read this machine's metrics once, or repeatedly."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from runvitals.base.terminal_text import fitting, raw
from runvitals.cli.argument_types import joined_setting, number_between
from runvitals.cli.formatting import moment
from runvitals.monitoring.settings.settings import Settings, resolve
from runvitals.sdk.probe import MachineReading, read_once, watch

# Move the cursor to the top left and clear the screen below it.
_HOME = "\x1b[H\x1b[J"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals sample`."""
    parser.add_argument(
        "--json", action="store_true", help='as JSON: {"metrics": {key: value, …}, "sources": …}'
    )
    parser.add_argument(
        "--watch",
        nargs="?",
        type=number_between(0.1, 3600),
        const=1.0,
        metavar="SECONDS",
        help="repeat every SECONDS (default: 1); with --json, print one line per sample",
    )
    parser.add_argument(
        "--host-root", help="where the host's /proc, /sys and disks are mounted (RUNVITALS_HOST_ROOT)"
    )
    parser.add_argument(
        "--disk-paths",
        action="append",
        help="file systems to read, comma-separated (RUNVITALS_DISK_PATHS)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print a reading of this machine, once or repeatedly; return 0."""
    disk_paths = joined_setting("disk_paths", arguments.disk_paths)
    chosen = Settings(host_root=arguments.host_root, disk_paths=disk_paths).given
    values = resolve(chosen, os.environ, os.getcwd())
    if arguments.watch is None:
        reading = read_once(values)
        print(json.dumps(_as_json(reading), indent=1, allow_nan=False) if arguments.json else _text(reading))
        return 0
    for reading in watch(values, arguments.watch):
        if arguments.json:
            print(json.dumps(_as_json(reading), allow_nan=False), flush=True)
        else:
            if sys.stdout.isatty():
                raw(sys.stdout).write(_HOME)
            print(f"{moment(reading.time_ms)} UTC\n\n{_text(reading)}\n", flush=True)
    return 0


def _as_json(reading: MachineReading) -> dict[str, Any]:
    """Return a reading for JSON; `machine` is included only if a source reports its devices."""
    metrics = dict(sorted(reading.metrics.items()))
    value = {"t": reading.time_ms, "metrics": metrics, "sources": reading.states}
    return {**value, "machine": reading.machine} if reading.machine else value


def _text(reading: MachineReading) -> str:
    from runvitals.cli.sample_text import lines  # imports all metric definitions, not needed for JSON

    return fitting("\n".join(lines(reading)), sys.stdout)
