"""The `runvitals` command.

Each subcommand is a module with `add(parser)` and `run(arguments) -> int`, which returns the exit code.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from keyword import iskeyword
from types import ModuleType
from typing import Any

from runvitals.base.terminal_text import harmless_output, inert
from runvitals.cli.command_list import COMMANDS, EXTRAS
from runvitals.monitoring.environment import redaction
from runvitals.store.errors import MetadataStoreError
from runvitals.version import __version__

__all__ = ["COMMANDS", "main", "parser"]
_FULL = frozenset((errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)))
_SQLITE_FULL = 13
_LISTING = ("-h", "--help", "--version")


class WrongUsage(ValueError):
    """Arguments that do not go together, or say nothing: the exit code is 2, as for unknown ones."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return 2 for invalid usage, 1 for an error, which is one line on stderr."""
    _open_closed_streams()
    with harmless_output(), _complete_output():
        return _run(sys.argv[1:] if argv is None else argv)


def _open_closed_streams() -> None:
    """Let streams that the caller closed read and write nothing: else a file of ours gets their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            opened = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - as long as the process
            setattr(sys, name, opened)


@contextmanager
def _complete_output() -> Iterator[None]:
    """Write what was printed: at its exit, Python would do that too late for one line about an error."""
    try:
        yield
    finally:
        error = _flush_output()
        if error is not None and not isinstance(error, BrokenPipeError):
            print(f"runvitals: standard output: {error_text(error)}", file=sys.stderr)
            raise SystemExit(1)


def _flush_output() -> OSError | None:
    """Write what was printed; return the error because of which the rest is discarded."""
    try:
        sys.stdout.flush()
    except OSError as error:  # such as `runvitals export … | head`, which has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return error
    return None


def _run(words: list[str]) -> int:
    command = words[0] if words else ""
    try:
        arguments = parser(words).parse_args(words)
        command = arguments.command
        return int(_module(command).run(arguments))
    except BrokenPipeError:
        _flush_output()
        return 0
    except ModuleNotFoundError as error:
        print(f"runvitals: {inert(_missing_packages(command, error))}", file=sys.stderr)
        return 1
    except WrongUsage as error:
        print(
            f"runvitals: {inert(redaction.text(str(error)))}; see `runvitals {command} --help`",
            file=sys.stderr,
        )
        return 2
    except (ValueError, LookupError, OSError) as error:
        print(f"runvitals: {inert(redaction.text(error_text(error)))}", file=sys.stderr)
        _flush_output()  # fails again if that was the error
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
        words: the words that it will parse. Only the subcommand that they name is loaded then; none, if they
        name none,
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
            _module(name).add(subparsers.add_parser(name, help=COMMANDS[name]))
    return top


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"runvitals.cli.{name.replace('-', '_') + '_' * iskeyword(name)}")


def error_text(error: Exception) -> str:
    """Return the text of an error without its number; for a full disk also the remedy.

    Example:
        >>> error_text(FileNotFoundError(2, "No such file or directory", "/data/runs"))
        '/data/runs: No such file or directory'
    """
    if isinstance(error, LookupError) and error.args:
        text = str(error.args[0])
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        text = str(error)
    if _is_disk_full(error):
        text += "; free disk space, or choose a folder on another disk"
    return text


def _is_disk_full(error: BaseException | None) -> bool:
    while error is not None:
        if getattr(error, "errno", None) in _FULL or getattr(error, "sqlite_errorcode", None) == _SQLITE_FULL:
            return True
        error = error.__cause__
    return False


class IntermixedParser(argparse.ArgumentParser):
    """A parser of one command, which reports unknown arguments under its own usage.

    Attributes:
        intermixes: whether options may stand between positional arguments, as in `leet inspect --json RUN`.
            Argparse would otherwise take the first of them for all.
    """

    intermixes = False
    _intermixing = False

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[Any, list[str]]:
        """Parse the arguments; unknown ones are an error of this command."""
        if self._intermixing:  # argparse calls this method again
            return super().parse_known_args(args, namespace)
        if self.intermixes:
            self._intermixing = True
            try:
                known, unknown = self.parse_known_intermixed_args(args, namespace)
            finally:
                self._intermixing = False
        else:
            known, unknown = super().parse_known_args(args, namespace)
        if unknown:  # reported here, so that the usage is that of this command
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown
