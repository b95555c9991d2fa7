"""Any command as a run: `runvitals run -- CMD`. The command is our child; signals go on to it, its exit code
becomes ours.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from runvitals.journal import paths
from runvitals.monitor import launch
from runvitals.sdk.console import tell
from runvitals.sdk.line import order
from runvitals.sdk.start import new_run_id, usable_directory

# Signals that are passed on. Those of the terminal's keys reach the whole foreground group anyway and are
# passed on only when somebody sent them to us alone. KILL and STOP cannot be; TSTP and CONT the terminal's
# job control needs us to have like any other process.
_PASSED_ON = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM,
    signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGALRM,
)  # fmt: skip
_LOOK_AROUND_S = 1.0
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # what shells answer


def run_command(command: Sequence[str], values: Mapping[str, Any]) -> int:
    """Run a command to its end under a monitor.

    Args:
        command: program and arguments.
        values: resolved settings.

    Returns:
        Its exit code; 128 + n when signal n ended it, 127 when there is no such program, 126 when it cannot
        be executed.
    """
    program = shutil.which(command[0])
    if program is None:
        exists = os.path.exists(command[0])
        tell(f"{command[0]}: {'cannot be executed' if exists else 'no such command'}")
        return NOT_EXECUTABLE if exists else NOT_FOUND
    if values["mode"] == "disabled":
        os.execv(program, list(command))
    run_id = values["run_id"] or new_run_id()
    directory = usable_directory(values["dir"], run_id, values["resume"])
    environ = {
        **os.environ,
        "RUNVITALS_RUN_ID": run_id,
        "RUNVITALS_DIR": directory,
        "RUNVITALS_PROJECT": values["project"],
    }
    waited_for = {signal.SIGCHLD, *_PASSED_ON}
    signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    # Python ignores SIGPIPE and SIGXFSZ; the command must have them as everybody has.
    pid = os.posix_spawn(
        program, list(command), environ, setsigmask=(), setsigdef=(signal.SIGPIPE, signal.SIGXFSZ)
    )
    watch = _Watch(values, run_id, directory, pid, command)
    _say(values, f"run {run_id} of project {values['project']}, kept in {paths.run_dir(run_id, directory)}")
    status = _wait(pid, waited_for, watch)
    exit_code, by_signal = _decode(status)
    state = watch.end(exit_code, by_signal)
    how = f"signal {signal.Signals(by_signal).name}" if by_signal else f"exit code {exit_code}"
    _say(values, f"run {run_id} {state}, {how}; see `runvitals show {run_id}` or `runvitals ui`")
    return 128 + by_signal if by_signal else exit_code or 0


def _say(values: Mapping[str, Any], text: str) -> None:
    if not values["quiet"]:
        print(f"runvitals: {text}", file=sys.stderr, flush=True)


class _Watch:
    """The monitor of the command, started again if it dies."""

    def __init__(
        self, values: Mapping[str, Any], run_id: str, directory: str, pid: int, command: Sequence[str]
    ) -> None:
        self._pid = pid
        self._timeout_s: float = values["finish_timeout"]
        self._order = order(values, run_id, directory, {"pid": pid, "role": "command"}, list(command))
        self._line: launch.Line | None = None
        self._warned = False
        self.mind()

    def mind(self) -> None:
        if self._line is not None and self._line.alive():
            return
        try:
            self._line = launch.connect(self._order)
        except launch.Unavailable as error:
            if not self._warned:
                tell(f"no system metrics for now: {error}")
            self._warned = True

    def end(self, exit_code: int | None, by_signal: int | None) -> str:
        """Tell how the command ended, wait for the last sample; the run's state, "ended" where the monitor
        does not say.
        """
        message = {"op": "exited", "pid": self._pid, "exit_code": exit_code, "signal": by_signal}
        answer = self._line.ask(message, self._timeout_s) if self._line is not None else None
        return str(answer["state"]) if answer else "ended"


def _wait(pid: int, waited_for: set[signal.Signals], watch: _Watch) -> int:
    """The command's wait status. Signals are taken one by one, so that nothing runs between a check and a
    wait.
    """
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        received = signal.sigtimedwait(waited_for, _LOOK_AROUND_S)
        if received is None:
            watch.mind()
        elif received.si_signo != signal.SIGCHLD and _sent_to_us_alone(received):
            os.kill(pid, received.si_signo)


def _sent_to_us_alone(received: signal.struct_siginfo) -> bool:
    """False for a key at the terminal, which the kernel (positive si_code) sends to every process of the
    foreground group.
    """
    return received.si_code <= 0


def _decode(status: int) -> tuple[int | None, int | None]:
    """(exit code, signal), one of them None."""
    return (None, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else (os.WEXITSTATUS(status), None)
