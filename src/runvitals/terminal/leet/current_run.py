"""The run at the cursor of a list, which is read only while something of it is shown."""

from __future__ import annotations

import threading
from collections.abc import Callable

from runvitals.terminal.leet.run_data import RunData
from runvitals.terminal.leet.shared_use import SharedUse
from runvitals.terminal.leet.sources.run_source import RunSource


class CurrentRun:
    """One run at a time.

    Args:
        open_run: opens a run.

    Attributes:
        data: the run that was read last; None before.
    """

    def __init__(self, open_run: Callable[[str], RunSource]) -> None:
        self._open = open_run
        self._id: str | None = None
        self._use = SharedUse(self._close)
        self._lock = threading.Lock()
        self.data: RunData | None = None

    def read(self, run_id: str) -> bool:
        """Read a run, or its new records; return whether there are any. It may run in a thread.

        Raises:
            OSError: the run cannot be read.
        """
        with self._use(), self._lock:
            is_new = self._id != run_id
            if is_new:
                self._close()
                self.data = RunData(self._open(run_id))
                self._id = run_id
            assert self.data is not None
            is_new |= self.data.poll()
            while self.data.progress < 1.0:
                is_new |= self.data.poll()
            return is_new

    def close(self) -> None:
        """Close the run as soon as no thread reads it any more. No other run can be read afterwards."""
        self._use.close()

    def _close(self) -> None:
        data, self.data, self._id = self.data, None, None
        if data is not None:
            data.source.close()
