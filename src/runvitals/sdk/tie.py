"""A tie to a run's monitor that holds: when the monitor dies another is started, but not a hundred in a
row.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from runvitals.monitor import launch
from runvitals.sdk.console import tell

# A monitor that dies is replaced at once the first time, then after 1, 2, 4 … s: one that cannot live on this
# machine must not cost the training a start at every `log()`.
_LONGEST_WAIT_S = 60.0
# A monitor that has lived this long was a good one.
_GOOD_LIFE_S = 60.0
# That many losses in short order are worth a word.
_WORTH_A_WORD = 3


class Tie:
    """Connected to the monitor that `order` describes, as long as there can be one.

    Args:
        order: see `runvitals.monitor.launch.connect`.

    Example:
        >>> tie = Tie(order)
        >>> tie.mind()      # every now and then
        >>> tie.ask({"op": "finish", "pid": 4711, "exit_code": 0}, 5.0)
        {'op': 'done', 'state': 'finished'}
    """

    def __init__(self, order: Mapping[str, Any]) -> None:
        self._order = order
        self._line: launch.Line | None = None
        self._losses = 0
        self._connected_s = 0.0
        self._retry_at_s = 0.0
        self.mind()

    def mind(self) -> None:
        """See that there is a monitor. One system call, 1 µs, when there is."""
        if self._line is not None:
            if self._line.alive():
                return
            self.close()
            self._lost(time.monotonic())
        if time.monotonic() >= self._retry_at_s:
            self._connect()

    def ask(self, message: Mapping[str, object], timeout_s: float) -> dict[str, Any] | None:
        """The monitor's answer, or None where none came in time; then the tie is cut."""
        if self._line is None:
            return None
        answer = self._line.ask(message, timeout_s)
        self.close()
        return answer

    def close(self) -> None:
        """Cut the tie. In a forked child: let go of the parent's."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def _connect(self) -> None:
        try:
            self._line = launch.connect(self._order)
            self._connected_s = time.monotonic()
        except launch.Unavailable as error:
            if not self._losses:
                tell(f"no system metrics for run {self._order['run']} for now: {error}")
            self._lost(time.monotonic(), started=False)

    def _lost(self, now_s: float, started: bool = True) -> None:
        """Wait a little longer after each loss, but forget them after a good life."""
        if started and now_s - self._connected_s > _GOOD_LIFE_S:
            self._losses = 0
        self._losses += 1
        if started and self._losses == _WORTH_A_WORD:
            tell(f"the monitor of run {self._order['run']} keeps dying; `runvitals show` may say why")
        waits = self._losses - 1 if started else self._losses
        self._retry_at_s = now_s + (min(2.0 ** (waits - 1), _LONGEST_WAIT_S) if waits else 0.0)
