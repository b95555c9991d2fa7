"""A tie to a run's monitor that holds: when the monitor dies another is started, but not a hundred in a
row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from runvitals.backoff import Backoff
from runvitals.monitor import launch
from runvitals.sdk.messages import tell

# A monitor that dies is replaced at once the first time, then after 1, 2, 4 … s: one that cannot live on this
# machine must not cost the training a start at every `log()`.
_LONGEST_WAIT_S = 60.0
# A monitor that has lived this long was a good one.
_GOOD_LIFE_S = 60.0
# That many losses in short order are worth a word.
_WORTH_A_WORD = 3
# How many monitors may die while the last word is said to them.
_LAST_ATTEMPTS = 3


class Tie:
    """Connected to the monitor that `order` describes, as long as there can be one.

    Args:
        order: see `runvitals.monitor.launch.connect`.
        connect: makes the connection; `launch.connect`.
        clock: monotonic seconds.

    Attributes:
        had_one: a monitor was reached, once at least.

    Example:
        >>> tie = Tie(order)
        >>> tie.mind()      # every now and then
        >>> tie.ask({"op": "finish", "pid": 4711, "exit_code": 0}, 5.0)
        {'op': 'done', 'state': 'finished'}
    """

    def __init__(
        self,
        order: Mapping[str, Any],
        connect: Callable[[Mapping[str, Any]], launch.Line] = launch.connect,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._order = order
        self._reach = connect
        self._clock = clock
        self._line: launch.Line | None = None
        self.had_one = False
        self._deaths = 0
        self._connected_s = 0.0
        self._backoff = Backoff(1.0, _LONGEST_WAIT_S, at_once=1)
        self._connect()

    def mind(self) -> None:
        """See that there is a monitor. One system call, 1 µs, when there is."""
        if self._line is not None:
            if self._line.alive():
                return
            self.close()
            self._died()
        if self._backoff.due(self._clock()):
            self._connect()

    def ask(self, message: Mapping[str, object], timeout_s: float) -> dict[str, Any] | None:
        """The monitor's answer, or None where none came in time; then the tie is cut.

        It is the run's last word: where there is no monitor, or it dies over it, another is started to
        write it down, however many have died before.
        """
        until_s = self._clock() + timeout_s
        for _ in range(_LAST_ATTEMPTS):
            if self._line is not None and not self._line.is_ours():
                self.close()
            if self._line is None:
                self._connect()
            if self._line is None:
                return None
            answer = self._line.ask(message, max(0.0, until_s - self._clock()))
            lives = self._line.alive()
            if answer is not None and message.get("closing"):
                self._line.leave_open()
                self._line = None
            else:
                self.close()
            if answer is not None or lives:
                return answer
        return None

    def close(self) -> None:
        """Cut the tie. In a forked child: let go of the parent's."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def _connect(self) -> None:
        try:
            self._line = self._reach(self._order)
            self.had_one = True
            self._connected_s = self._clock()
        except launch.Unavailable as error:
            if not self._backoff.failures:
                tell(f"no system metrics for run {self._order['run']} for now: {error}")
            self._backoff.failed(self._clock())

    def _died(self) -> None:
        """Wait a little longer after each death, but forget them after a good life."""
        now_s = self._clock()
        if now_s - self._connected_s > _GOOD_LIFE_S:
            self._deaths = 0
            self._backoff.worked()
        self._deaths += 1
        self._backoff.failed(now_s)
        if self._deaths == _WORTH_A_WORD:
            tell(f"the monitor of run {self._order['run']} keeps dying; `runvitals show` may say why")
