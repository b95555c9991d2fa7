"""`runvitals leet`: runs of this machine in the terminal, with charts."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from runvitals.cli.data_folder import add_dir, directory


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "leet",
        help="charts of the runs of this machine in the terminal, live",
        description="Shows metrics, system metrics, console output and facts of a run until you press q; h "
        "shows the keys. Respects NO_COLOR.",
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="PATH|RUN",
        help="a run id, a unique prefix of it, a name, `latest`, a run's folder or a data folder; default: "
        "the latest run that was started in the current folder, else the latest of all",
    )
    add_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    try:
        from runvitals.leet.app import LeetApp
        from runvitals.leet.opening import target
    except ModuleNotFoundError as error:
        print(f"runvitals: leet needs {error.name}: pip install 'runvitals[tui]'", file=sys.stderr)
        return 1
    wanted = target(arguments.target, directory(arguments), os.getcwd())
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("runvitals: leet needs a terminal; `runvitals show` prints a run as text", file=sys.stderr)
        return 1
    app = LeetApp(wanted)
    app.run()
    return app.return_code or 0
