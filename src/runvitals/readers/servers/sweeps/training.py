"""A run that an agent starts: a function in this process, or a program in one of its own."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from runvitals.monitoring.environment import redaction
from runvitals.monitoring.settings.messages import notify
from runvitals.sdk.sweep_parameters import PARAMETERS, RUN_ID, SWEEP

_DEFAULT_COMMAND: Final = ("${env}", "python", "${program}", "${args}")
_MAX_TEXT: Final = 100_000
"""Bytes of the parameters as JSON: Linux allows 131,072 bytes in a variable of the environment."""
_END_GRACE_S: Final = 30.0
_VARIABLE: Final = "${envvar:"


class AssignedRun(NamedTuple):
    """A run that is to begin.

    Args:
        run_id: the id that the run gets.
        environ: what its process finds in its environment.
    """

    run_id: str
    parameters: Mapping[str, Any]
    environ: Mapping[str, str]

    @classmethod
    def of(
        cls, sweep: str, entity: str | None, project: str, run_id: str, parameters: Mapping[str, Any]
    ) -> AssignedRun:
        """Describe a run with the parameters that a sweep chose.

        Raises:
            ValueError: the parameters are too large for an environment.
        """
        text = json.dumps(dict(parameters))
        if len(text) > _MAX_TEXT:
            raise ValueError(
                f"the parameters of run {run_id} are {len(text):,} characters as JSON; expected at most "
                f"{_MAX_TEXT:,}"
            )
        environ = {SWEEP: sweep, PARAMETERS: text, RUN_ID: run_id, "RUNVITALS_PROJECT": project}
        if entity is not None:
            environ["RUNVITALS_ENTITY"] = entity
        return cls(run_id, parameters, environ)


class Training(Protocol):
    """A training that an agent starts."""

    def execute(self, assigned: AssignedRun) -> bool:
        """Run until it has ended; whether it has succeeded."""

    def stop(self) -> None:
        """End it; called in another thread, and again every few seconds until it has ended."""


class FunctionTraining:
    """Calls a function in this process, which calls `init()`.

    Stopping it is as Ctrl-C: `on_stop()` or `KeyboardInterrupt`.
    """

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function
        self._stopped = threading.Event()

    def execute(self, assigned: AssignedRun) -> bool:
        """Call the function with the run's environment, which is restored afterwards."""
        before = {name: os.environ.get(name) for name in assigned.environ}
        os.environ.update(assigned.environ)
        self._stopped.clear()
        try:
            return self._call()
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    def _call(self) -> bool:
        from runvitals.sdk import start

        exit_code = 0
        try:
            self._function()
        except KeyboardInterrupt:
            if not self._stopped.is_set():
                raise
            exit_code = 128 + signal.SIGINT
        except Exception:  # noqa: BLE001 - of the user's function; the next parameters may be better
            traceback.print_exc()
            exit_code = 1
        finally:
            opened = start.current_run()
            if opened is not None:
                opened.finish(exit_code)
        return exit_code == 0 or self._stopped.is_set()

    def stop(self) -> None:
        """Interrupt the function; a second call has no effect."""
        if not self._stopped.is_set():
            self._stopped.set()
            os.kill(os.getpid(), signal.SIGINT)


class ProgramTraining:
    """Starts a program. Stopping it sends INT, after 30 seconds KILL."""

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        """Check the command; raise ValueError if there is no program, or an unknown placeholder."""
        self._configuration = configuration
        command_line(configuration, {}, "")  # raises before the server has assigned a run
        self._process: subprocess.Popen[bytes] | None = None
        self._stops = 0

    def execute(self, assigned: AssignedRun) -> bool:
        """Start the program, and wait until it has ended."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(dict(assigned.parameters), file)
            file.flush()
            command = command_line(self._configuration, assigned.parameters, file.name)
            notify(f"run {assigned.run_id}: {self._redacted_command(assigned.parameters, file.name)}")
            self._stops = 0
            self._process = subprocess.Popen(command, env={**os.environ, **assigned.environ})
            try:
                return self._process.wait() == 0 or self._stops > 0
            except BaseException:
                self._end()
                raise

    def _redacted_command(self, parameters: Mapping[str, Any], parameters_file: str) -> str:
        """Return the command without secrets: the values of variables may be some."""
        words = command_line(self._configuration, parameters, parameters_file, shows_variables=False)
        return shlex.join(redaction.command(words, os.environ))

    def _end(self) -> None:
        """End the program with the agent."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(_END_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Interrupt the program; kill it if it was asked for 30 seconds."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        self._stops += 1
        if self._stops == 1:
            process.send_signal(signal.SIGINT)
        elif self._stops > 6:  # 30 seconds later
            process.kill()


def command_line(
    configuration: Mapping[str, Any],
    parameters: Mapping[str, Any],
    parameters_file: str,
    shows_variables: bool = True,
) -> list[str]:
    """Return the words of the command that starts a run.

    Args:
        configuration: of the sweep: `program`, and perhaps `command` with placeholders.
        parameters_file: the path of a file with the parameters as JSON.
        shows_variables: whether the values of variables take the place of `${envvar:NAME}`.

    Raises:
        ValueError: there is no program, or an unknown placeholder.

    Example:
        >>> command_line({"program": "train.py", "command": "python3 ${program} ${args}"}, {"lr": 0.1}, "")
        ['python3', 'train.py', '--lr=0.1']
    """
    template = configuration.get("command") or _DEFAULT_COMMAND
    if isinstance(template, str):
        template = shlex.split(template)
    program = configuration.get("program")
    if program is None and any("${program}" in str(word) for word in template):
        raise ValueError(
            "the sweep's configuration has no `program`: add one, or pass a function to runvitals.agent()"
        )
    words: dict[str, list[str]] = {
        "env": ["/usr/bin/env"],
        "interpreter": [sys.executable],
        "program": [str(program)],
        "args": [f"--{name}={_text(value)}" for name, value in parameters.items()],
        "args_no_hyphens": [f"{name}={_text(value)}" for name, value in parameters.items()],
        "args_no_boolean_flags": list(_flags(parameters)),
        "args_json": [json.dumps(dict(parameters))],
        "args_json_file": [parameters_file],
    }
    arguments = []
    for word in map(str, template):
        is_variable = word.startswith(_VARIABLE) and word.endswith("}")
        arguments += [word] if is_variable and not shows_variables else _replace(word, words)
    return arguments


def _replace(word: str, words: Mapping[str, Sequence[str]]) -> list[str]:
    if not (word.startswith("${") and word.endswith("}")):
        return [word]
    if word.startswith(_VARIABLE):
        return [os.environ.get(word.removeprefix(_VARIABLE)[:-1], "")]
    name = word[2:-1]
    if name not in words:
        allowed = ", ".join(f"${{{known}}}" for known in (*words, "envvar:NAME"))
        raise ValueError(f"command: unknown placeholder {word!r}; expected one of {allowed}")
    return list(words[name])


def _flags(parameters: Mapping[str, Any]) -> list[str]:
    """Arguments in which a parameter that is true is a flag, and one that is false is left out."""
    flags = []
    for name, value in parameters.items():
        if value is True:
            flags.append(f"--{name}")
        elif value is not False:
            flags.append(f"--{name}={_text(value)}")
    return flags


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)
