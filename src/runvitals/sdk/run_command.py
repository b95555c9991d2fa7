"""Any command as a run: `runvitals run -- CMD`. The command is our child; signals go on to it, its exit code
becomes ours.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from runvitals.journal import frames, paths
from runvitals.journal.clock import Clock, boot_id
from runvitals.journal.writer import Writer
from runvitals.monitor.processes import Exit, state_of
from runvitals.sdk.attachment import host_name, order
from runvitals.sdk.console_capture import Output
from runvitals.sdk.data_folder import usable_directory
from runvitals.sdk.delivery import wait_for_delivery
from runvitals.sdk.identity import identify
from runvitals.sdk.messages import tell
from runvitals.sdk.monitor_connection import Tie
from runvitals.sdk.run_clock import clock_of_run

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
        _become(program, command)
    identity = identify(values, os.environ)
    run_id = identity.run_id
    try:
        directory = usable_directory(values["dir"], run_id, values["resume"])
    except OSError as error:
        tell(f"this command is not recorded: {error}")
        _become(program, command)
    environ = {
        **os.environ,
        "RUNVITALS_RUN_ID": run_id,
        "RUNVITALS_DIR": directory,
        "RUNVITALS_PROJECT": values["project"],
    }
    waited_for = {signal.SIGCHLD, *_PASSED_ON}
    signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    # Python ignores SIGPIPE and SIGXFSZ; the command must have them as everybody has.
    clock = clock_of_run(paths.run_dir(run_id, directory), boot_id())
    journal = (
        _journal("console", os.getpid(), values, run_id, directory, clock) if values["console"] else None
    )
    output = Output(journal) if journal is not None else None
    pid = os.posix_spawn(
        program,
        list(command),
        environ,
        file_actions=output.actions if output is not None else (),
        setsigmask=(),
        setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
    )
    if output is not None:
        output.start()
    about = identity.about(values, directory)
    attach = {"pid": pid, "role": "command", **identity.place}
    ordered = order(values, run_id, directory, attach, list(command), clock, about)
    tie = Tie(ordered)
    # Nobody else writes down what the run is called, and how it ends.
    alone = None if tie.had_one else _journal("train", pid, values, run_id, directory, clock)
    if alone is not None:
        alone.json(frames.INFO, {"t": clock.now_ms(), "run": ordered["about"]})
    called = values["name"] or about["default_name"]
    _say(
        values,
        f"run {run_id} ({called}) of project {values['project']}, kept in {paths.run_dir(run_id, directory)}",
    )
    exit_code, by_signal = _wait(pid, waited_for, tie, output)
    if output is not None:
        output.finish()
    ended = {"op": "exited", "pid": pid, "exit_code": exit_code, "signal": by_signal}
    answer = tie.ask(ended, values["finish_timeout"])
    if alone is not None:
        how = {"exit_code": exit_code, "signal": by_signal, "out_of_memory": False}
        state = state_of(Exit(exit_code, by_signal))
        alone.json(frames.LIFECYCLE, {"t": clock.now_ms(), "what": "end", "state": state, **how})
        alone.close()
    os.waitpid(pid, 0)
    wait_for_delivery(values, run_id, directory, say=not values["quiet"])
    code = f"signal {signal.Signals(by_signal).name}" if by_signal else f"exit code {exit_code}"
    state = answer["state"] if answer else "ended"
    _say(values, f"run {run_id} {state}, {code}; see `runvitals show {run_id}` or `runvitals ui`")
    return 128 + by_signal if by_signal else exit_code or 0


def _become(program: str, command: Sequence[str]) -> NoReturn:
    """Be the command, without a run."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and what is ignored stays so in exec
    os.execv(program, list(command))


def _journal(
    role: str, pid: int, values: Mapping[str, Any], run_id: str, directory: str, clock: Clock
) -> Writer | None:
    """A journal of our own beside the monitor's; None where it cannot be begun."""
    host = host_name()
    about = {"run": run_id, "project": values["project"], "host": host, "role": role}
    try:
        return Writer(
            paths.run_dir(run_id, directory),
            f"{role}.{paths.safe_name(host)}.{pid}.{clock.now_ms():x}",
            {**about, "pid": pid, "boot_id": boot_id()},
            clock=clock,
        )
    except OSError as error:
        tell(f"run {run_id} cannot be written: {error}")
        return None


def _say(values: Mapping[str, Any], text: str) -> None:
    if not values["quiet"]:
        tell(text)


def _wait(
    pid: int, waited_for: set[signal.Signals], tie: Tie, output: Output | None
) -> tuple[int | None, int | None]:
    """(exit code, signal) of the command, one of them None. It is not reaped yet: while it is a zombie, the
    monitor
    can see for itself how it ended, on any kernel.

    Signals are taken one by one, so that nothing runs between a check and a wait.
    """
    while True:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if ended is not None:
            return (ended.si_status, None) if ended.si_code == os.CLD_EXITED else (None, ended.si_status)
        received = signal.sigtimedwait(waited_for, _LOOK_AROUND_S)
        if received is None:
            tie.mind()
        elif received.si_signo == signal.SIGWINCH and output is not None:
            output.resize()
        elif received.si_signo != signal.SIGCHLD and _sent_to_us_alone(received):
            os.kill(pid, received.si_signo)


def _sent_to_us_alone(received: signal.struct_siginfo) -> bool:
    """False for a key at the terminal, which the kernel (positive si_code) sends to every process of the
    foreground group.
    """
    return received.si_code <= 0
