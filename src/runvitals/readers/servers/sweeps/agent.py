"""`AgentLoop`: starts the runs of a sweep, one after the other, until the server says that it is over."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count as count_up
from typing import Final, TypeVar

from runvitals.journal import paths
from runvitals.model.state import RUNNING
from runvitals.monitoring.settings.messages import notify
from runvitals.readers.servers.connection import ServerError
from runvitals.readers.servers.sweeps.responses import Command
from runvitals.readers.servers.sweeps.server_sweeps import ServerSweeps, SweepAddress
from runvitals.readers.servers.sweeps.training import AssignedRun, Training
from runvitals.sdk.attachment import host_name

T = TypeVar("T")
REPORT_S: Final = 5.0
_FAILURES: Final = 3
"""If so many runs fail and none succeeded before, the program is at fault and not the parameters."""
_CHECKS: Final = 5
"""Times that an agent looks between two reports whether a run has arrived."""
_ARRIVAL_TRIES: Final = 15
"""Times that the server may not know a run of which this machine has no record either."""
_MAX_SILENCE_S: Final = 600.0
"""The server may be unreachable this long."""


class SweepFailed(RuntimeError):
    """An agent has ended because none of its runs has succeeded."""


class AgentLoop:
    """Starts the runs of a sweep.

    While a run lasts, a thread reports it to the server every few seconds and stops it if the server says so.

    Args:
        directory: the data folder of the runs; None: the user's.
        report_s: seconds between two reports.
    """

    def __init__(
        self,
        sweeps: ServerSweeps,
        address: SweepAddress,
        training: Training,
        directory: str | None = None,
        report_s: float = REPORT_S,
    ) -> None:
        self._sweeps = sweeps
        self._address = address
        self._training = training
        self._directory = directory
        self._report_s = report_s
        self._is_over = threading.Event()
        self._pause = threading.Event().wait

    def run(self, count: int | None = None) -> int:
        """Start runs until the sweep is over.

        Args:
            count: how many at most; None: no limit.

        Returns:
            How many have run.

        Raises:
            SweepFailed: the first runs have all failed.
            ServerError: the server rejected a request, or is unreachable for ten minutes.
        """
        agent = self._sweeps.add_agent(self._address, host_name())
        try:
            return self._run(agent, count)
        finally:
            with suppress(ServerError):  # it notices within minutes by itself
                self._sweeps.leave(self._address, agent)

    def _run(self, agent: str, count: int | None) -> int:
        failures = runs = 0
        has_succeeded = False
        while (count is None or runs < count) and not self._is_over.is_set():
            assigned = self._next(agent)
            if assigned is None:
                break
            succeeded = self._execute(agent, assigned)
            runs += 1
            has_succeeded = has_succeeded or succeeded
            failures = 0 if has_succeeded else failures + 1
            if failures >= _FAILURES:
                raise SweepFailed(f"the first {failures} runs have failed: the agent ends")
            self._await_end(agent, assigned)
        return runs

    def _next(self, agent: str) -> AssignedRun | None:
        """Return the next run; None: the sweep is over. Waits while the sweep is paused."""
        while True:
            for command in self._report(agent, []):
                if command.do == "exit":
                    return None
                if command.do == "run":
                    address = self._address
                    return AssignedRun.of(
                        address.sweep, address.entity, address.project, command.run_id, command.parameters
                    )
            self._pause(self._report_s)

    def _execute(self, agent: str, assigned: AssignedRun) -> bool:
        """Run one; whether it has succeeded."""
        ended = threading.Event()
        watch = threading.Thread(target=self._watch, args=(agent, assigned, ended), daemon=True)
        watch.start()
        try:
            return self._training.execute(assigned)
        finally:
            ended.set()
            watch.join()

    def _watch(self, agent: str, assigned: AssignedRun, ended: threading.Event) -> None:
        """Report a run until it has ended, and stop it if the server says so."""
        while not ended.wait(self._report_s):
            try:
                commands = self._sweeps.report(self._address, agent, [assigned.run_id])
            except ServerError:
                continue  # the run goes on; the next report may arrive
            for command in commands:
                if command.do == "exit":
                    self._is_over.set()
                if command.do == "exit" or command.run_id == assigned.run_id:
                    self._training.stop()

    def _await_end(self, agent: str, assigned: AssignedRun) -> None:
        """Wait until the server knows how a run has ended: the search is to learn from it."""
        for waited in count_up():
            state = self._state(assigned)
            if state is not None and state != RUNNING:
                return
            if state is None and waited >= _ARRIVAL_TRIES and not self._is_recorded(assigned):
                notify(f"run {assigned.run_id} has logged nothing; does the program call runvitals.init()?")
                return
            if waited == _ARRIVAL_TRIES:
                notify(f"run {assigned.run_id} is not fully delivered yet; see `runvitals relay status`")
            self._pause(self._report_s / _CHECKS)
            if waited % _CHECKS == _CHECKS - 1:
                self._report(agent, [assigned.run_id])

    def _state(self, assigned: AssignedRun) -> str | None:
        return _patiently(self._pause, lambda: self._sweeps.run_state(self._address.entity, assigned.run_id))

    def _report(self, agent: str, running: Sequence[str]) -> list[Command]:
        return _patiently(self._pause, lambda: self._sweeps.report(self._address, agent, running))

    def _is_recorded(self, assigned: AssignedRun) -> bool:
        directory = self._directory or paths.data_dir()
        return os.path.isdir(paths.run_dir(assigned.run_id, directory))


def _patiently(pause: Callable[[float], object], ask: Callable[[], T]) -> T:
    """Call `ask`, again and again while the server is unreachable.

    Raises:
        ServerError: the server rejected the request, or is unreachable for too long.
    """
    waited_s, delay_s = 0.0, 1.0
    while True:
        try:
            return ask()
        except ServerError as error:
            is_temporary = error.status is None or error.status == 429 or error.status >= 500
            if not is_temporary or waited_s >= _MAX_SILENCE_S:
                raise
            if not waited_s:
                notify(f"the server is not reachable, trying again: {error}")
        pause(delay_s)
        waited_s += delay_s
        delay_s = min(delay_s * 2, 30.0)
