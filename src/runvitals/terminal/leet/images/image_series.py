"""The images that a run logged under one name, and which of them is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from runvitals.model.logged_media import LoggedMedia


class ImageSeries:
    """Images by step: the newest is shown, until the user chooses another.

    Args:
        name: under which they were logged.

    Attributes:
        count: their number at the last read.
        problem: why they could not be read; "" if they could.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.problem = ""
        self._records: Sequence[LoggedMedia] = ()
        self._index = 0
        self._is_at_end = True

    def set_records(self, records: Sequence[LoggedMedia], count: int) -> None:
        """Set what was logged so far."""
        self._records, self.count, self.problem = records, count, ""
        self.go(len(records) if self._is_at_end else self._index)

    @property
    def record(self) -> LoggedMedia | None:
        """The record that is shown."""
        return self._records[self._index] if self._records else None

    @property
    def position(self) -> str:
        """Which one it is, in words."""
        record = self.record
        if record is None:
            return ""
        step = "" if record.step is None else f"step {record.step:g} · "
        return f"{step}{self._index + 1} of {len(self._records)}"

    def go(self, index: int) -> None:
        """Show the record with an index, or the nearest one."""
        end = max(len(self._records) - 1, 0)
        self._index = min(max(index, 0), end)
        self._is_at_end = self._index == end

    def scrub(self, records: int) -> None:
        """Show a later or an earlier record."""
        self.go(self._index + records)

    def to_end(self, last: bool) -> None:
        """Show the first or the last record."""
        self.go(len(self._records) if last else 0)

    def to_step(self, step: float) -> None:
        """Show what was logged last up to a step."""
        steps = [math.inf if record.step is None else record.step for record in self._records]
        self.go(max((index for index, at in enumerate(steps) if at <= step), default=0))
