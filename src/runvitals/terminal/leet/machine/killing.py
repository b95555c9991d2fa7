"""Ends a process: the one that was shown, and no other that got its PID since."""

from __future__ import annotations

import os
import signal

from runvitals.monitoring.collectors.base import read_text
from runvitals.terminal.top.processes import ProcessLine


def kill(process: ProcessLine, number: signal.Signals, proc: str = "/proc") -> None:
    """Send a signal to a process.

    Raises:
        ProcessLookupError: it has ended.
        PermissionError: it belongs to another user.
    """
    handle = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None
    try:
        fields = (read_text(f"{proc}/{process.pid}/stat") or "").rpartition(")")[2].split()
        if len(fields) < 20 or int(fields[19]) != process.started:
            raise ProcessLookupError(f"process {process.pid} has ended")
        if handle is None:
            os.kill(process.pid, number)
        else:
            signal.pidfd_send_signal(handle, number)
    finally:
        if handle is not None:
            os.close(handle)
