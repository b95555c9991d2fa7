"""`runvitals leet`: runs in the terminal, with charts."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING

from runvitals.base.terminal_text import inert
from runvitals.cli.data_folder import add_dir, directory
from runvitals.cli.quick_start import for_imports
from runvitals.monitoring.settings.settings import resolve

if TYPE_CHECKING:
    from runvitals.cli import IntermixedParser
    from runvitals.terminal.leet.opening import OpeningTarget


def add(parser: IntermixedParser) -> None:
    """Add the arguments of `runvitals leet`."""
    parser.description = (
        "Shows metrics, system metrics, console output and facts of a run until you press q; h "
        "shows the keys. Respects NO_COLOR."
    )
    parser.intermixes = True
    parser.add_argument(
        "words",
        nargs="*",
        metavar="[inspect] PATH|RUN|URL, or config",
        help="a run id, a unique prefix of it, a name, `latest`, a run's folder, a data folder, a `.wandb` "
        "file or a folder of them, or the address of a server, a project or a run; default: the latest run "
        "that was started in the current folder, else the latest of all. `inspect` shows its records, "
        "`config` changes colours, grids and so on",
    )
    parser.add_argument(
        "--json", action="store_true", help="inspect: print a JSON object per record, or of the summary"
    )
    parser.add_argument(
        "--summary",
        action="store_true",
        help="inspect: print state, newest values, configuration and the end of the output",
    )
    parser.add_argument(
        "-f", "--follow", action="store_true", help="inspect: go on with what is written while the run runs"
    )
    parser.add_argument(
        "--replay",
        type=str,
        metavar="SPEED",
        help="show the run from its start on, this much faster than it was: 10x. Space pauses, { and } seek",
    )
    add_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show runs, records or settings in the terminal; return the exit code."""
    words = list(arguments.words)
    problem = _problem(arguments)
    if problem:
        print(f"runvitals: {inert(problem)}", file=sys.stderr)
        return 2
    if words == ["config"]:
        return _configure()
    inspects = words[:1] == ["inspect"]
    words = words[1:] if inspects else words
    with for_imports():
        from runvitals.terminal.leet.opening import Surroundings, target

        if not inspects:
            from runvitals.terminal.leet.app import LeetApp
            from runvitals.terminal.leet.config import Config
            from runvitals.terminal.leet.images.terminal_graphics import graphics
            from runvitals.terminal.leet.replay import speed_of
    server = resolve({}, os.environ, os.getcwd())["server"]
    around = Surroundings(directory(arguments), os.getcwd(), server, os.environ)
    opened = target(words[0] if words else None, around)
    is_terminal = _is_screen()
    if inspects:
        on_screen = is_terminal and not (arguments.json or arguments.summary)
        return _inspect(opened, on_screen, arguments)
    if not is_terminal:
        why = ", which TERM=dumb is not" if os.environ.get("TERM") == "dumb" else ""
        print(
            f"runvitals: leet needs a terminal{why}; `runvitals show` prints a run as text", file=sys.stderr
        )
        return 1
    config = Config.of_user(os.environ)
    if not words and config["startup"] == "list":
        opened = opened._replace(run_id=None)
    speed = None if arguments.replay is None else speed_of(arguments.replay)
    terminal_graphics = graphics(str(config["images"]), os.environ)
    app = LeetApp(opened, config=config, environ=os.environ, replay_speed=speed, graphics=terminal_graphics)
    return app.run_in_terminal(os.environ)


def _problem(arguments: argparse.Namespace) -> str:
    """Return the error of arguments that exclude each other; "" if all fit together."""
    words = list(arguments.words)
    inspects = words[:1] == ["inspect"]
    if words[:1] == ["config"] and words != ["config"]:
        return f"`leet config` takes no further words: {' '.join(words[1:])}"
    if len(words) > 1 + inspects:
        runs = words[inspects:]
        return f"expected one run, not {len(runs)}: {' '.join(runs)}"
    if not inspects and (arguments.json or arguments.follow or arguments.summary):
        return "--json, --follow and --summary belong to `runvitals leet inspect`"
    if inspects and arguments.replay is not None:
        return "--replay belongs to `runvitals leet`, not to `runvitals leet inspect`"
    if arguments.summary and arguments.follow:
        return "expected one of --summary and --follow, not both"
    return ""


def _is_screen() -> bool:
    """Return whether input and output are a terminal that can move its cursor."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _inspect(opened: OpeningTarget, on_screen: bool, arguments: argparse.Namespace) -> int:
    from runvitals.terminal.leet.inspection import print_records, print_summary, source_of

    source = source_of(opened)
    try:
        if arguments.summary:
            print_summary(source, sys.stdout, arguments.json)
            return 0
        if not on_screen:
            print_records(source, sys.stdout, arguments.follow)
            return 0
        from runvitals.terminal.leet.config import Config
        from runvitals.terminal.leet.inspect_screen import InspectApp

        app = InspectApp(source, arguments.follow, config=Config.of_user(os.environ))
        return app.run_in_terminal(os.environ)
    finally:
        source.close()
        opened.catalogue.close()


def _configure() -> int:
    """Change the configuration on the screen, or print it as JSON."""
    from runvitals.terminal.leet.config import Config
    from runvitals.terminal.leet.config_screen import ConfigApp

    config = Config.of_user(os.environ)
    if not _is_screen():
        print(json.dumps(config.as_dict(), indent=1))
        return 0
    app = ConfigApp(config)
    return app.run_in_terminal(os.environ)
