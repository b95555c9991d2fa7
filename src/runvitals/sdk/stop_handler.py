"""Being asked to stop, by a person at the server, Ctrl-C or a scheduler, told to the training's own code.

There is no thread that waits for it. The monitor interrupts the process (SIGINT), and Python calls the
handler between two instructions of the main thread. It is set only where `on_stop()` was called.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class StopHandler:
    """Calls functions at the first SIGINT; later ones do what they did before.

    Args:
        over: whether the run has ended, and a SIGINT is no longer its affair.

    Attributes:
        asked: the run was asked to stop.

    Raises:
        ValueError: another thread than the main one: Python sets signal handlers there only.
    """

    def __init__(self, over: Callable[[], bool]) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("on_stop() must be called in the main thread, where Python handles signals")
        self.asked = False
        self._over = over
        self._pid = os.getpid()
        self._callbacks: list[Callable[[], object]] = []
        self._before: Any = signal.signal(signal.SIGINT, self._interrupted)

    def add(self, callback: Callable[[], object]) -> None:
        """Have a function called, after those before it."""
        self._callbacks.append(callback)

    def restore(self) -> None:
        """Put back what handled SIGINT before, unless somebody has taken our place. A thread that is
        not the main one cannot; then every signal is passed on."""
        ours = signal.getsignal(signal.SIGINT) == self._interrupted
        if ours and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._before_or_default())

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        # A forked child (a data loader's worker) has its parent's handler, but is no process of the run's.
        if self.asked or self._over() or os.getpid() != self._pid:
            self._pass_on(number, frame)
            return
        self.asked = True
        for callback in self._callbacks:
            callback()

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        if callable(self._before):
            self._before(number, frame)
        elif self._before != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _before_or_default(self) -> Any:
        """None is a handler that was not set from Python, and cannot be set again."""
        return signal.SIG_DFL if self._before is None else self._before
