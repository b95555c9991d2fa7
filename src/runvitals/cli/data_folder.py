"""Which data folder a command reads."""

from __future__ import annotations

import argparse
import os

from runvitals.journal.paths import data_dir
from runvitals.sdk.settings import resolve


def add_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dir", metavar="DIR", help="the data folder (RUNVITALS_DIR, the setting `dir`)")


def directory(arguments: argparse.Namespace) -> str:
    """The folder named on the command line, else by the settings of this place, else the user's data home.

    Raises:
        ValueError: a wrong setting.
    """
    named = arguments.dir or resolve({}, os.environ, os.getcwd())["dir"]
    return os.path.abspath(os.path.expanduser(named)) if named else data_dir()
