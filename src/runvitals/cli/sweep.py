"""`runvitals sweep`: make a sweep, or pause, resume and end one."""

from __future__ import annotations

import argparse

from runvitals.cli.formatting import inert

_ORDERS = {
    "pause": "agents get no runs",
    "resume": "agents get runs again",
    "stop": "agents end after their runs",
    "cancel": "agents end with their runs",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals sweep`."""
    parser.description = (
        "Make a sweep from a file and print its id; `runvitals agent` then starts its runs. With "
        "--pause, --resume, --stop or --cancel, control one. Works with the server of the settings."
    )
    parser.add_argument(
        "sweep", metavar="FILE_OR_SWEEP", help="a YAML or JSON file; with an option: [[entity/]project/]id"
    )
    orders = parser.add_mutually_exclusive_group()
    for order, text in _ORDERS.items():
        orders.add_argument(f"--{order}", dest="order", action="store_const", const=order, help=text)
    parser.add_argument("--name", help="what to call it")
    parser.add_argument("--project", help="default: as in the file, else as in the settings")
    parser.add_argument("--entity", help="team or user; default: as in the file, else as in the settings")


def run(arguments: argparse.Namespace) -> int:
    """Make a sweep and print its id, or control one; return 0."""
    from runvitals.readers.servers.sweeps import functions

    if arguments.order is None:
        sweep_id = functions.sweep(arguments.sweep, arguments.entity, arguments.project, name=arguments.name)
        print(inert(sweep_id))
        return 0
    changed = functions.control(arguments.sweep, arguments.order, arguments.entity, arguments.project)
    print(inert(f"{changed['id']} is {changed.get('state')}"))
    return 0
