"""`runvitals simulate`: write a simulated run."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from runvitals.base.signal_flag import SignalFlag
from runvitals.cli.argument_types import integer_between, number_between
from runvitals.cli.data_folder import add_dir, directory
from runvitals.cli.formatting import inert
from runvitals.monitoring.settings.settings import trace

if TYPE_CHECKING:
    from runvitals.tools.simulate import SimulationTotals

_MAX_NODES = 256
_MIN_HOURS, _MAX_HOURS = 1e-6, 24.0 * 31
MAX = "max"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals simulate`."""
    parser.description = (
        "Writes a run, marked as simulated, to a real journal: a training with data stalls, "
        "thermal throttling, a straggler, a rank that runs out of memory and, with several hosts, a host "
        "that is lost. The setting sampling_interval applies. Ctrl-C stops the run."
    )
    parser.add_argument(
        "--profile",
        default="h100x8",
        metavar="KIND[xN]",
        help="h100, a100, mi300x, trn2, v5e, m3, ipu or cpu, and the devices per host; default: h100x8",
    )
    parser.add_argument(
        "--nodes",
        type=integer_between(1, _MAX_NODES),
        default=1,
        metavar="N",
        help="number of hosts; default: 1",
    )
    parser.add_argument(
        "--hours",
        type=number_between(_MIN_HOURS, _MAX_HOURS),
        default=1.0,
        metavar="H",
        help="simulated duration; default: 1",
    )
    parser.add_argument(
        "--speed",
        type=_parse_speed,
        default=1.0,
        metavar="X",
        help="write live at X times real time, or `max` to write everything at once, ending now; default: 1",
    )
    parser.add_argument(
        "--seed", type=integer_between(0, 2**63 - 1), default=0, metavar="S", help="random seed; default: 0"
    )
    add_dir(parser)


def _parse_speed(text: str) -> float | str:
    """Return a speed, or `max`."""
    if text == MAX:
        return MAX
    return number_between(0.01, 100_000, f", or `{MAX}`")(text)


def run(arguments: argparse.Namespace) -> int:
    """Write a simulated run; return 1 for lost or undelivered records, 130 after Ctrl-C."""
    from runvitals.sdk.delivery import destinations
    from runvitals.tools.simulate import Profile, at_once, begin, pacer
    from runvitals.tools.simulate.delivery import Delivery

    profile = Profile.parse(arguments.profile)
    traced = trace({}, os.environ, os.getcwd())
    values = {name: value for name, (value, _) in traced.items()}
    if traced["project"][1] == "default":
        values["project"] = "simulated"
    speed = None if arguments.speed == MAX else arguments.speed
    began_s = time.monotonic()
    folder = directory(arguments)
    scenario_s = arguments.hours * 3600.0
    simulation = begin(profile, arguments.nodes, scenario_s, speed, arguments.seed, values, folder)
    run_id = simulation.location.run_id
    print(f"simulated run {run_id} of project {values['project']}, recorded in {inert(folder)}", flush=True)
    delivery = Delivery(simulation.location.folder, destinations(values))
    # A flag instead of an exception, which could interrupt the writing of a record.
    stop = SignalFlag()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    if speed is None:
        wait = at_once(simulation, stop, lambda: time.time_ns() // 1_000_000)
    else:
        wait = pacer(simulation.location.interval_s, stop)
    is_complete = simulation.play(wait)
    totals = simulation.end("finished" if is_complete else "stopped")
    delivery.close()
    print(_summary(totals, time.monotonic() - began_s, at_once=speed is None))
    if delivery.problem:
        print(f"runvitals: not delivered: {inert(delivery.problem)}", file=sys.stderr)
    return int(bool(totals.lost or delivery.problem)) if is_complete else 130


def _summary(totals: SimulationTotals, took_s: float, at_once: bool) -> str:
    """Return the counts of what was written, and the rate if it was written at once."""
    text = (
        f"{totals.samples:,} samples with {totals.values:,} values and {totals.rows:,} log() rows "
        f"in {took_s:.1f} s"
    )
    if at_once:
        text += f" ({totals.values / max(took_s, 1e-9) / 1e6:.2f} million values per second)"
    return f"{text}; {totals.lost} records could not be written" if totals.lost else text
