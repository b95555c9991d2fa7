"""The `runvitals` command.

Each subcommand is a module with `add(subparsers)` and `run(arguments) -> int`, which returns the exit code.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from keyword import iskeyword
from types import ModuleType

from runvitals.base.terminal_text import harmless_output, inert
from runvitals.cli.command_list import COMMANDS, EXTRAS
from runvitals.cli.error_text import error_text
from runvitals.cli.intermixed_parser import IntermixedParser
from runvitals.monitoring.environment import redaction
from runvitals.store.errors import MetadataStoreError
from runvitals.version import __version__

__all__ = ["COMMANDS", "main", "parser"]
_LISTING = ("-h", "--help", "--version")


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit code: 2 for invalid usage, 1 for an error.

    An error is printed to stderr as one line.
    """
    with harmless_output():
        return _run(sys.argv[1:] if argv is None else argv)


def _run(words: list[str]) -> int:
    arguments = parser(words).parse_args(words)
    try:
        return int(_module(arguments.command).run(arguments))
    except BrokenPipeError:
        # `runvitals export … | head` closed the pipe. Redirect stdout, or the interpreter prints an error
        # when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ModuleNotFoundError as error:
        print(f"runvitals: {inert(_missing_packages(arguments.command, error))}", file=sys.stderr)
        return 1
    except (ValueError, LookupError, OSError) as error:
        print(f"runvitals: {inert(redaction.text(error_text(error)))}", file=sys.stderr)
        return 1
    except MetadataStoreError as error:  # the disk became full, or PostgreSQL went away, meanwhile
        print(f"runvitals: the metadata store: {inert(redaction.text(str(error)))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _missing_packages(command: str, error: ModuleNotFoundError) -> str:
    """Return the extra to install for a command.

    Raises:
        ModuleNotFoundError: it is a module of ours that is missing.
    """
    if (error.name or "").partition(".")[0] in ("", "runvitals"):
        raise error
    if "pip install" in str(error):  # what is missing only with these arguments, such as a destination
        return str(error)
    extra = EXTRAS.get(command, "server")
    return (
        f"{command} needs packages that are not installed: pip install 'runvitals[{extra}]'"
        f" (the first that is missing is {error.name})"
    )


def parser(words: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser for all subcommands.

    Args:
        words: what it will parse. Only the subcommand that they name is loaded then; none, if they name none,
            as for `--help`.
    """
    top = argparse.ArgumentParser(prog="runvitals", description="The vital signs of every training run.")
    top.add_argument("--version", action="version", version=f"runvitals {__version__}")
    subparsers = top.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=IntermixedParser
    )
    first = words[0] if words else ""
    if words is not None and (first in _LISTING or not first.startswith("-")) and first not in COMMANDS:
        for name, text in COMMANDS.items():
            subparsers.add_parser(name, help=text)
    else:
        for name in (first,) if first in COMMANDS else COMMANDS:
            _module(name).add(subparsers)
    return top


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"runvitals.cli.{name.replace('-', '_') + '_' * iskeyword(name)}")
