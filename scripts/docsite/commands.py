"""The reference of the command line, from its parsers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from runvitals.cli import parser

_INTRODUCTION = """\
# Command line

All commands of `runvitals`, generated from their parsers; `runvitals COMMAND --help` prints the same.

| exit code | |
|---|---|
| 0 | done |
| 1 | it failed, or not all of it was done: one line on stderr says why |
| 2 | wrong arguments, or such that do not go together; nothing was done |
| 130 | Ctrl-C |
| others | of `runvitals run`: the exit code of the command that it ran |

Results go to stdout; errors, hints and how far a long command is go to stderr. A terminal shows progress
as a bar with the time that is left, files and pipes get a line every ten seconds, and `--quiet` nothing.
Every command that lists something has `--json`. Tables for people keep the order of their columns, but new
columns may be added: let scripts read JSON. [`NO_COLOR`](https://no-color.org) is respected.

`runvitals completion bash` (or `zsh`, `fish`) prints a script with which the shell completes commands,
options and files: `pip install 'runvitals[completion]'`. Packages from PyPI have a manual page: `man
runvitals`.
"""


def page() -> str:
    """The page in Markdown."""
    return "\n".join([_INTRODUCTION, *_of_group(parser(), 2)]) + "\n"


def _of_group(group: argparse.ArgumentParser, level: int) -> Iterator[str]:
    for action in group._actions:
        if isinstance(action, argparse._SubParsersAction):
            texts = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, command in action.choices.items():
                yield from _of_command(command, texts.get(name, ""), level)


def _of_command(command: argparse.ArgumentParser, text: str, level: int) -> Iterator[str]:
    yield f"{'#' * level} {command.prog}\n"
    yield _prose(command.description or _sentence(text)) + "\n"
    yield f"```text\n{_usage(command)}\n```\n"
    arguments = [
        action
        for action in command._actions
        if not isinstance(action, (argparse._HelpAction, argparse._SubParsersAction))
        and action.help != argparse.SUPPRESS
    ]
    if arguments:
        yield "| Argument | Meaning |"
        yield "|---|---|"
        for action in arguments:
            meaning = _prose(command._get_formatter()._expand_help(action)) if action.help else ""
            if action.choices:
                meaning += f" One of {', '.join(f'`{choice}`' for choice in action.choices)}."
            yield f"| `{_invocation(action)}` | {meaning.strip().replace('|', '&#124;')} |"
        yield ""
    if command.epilog:
        yield _prose(command.epilog) + "\n"
    yield from _of_group(command, level + 1)


def _usage(command: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(command.prog, width=90)
    formatter.add_usage(command.usage, command._actions, command._mutually_exclusive_groups, prefix="")
    return formatter.format_help().strip()


def _invocation(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    return ", ".join(action.option_strings) + value


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""


def _prose(text: str) -> str:
    """Help text as Markdown: special characters are escaped, except in code."""
    return re.sub(
        r"(`[^`]*`)|([<*\\])",
        lambda match: match[1] or f"\\{match[2]}",
        " ".join(text.split()),
    )
