"""The `--dir` option: which data folder a command uses."""

from __future__ import annotations

import argparse
import os

from runvitals.journal.paths import data_dir
from runvitals.monitoring.settings.settings import resolve


def add_dir(parser: argparse.ArgumentParser) -> None:
    """Add the option `--dir`."""
    parser.add_argument("--dir", metavar="DIR", help="data folder (RUNVITALS_DIR, or the setting `dir`)")


def directory(arguments: argparse.Namespace) -> str:
    """Return the folder from the command line, else from the settings, else the user's data home."""
    folder = arguments.dir or resolve({}, os.environ, os.getcwd())["dir"]
    return os.path.abspath(os.path.expanduser(folder)) if folder else data_dir()
