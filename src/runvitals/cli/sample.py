"""`runvitals sample`: one reading of this machine."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from runvitals.collectors import sources
from runvitals.collectors.base import Scope, Tick
from runvitals.collectors.selection import Selection
from runvitals.sdk.settings import Settings, resolve

if TYPE_CHECKING:
    from runvitals.collectors.base import Collector

# Between the two readings that rates and percentages need; shorter than this, a CPU's 10 ms ticks are too
# coarse.
_BETWEEN_S = 0.5
# How long drivers and tools that are slow to start have for their first answer.
_PATIENCE_S = 10.0


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
        print(json.dumps(reading, indent=1, allow_nan=False))
        return 0
    _print_table(reading)
    return 0


def read_once(values: dict[str, Any]) -> dict[str, Any]:
    """One reading: time, metrics (key → value; of counters the total so far, as the source counts), what each
    source has to say, and, where some tell of their devices, `machine`.
    """
    scope = Scope(
        values["host_root"],
        [os.getpid()],
        values["process_tree"],
        values["disk_paths"],
        _BETWEEN_S,
        values,
    )
    selection = Selection(values["collectors"])
    site_folders = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    found = sources.probe_all(scope, selection, site_folders)
    metrics: dict[str, float] = {}
    failures: dict[str, dict[str, str]] = {}
    until_s = time.monotonic() + _PATIENCE_S
    readings = 0
    while readings < 2 or (_is_pending(found.collectors) and time.monotonic() < until_s):
        time.sleep(_BETWEEN_S / 2)
        tick = Tick(time.monotonic())
        failures = _sample(found.collectors, tick)
        metrics = {**metrics, **tick.gauges, **tick.counters}
        readings += 1
    states = {**found.states(selection), **failures}
    facts: dict[str, Any] = {}
    for collector in found.collectors:
        facts.update(getattr(collector, "facts", None) or {})
        sources.close(collector, _shrug)
    known = {key: value for key, value in sorted(metrics.items()) if math.isfinite(value)}
    reading = {"t": time.time_ns() // 1_000_000, "metrics": known, "sources": states}
    return {**reading, "machine": facts} if facts else reading


def _sample(collectors: Iterable[Collector], tick: Tick) -> dict[str, dict[str, str]]:
    """One reading of all into the tick; the states of those that failed."""
    failures = {}
    for collector in collectors:
        try:
            collector.sample(tick)
        except Exception as error:  # noqa: BLE001 - one broken source must not hide the others; it is shown with its reason
            reason = f"{type(error).__name__}: {error}"
            failures[collector.name] = {"state": "failing", "reason": reason}
    return failures


def _is_pending(collectors: Iterable[Collector]) -> bool:
    return any(getattr(collector, "pending", False) for collector in collectors)


def _shrug(name: str, error: Exception | None) -> None:
    """The reading is taken: what a source could not give back ends with this process."""


def _print_table(reading: dict[str, Any]) -> None:
    from runvitals.catalog import CATALOG

    width = max((len(key) for key in reading["metrics"]), default=0)
    for key, value in reading["metrics"].items():
        match = CATALOG.find(key)
        unit = match.metric.unit.removeprefix("1") if match is not None else ""
        print(f"{key:<{width}}  {value:>16,.2f} {unit}".rstrip())
    for name, source in reading["sources"].items():
        if "reason" in source:
            print(f"{name}: {source['state']}, {source['reason']}")
