"""What state a run is in: the rule that every reader follows, whatever it keeps the records in.

Of each host the newest monitor decides. Its `end` record gives the state; without one the host is running,
or lost once it has been silent for longer than `silence_ms`. A run is running while any of its hosts is; else
the gravest of its hosts' states is the run's.
"""

from __future__ import annotations

MONITOR = "monitor"
TRAIN = "train"
RUNNING = "running"
LOST = "lost"
WORST_FIRST = ("crashed", "failed", "lost", "stopped", "finished")
"""What the other hosts' states give way to, where no host is running any more."""
STATES = (RUNNING, *WORST_FIRST)
ENDED_STATES = ("finished", "failed", "crashed", "stopped")
"""What a writer's `end` record may say."""
SILENT_INTERVALS = 5
SILENT_MS = 10_000


def silence_ms(interval_s: float | None) -> int:
    """How long a monitor that samples every `interval_s` seconds may be silent and still count as running.

    Example:
        >>> silence_ms(1.0), silence_ms(15.0)
        (10000, 75000)
    """
    return max(int(SILENT_INTERVALS * 1000 * (interval_s or 1.0)), SILENT_MS)
