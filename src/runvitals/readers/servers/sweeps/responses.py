"""Checks a response to a sweep's agent, before any of it is used: it names files and starts programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from runvitals.journal import paths
from runvitals.model.state import STATES
from runvitals.readers.servers.connection import ServerError

_MAX_COMMANDS: Final = 1000
_MAX_WORDS: Final = 1000
_MAX_ENTRIES: Final = 10_000
_MAX_DEPTH: Final = 20
_MAX_SHOWN: Final = 100
_OK: Final = 200


class Command(NamedTuple):
    """A command to an agent.

    Args:
        do: `run`, `stop` or `exit`.
        run_id: which run; "" for `exit`.
        parameters: of the run that is to begin.
    """

    do: str
    run_id: str
    parameters: Mapping[str, Any]


def check_id(body: Any) -> Mapping[str, Any]:
    """Return the object in a response, with its id checked.

    Raises:
        ServerError: it has none.
    """
    fields = _object(body)
    try:
        paths.check_run_id(str(fields.get("id") or ""))
    except ValueError as error:
        raise _invalid("id", fields.get("id"), str(error)) from None
    return fields


def configuration(body: Any) -> Mapping[str, Any]:
    """Read the configuration of a sweep. An agent uses `program` and `command`.

    Raises:
        ServerError: they are invalid.
    """
    fields = _object(_object(body).get("configuration"))
    program, command = fields.get("program"), fields.get("command")
    if program is not None and not _is_word(program):
        raise _invalid("program", program, "a text")
    words = command if isinstance(command, list) else [] if command is None else [command]
    if len(words) > _MAX_WORDS or not all(map(_is_word, words)):
        raise _invalid("command", command, f"a text, or a list of at most {_MAX_WORDS:,} texts")
    return fields


def commands(body: Any) -> list[Command]:
    """Read the commands to an agent; those of unknown kinds are left out.

    Raises:
        ServerError: one is invalid.
    """
    items = _object(body).get("commands")
    if not isinstance(items, list) or len(items) > _MAX_COMMANDS:
        raise _invalid("commands", items, f"a list of at most {_MAX_COMMANDS:,} commands")
    several = [_object(command) for command in items]
    return [_command(command) for command in several if command.get("do") in ("run", "stop", "exit")]


def state(body: Any) -> str:
    """Return the state of a run, or raise ServerError if it is none."""
    value = _object(body).get("state")
    if value not in STATES:
        raise _invalid("state", value, f"one of {', '.join(STATES)}")
    return str(value)


def _command(command: Mapping[str, Any]) -> Command:
    do = command["do"]
    if do == "exit":
        return Command(do, "", {})
    run_id = command.get("run")
    try:
        paths.check_run_id(run_id if isinstance(run_id, str) else "")
    except ValueError as error:
        raise _invalid("run", run_id, str(error)) from None
    parameters = command.get("parameters") if do == "run" else {}
    _check_parameters(parameters)
    return Command(do, str(run_id), _object(parameters))


def _check_parameters(parameters: Any) -> None:
    """Check the size and the texts of parameters, without recursion."""
    level: Sequence[Any] = [_object(parameters)]
    entries = 0
    for _ in range(_MAX_DEPTH):
        texts = [text for value in level for text in _texts(value)]
        if not all(map(_is_word, texts)):
            raise _invalid("parameters", parameters, "texts that a command line can hold")
        level = [item for value in level for item in _items(value)]
        entries += len(level)
        if not level:
            return
        if entries > _MAX_ENTRIES:
            raise _invalid("parameters", None, f"at most {_MAX_ENTRIES:,} values")
    raise _invalid("parameters", None, f"values that are nested at most {_MAX_DEPTH} levels deep")


def _items(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _texts(value: Any) -> Sequence[Any]:
    return list(value) if isinstance(value, dict) else [value] if isinstance(value, str) else ()


def _is_word(text: object) -> bool:
    """Return whether a text can be an argument of a program."""
    if not isinstance(text, str) or "\0" in text:
        return False
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _invalid("answer", value, "a JSON object")
    return value


def _invalid(name: str, value: object, allowed: str) -> ServerError:
    value_text = "" if value is None or isinstance(value, (dict, list)) else f" {value!r:.{_MAX_SHOWN}}"
    return ServerError(f"the server sent an invalid {name}{value_text}; expected {allowed}", _OK)
