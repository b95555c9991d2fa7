"""How a day is divided: samples are added in windows of fixed times, in ascending order.

So the sums are the same to the last bit whether a day is computed at once or while it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from runvitals.model.durations import MINUTE_MS
from runvitals.server.alerts.ready_rules import HUNG_MS
from runvitals.server.usage.days import Day

WINDOW_MS: Final = 15 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of how time counts.

    Args:
        silence_ms: two samples further apart than this have a gap between them.
        idle_percent, idle_ms: a device is idle in stretches of at least this time in which its utilisation is
            below this.
    """

    silence_ms: int
    idle_percent: float = 5.0
    idle_ms: int = 15 * MINUTE_MS

    @property
    def margin_ms(self) -> int:
        """How much around a day is read, so that what begins or ends outside of it counts right."""
        return max(self.silence_ms, self.idle_ms, HUNG_MS)


def window_ends(day: Day, rules: Rules, done_ms: int, until_ms: int) -> Iterator[int]:
    """The ends of the windows of a day that follow `done_ms`, up to the one in which `until_ms` lies."""
    final, end = day.end_ms + rules.margin_ms, done_ms
    while end < min(until_ms, final):
        end = min((end // WINDOW_MS + 1) * WINDOW_MS, final)
        yield end
