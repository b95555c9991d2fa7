"""Reports a stop request (from a user at the server, Ctrl-C or a scheduler) to the training's own code.

No thread waits for it. The monitor sends SIGINT, and Python calls the handler between two bytecode
instructions of the main thread. The handler is installed only if `on_stop()` is called.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class StopHandler:
    """Calls the registered functions on the first SIGINT. Later ones go to the previous handler.

    Args:
        is_finished: returns whether the run has finished; SIGINT then goes to the previous handler.

    Attributes:
        requested: whether the run was asked to stop.

    Raises:
        ValueError: not created in the main thread, the only one in which Python sets signal handlers.
    """

    def __init__(self, is_finished: Callable[[], bool]) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("on_stop() must be called in the main thread, which handles signals")
        self.requested = False
        self._is_finished = is_finished
        self._pid = os.getpid()
        self._callbacks: list[Callable[[], object]] = []
        self._before: Any = signal.signal(signal.SIGINT, self._on_interrupt)

    def add(self, callback: Callable[[], object]) -> None:
        """Register a function. Functions are called in the order of registration."""
        self._callbacks.append(callback)

    def restore(self) -> None:
        """Restore the previous SIGINT handler, unless ours was replaced.

        Only the main thread can do this. Otherwise our handler stays, and forwards every signal to the
        previous one.
        """
        ours = signal.getsignal(signal.SIGINT) == self._on_interrupt
        if ours and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._before_or_default())

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        # A forked child, such as a data loader's worker, inherits the handler but is not attached to the run.
        if self.requested or self._is_finished() or os.getpid() != self._pid:
            self._forward(number, frame)
            return
        self.requested = True
        for callback in self._callbacks:
            callback()

    def _forward(self, number: int, frame: FrameType | None) -> None:
        if callable(self._before):
            self._before(number, frame)
        elif self._before != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _before_or_default(self) -> Any:
        """Return the previous handler; the default for one not set from Python, which cannot be restored."""
        return signal.SIG_DFL if self._before is None else self._before
