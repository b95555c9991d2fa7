"""Replays a run: the position in its time, which moves faster or slower than the clock."""

from __future__ import annotations

import re
from collections.abc import Callable

from runvitals.terminal.leet import axes
from runvitals.terminal.leet.braille import Row

SPEEDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 10_000.0)
_BAR = 20


def speed_of(text: str) -> float:
    """Return the speed in an argument such as `10x` or `0.5`, or raise ValueError."""
    if not re.fullmatch(r"\d{1,6}(\.\d{1,3})?x?", text) or not float(text.rstrip("x")):
        raise ValueError(f"expected a speed such as 10x, not {text[:40]!r}")
    return float(text.rstrip("x"))


class Replay:
    """The position of a replay, in ms UTC of the run.

    Args:
        speed: how much faster than the clock.
        clock: in s, monotonic.

    Example:
        >>> replay = Replay(10.0, time.monotonic)
        >>> replay.begin(start_ms, end_ms)
        >>> replay.position()      # 3 s later
        start_ms + 30_000.0
    """

    def __init__(self, speed: float, clock: Callable[[], float]) -> None:
        self.speed = speed
        self.is_paused = False
        self._clock = clock
        self._start_ms = self._end_ms = self._at_ms = 0.0
        self._since_s = 0.0

    def begin(self, start_ms: float, end_ms: float) -> None:
        """Start at the beginning of a run."""
        self._start_ms = self._at_ms = start_ms
        self._end_ms, self._since_s = end_ms, self._clock()

    def set_end(self, end_ms: float) -> None:
        """Move the end of the replay to that of a run that is still running."""
        self._end_ms = max(end_ms, self._end_ms)

    def position(self) -> float:
        """Return the present time of the replay in ms UTC, at most the end of the run."""
        now_s = self._clock()
        if not self.is_paused:
            self._at_ms = min(self._at_ms + (now_s - self._since_s) * 1000.0 * self.speed, self._end_ms)
        self._since_s = now_s
        return self._at_ms

    def toggle_pause(self) -> None:
        """Pause, or continue; at the end, start again."""
        at_ms = self.position()
        if at_ms >= self._end_ms and not self.is_paused:
            self._at_ms = self._start_ms
        else:
            self.is_paused = not self.is_paused

    def seek(self, share: float) -> None:
        """Move by a share of the run."""
        at_ms = self.position() + share * (self._end_ms - self._start_ms)
        self._at_ms = min(max(at_ms, self._start_ms), self._end_ms)

    def change_speed(self, by: int) -> None:
        """Go faster (1) or slower (-1)."""
        self.position()
        nearest = min(range(len(SPEEDS)), key=lambda index: abs(SPEEDS[index] - self.speed))
        self.speed = SPEEDS[min(max(nearest + by, 0), len(SPEEDS) - 1)]

    def row(self) -> Row:
        """Return speed, elapsed time and progress bar for the header."""
        at_ms, length_ms = self.position(), max(self._end_ms - self._start_ms, 1.0)
        done = round((at_ms - self._start_ms) / length_ms * _BAR)
        mark = "⏸" if self.is_paused else "⏵"
        progress = f" {axes.elapsed(at_ms - self._start_ms)} of {axes.elapsed(length_ms)} "
        return [
            (f" {mark} {self.speed:g}×", "value"),
            (progress, ""),
            ("━" * done, "value"),
            ("─" * (_BAR - done), "dim"),
        ]
