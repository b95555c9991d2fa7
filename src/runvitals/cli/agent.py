"""`runvitals agent`: start the runs of a sweep."""

from __future__ import annotations

import argparse
import signal
import sys
from types import FrameType

from runvitals.base.terminal_text import inert
from runvitals.cli.argument_types import positive_integer


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals agent`."""
    parser.description = (
        "Starts the `program` of the sweep's configuration with the parameters that the server "
        "chooses, until the sweep is over. Several agents, on any machines, share the work."
    )
    parser.add_argument("sweep", metavar="SWEEP", help="[[entity/]project/]id")
    parser.add_argument("--count", type=positive_integer, metavar="N", help="how many runs at most")
    parser.add_argument("--project", help="default: as in the settings")
    parser.add_argument("--entity", help="team or user; default: as in the settings")


def run(arguments: argparse.Namespace) -> int:
    """Start runs of a sweep until it is over; return 1 if the sweep failed."""
    from runvitals.readers.servers.sweeps.agent import SweepFailed
    from runvitals.readers.servers.sweeps.functions import agent

    signal.signal(signal.SIGTERM, _interrupt)
    try:
        agent(arguments.sweep, entity=arguments.entity, project=arguments.project, count=arguments.count)
    except SweepFailed as error:
        print(f"runvitals: {inert(str(error))}", file=sys.stderr)
        return 1
    return 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    """End with the program, which would otherwise go on without the agent."""
    raise KeyboardInterrupt
