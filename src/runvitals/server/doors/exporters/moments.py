"""Computes the derived metrics of one host, as their inputs arrive: a scrape may come in several requests."""

from __future__ import annotations

from collections.abc import Iterator

from runvitals.server.doors.exporters.translation import Derived, ScrapedMoment, possible

_MAX_PENDING = 16
"""Times of one metric that wait for more inputs."""
_LATER = 2
"""So many later times have inputs: no more come for this one."""


class DerivedMetric:
    """One derived metric of one host.

    A time is complete with the inputs that the metric requires, or with those of the time before. It is also
    taken as complete when inputs of two later times have arrived: a device has disappeared.
    """

    def __init__(self, of: Derived) -> None:
        self._of = of
        self._pending: dict[int, dict[str, float]] = {}
        self._before: ScrapedMoment | None = None

    def add(self, name: str, t: int, value: float) -> None:
        """Add the value of an input. Times before the last complete one are ignored."""
        if self._before is None or t > self._before.t:
            self._pending.setdefault(t, {})[name] = value

    def pop_completed(self) -> Iterator[ScrapedMoment]:
        """Yield the moments that have become complete, with what was computed."""
        times = sorted(self._pending)
        for index, t in enumerate(times):
            if not self._is_complete(t, later=len(times) - index - 1):
                break
            values = self._pending.pop(t)
            if self._of.required <= values.keys():
                computed = self._of.compute(self._before, t, values).items()
                outputs = {key: value for key, value in computed if _is_possible(key, value)}
                self._before = ScrapedMoment(t, values, outputs)
                yield self._before
        for t in sorted(self._pending)[: max(0, len(self._pending) - _MAX_PENDING)]:
            del self._pending[t]

    def _is_complete(self, t: int, later: int) -> bool:
        if later >= _LATER:
            return True
        values = self._pending[t]
        if self._of.required:
            return self._of.required <= values.keys()
        return self._before is not None and self._before.values.keys() <= values.keys()


def _is_possible(key: str, value: float) -> bool:
    least, most = possible(key)
    return least <= value <= most
