"""`runvitals run -- CMD`: record any command as a run."""

from __future__ import annotations

import argparse
import os
import sys

from runvitals.cli import WrongUsage
from runvitals.cli.argument_types import joined_setting
from runvitals.monitoring.settings.settings import SETTINGS, Settings, trace

_OPTIONS = tuple(name for name in SETTINGS if name not in ("quiet", "console"))


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals run`."""
    parser.description = (
        "Run a command and record the machine's metrics meanwhile. Signals are forwarded to the "
        "command, and its exit code is returned."
    )
    parser.usage = "runvitals run [options] -- CMD …"
    for name in _OPTIONS:
        setting = SETTINGS[name]
        flags = ["--" + name.replace("_", "-")] + (["--id"] if name == "run_id" else [])
        parser.add_argument(
            *flags,
            dest=name,
            action="append",
            metavar="VALUE",
            help=f"{setting.text} ({setting.allowed}; {setting.variable})",
        )
    parser.add_argument(
        "--console", action="store_true", default=None, help="also record the command's output"
    )
    parser.add_argument("--quiet", action="store_true", default=None, help="print only warnings to stderr")
    parser.add_argument(
        "words", nargs=argparse.REMAINDER, metavar="-- CMD …", help="the command and its arguments"
    )


def run(arguments: argparse.Namespace) -> int:
    """Record a command as a run; return the exit code of the command."""
    if not hasattr(os, "posix_spawn"):
        raise OSError(
            f"`runvitals run` is not supported on {sys.platform} yet; runvitals.init() records log() rows"
        )
    from runvitals.sdk.data_folder import working_folder
    from runvitals.sdk.delivery import check_kinds
    from runvitals.sdk.run_command import run_command
    from runvitals.sdk.source_names import check_collectors

    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if not words:
        raise WrongUsage("no command given; usage: runvitals run [options] -- CMD …")
    options = {name: joined_setting(name, getattr(arguments, name)) for name in _OPTIONS}
    chosen = Settings(**options, quiet=arguments.quiet, console=arguments.console).given
    traced = trace(chosen, os.environ, working_folder())
    values = {name: value for name, (value, _) in traced.items()}
    check_kinds(values, traced["destinations"][1])
    check_collectors(values, traced["collectors"][1])
    return run_command(words, values)
