"""`runvitals completion SHELL`: the script with which a shell completes commands and options."""

from __future__ import annotations

import argparse
from typing import Any

from runvitals.cli import parser as whole_parser
from runvitals.cli.command_list import COMMANDS

_SHELLS = ("bash", "zsh", "fish")


def add(subparsers: Any) -> None:
    """Add `runvitals completion` to the parser."""
    parser = subparsers.add_parser(
        "completion",
        help=COMMANDS["completion"],
        description='bash: add eval "$(runvitals completion bash)" to ~/.bashrc. zsh: write it to a file '
        "_runvitals in a folder of $fpath. fish: write it to ~/.config/fish/completions/runvitals.fish.",
    )
    parser.add_argument("shell", choices=_SHELLS)


def run(arguments: argparse.Namespace) -> int:
    """Print the script; return 0."""
    import shtab

    parser = whole_parser()
    _complete_files(parser, shtab.FILE, shtab.DIRECTORY)
    print(shtab.complete(parser, arguments.shell))
    return 0


_FOLDERS = {"DIR", "FOLDER"}
_FILES = {"FILE", "PATH", "SOURCE"}


def _complete_files(parser: argparse.ArgumentParser, files: object, folders: object) -> None:
    """Have arguments that name files or folders completed as such, in all subcommands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command, files, folders)
        elif action.metavar in _FOLDERS | _FILES:
            action.complete = folders if action.metavar in _FOLDERS else files  # type: ignore[attr-defined]
