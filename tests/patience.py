"""The time that a test waits for something to happen before it fails.

Long enough for a machine that is busy with other work: a test that passes never waits this long.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 120.0
_PAUSE_S = 0.05


def eventually(holds: Callable[[], object]) -> None:
    """Wait until a condition holds.

    Raises:
        AssertionError: it did not hold within `PATIENCE_S`.
    """
    give_up_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < give_up_s, f"the condition did not hold within {PATIENCE_S:.0f} s"
        time.sleep(_PAUSE_S)
