"""The connection to a run's monitor. A monitor that dies is restarted, with exponential backoff."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from runvitals.base.backoff import Backoff
from runvitals.monitoring.monitor import launch
from runvitals.monitoring.settings.messages import notify

# The first replacement starts immediately, later ones after 1, 2, 4 … s: a monitor that cannot run on this
# machine must not cost the training a process start at every `log()`.
_MAX_WAIT_S = 60.0
# A monitor that lived this long resets the backoff.
_STABLE_S = 60.0
# Warn after this many deaths without a stable monitor between them.
_WARN_AFTER_DEATHS = 3
# How many monitors `ask` tries when they die before they respond.
_ASK_ATTEMPTS = 3


class MonitorConnection:
    """Keeps a connection to the monitor that `spec` describes.

    Args:
        spec: see `runvitals.monitoring.monitor.launch.connect`.
        connect: makes the connection; `launch.connect`.
        clock: monotonic seconds.

    Attributes:
        was_connected: whether a monitor was reached at least once.
        started_monitor: whether this process started the run's monitor.

    Example:
        >>> connection = MonitorConnection(spec)
        >>> connection.ensure()      # regularly
        >>> connection.ask({"op": "finish", "pid": 4711, "exit_code": 0}, 5.0)
        {'op': 'done', 'state': 'finished'}
    """

    def __init__(
        self,
        spec: Mapping[str, Any],
        connect: Callable[[Mapping[str, Any]], launch.MonitorSocket] = launch.connect,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spec = spec
        self._open = connect
        self._clock = clock
        self._line: launch.MonitorSocket | None = None
        self.was_connected = self.started_monitor = False
        self._deaths = 0
        self._connected_s = 0.0
        self._backoff = Backoff(1.0, _MAX_WAIT_S, at_once=1)
        self._connect()

    def ensure(self) -> None:
        """Restart the monitor if it has died. One system call, 1 µs, when it has not."""
        if self._line is not None:
            if self._line.is_alive():
                return
            self.close()
            self._note_death()
        if self._backoff.due(self._clock()):
            self._connect()

    def ask(self, message: Mapping[str, object], timeout_s: float) -> dict[str, Any] | None:
        """Send a final message and return the monitor's response, or None after the timeout. Then disconnect.

        A monitor that is missing or dies is started again regardless of the backoff, because it has to
        record how the run ended.
        """
        until_s = self._clock() + timeout_s
        for _ in range(_ASK_ATTEMPTS):
            if self._line is not None and not self._line.is_ours():
                self.close()
            if self._line is None:
                self._connect()
            if self._line is None:
                return None
            response = self._line.ask(message, max(0.0, until_s - self._clock()))
            lives = self._line.is_alive()
            if response is not None and message.get("closing"):
                self._line.leave_open()
                self._line = None
            else:
                self.close()
            if response is not None or lives:
                return response
        return None

    def close(self) -> None:
        """Disconnect. In a forked child this closes only the child's copy."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def _connect(self) -> None:
        try:
            self._line = self._open(self._spec)
            self.was_connected = True
            self.started_monitor = self.started_monitor or self._line.started_monitor
            self._connected_s = self._clock()
        except launch.Unavailable as error:
            if not self._backoff.failures:
                notify(f"no system metrics for run {self._spec['run']} yet, will retry: {error}")
            self._backoff.failed(self._clock())

    def _note_death(self) -> None:
        """Increase the backoff, or reset it if the monitor was stable."""
        now_s = self._clock()
        if now_s - self._connected_s > _STABLE_S:
            self._deaths = 0
            self._backoff.worked()
        self._deaths += 1
        self._backoff.failed(now_s)
        if self._deaths == _WARN_AFTER_DEATHS:
            run_id = self._spec["run"]
            notify(f"the monitor of run {run_id} keeps crashing; see the events in `runvitals show {run_id}`")
