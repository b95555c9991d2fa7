"""`runvitals sample`: one reading of this machine."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from runvitals.cli.terminal import inert
from runvitals.sdk.reading import Reading, read_once
from runvitals.sdk.settings import Settings, resolve


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("sample", help="one reading of everything on this machine")
    parser.add_argument(
        "--json", action="store_true", help='as JSON: {"metrics": {key: value, …}, "sources": …}'
    )
    parser.add_argument(
        "--host-root", help="where the host's /proc, /sys and disks lie (RUNVITALS_HOST_ROOT)"
    )
    parser.add_argument(
        "--disk-paths", help="file systems to read, with commas between them (RUNVITALS_DISK_PATHS)"
    )


def run(arguments: argparse.Namespace) -> int:
    given = Settings(host_root=arguments.host_root, disk_paths=arguments.disk_paths).given
    reading = read_once(resolve(given, os.environ, os.getcwd()))
    if arguments.json:
        print(json.dumps(_as_json(reading), indent=1, allow_nan=False))
        return 0
    _print_table(reading)
    return 0


def _as_json(reading: Reading) -> dict[str, Any]:
    """`machine` only where some source tells of its devices."""
    metrics = dict(sorted(reading.metrics.items()))
    value = {"t": reading.time_ms, "metrics": metrics, "sources": reading.states}
    return {**value, "machine": reading.machine} if reading.machine else value


def _print_table(reading: Reading) -> None:
    from runvitals.catalog import CATALOG

    width = max((len(key) for key in reading.metrics), default=0)
    for key, value in sorted(reading.metrics.items()):
        match = CATALOG.find(key)
        unit = match.metric.unit.removeprefix("1") if match is not None else ""
        print(f"{key:<{width}}  {value:>16,.2f} {unit}".rstrip())
    for name, source in reading.states.items():
        if "reason" in source:
            print(inert(f"{name}: {source['state']}, {source['reason']}"))
