"""For all tests: processes that they start have the signals of a terminal's."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """What runs under `nohup`, or was started with `&` in a script, ignores these, and so do its children."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
