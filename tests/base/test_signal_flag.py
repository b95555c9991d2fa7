"""The flag of signal handlers."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from runvitals.base.signal_flag import SignalFlag
from tests.patience import PATIENCE_S


def test_waits_until_the_time_is_over() -> None:
    flag = SignalFlag()
    assert not flag.wait(0.001)
    assert not flag.is_set()
    flag.set()
    assert flag.wait(PATIENCE_S)


def test_a_handler_may_set_it_wherever_its_thread_is_in_wait() -> None:
    """Handlers run between any two lines of the main thread, as this one does."""
    flag = SignalFlag()

    def handle(frame: FrameType, event: str, argument: object) -> Any:
        flag.set()
        return handle

    before = sys.gettrace()
    sys.settrace(handle)
    try:
        is_set = flag.wait(PATIENCE_S)
    finally:
        sys.settrace(before)
    assert is_set
