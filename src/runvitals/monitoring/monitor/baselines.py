"""Counters that start at 0 with the run, from running totals that may start anywhere and be reset."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NAN = float("nan")
INFINITY = float("inf")
# A sum of fractions may be lower by this share without a reset.
ROUNDING = 1e-9


class Baselines:
    """Turns running totals of sources into counters that start at 0 with the run.

    A total that falls was reset, for example because a driver was reloaded. Its value at that tick is NaN (a
    gap), and the counter continues from its previous value. If the next total is as high as before, only that
    one reading was wrong, and nothing is added.

    Attributes:
        fresh: baselines that are not in the journal yet; the caller writes them and empties this. Those of
            the previous monitor are included, so that the file of each monitor is sufficient for the next
            one.
        fallen: the totals that fell for the first time, key → (before, after); the caller reports them and
            empties this.

    Example:
        >>> baselines, values = Baselines(), {}
        >>> baselines.add({"disk.in": 100.0}, values)
        >>> baselines.add({"disk.in": 130.0}, values)
        >>> values
        {'disk.in': 30.0}
    """

    __slots__ = ("_baselines", "_reset", "_unsettled", "fallen", "fresh")

    def __init__(self, base: Mapping[str, float] | None = None) -> None:
        # Key → [baseline, last total]. Increments while no monitor was running are included.
        self._baselines: dict[str, list[float]] = {key: [total, total] for key, total in (base or {}).items()}
        self._reset: set[str] = set()
        # Those that fell at the last tick, as they were before.
        self._unsettled: dict[str, list[float]] = {}
        self.fresh: dict[str, float] = dict(base or {})
        self.fallen: dict[str, tuple[float, float]] = {}

    def add(self, totals: Mapping[str, float], values: dict[str, float]) -> None:
        """Add each total, counted from the run's start, to the values."""
        if self._unsettled:
            self._settle(totals)
        baselines = self._baselines
        for key, total in totals.items():
            if type(total) is not int and type(total) is not float and not isinstance(total, (float, int)):
                values[key] = total  # rejected and reported when the sample is written
                continue
            entry = baselines.get(key)
            if entry is None:
                entry = baselines[key] = [total, total]
                self.fresh[key] = total
            base, last = entry
            if total < last:
                values[key] = self._fall(key, entry, total)
            else:
                entry[1] = total
                values[key] = total - base

    def leave_out(self, key: str, total: float) -> None:
        """Continue a counter from this total, as if it had not grown since the last one."""
        entry = self._baselines.get(key)
        if entry is not None:
            entry[0] += total - entry[1]
            entry[1] = total

    def _fall(self, key: str, entry: list[float], total: float) -> float:
        base, last = entry
        if last == INFINITY:  # that was no total: continue from the baseline
            entry[:] = min(base, total), total
            self.fresh[key] = entry[0]
            return total - entry[0]
        if last - total <= ROUNDING * abs(last):
            return last - base
        if key not in self._reset:
            self._reset.add(key)
            self.fallen[key] = last, total
        self._unsettled[key] = [base, last]
        entry[:] = total - (last - base), total
        self.fresh[key] = entry[0]
        return NAN

    def _settle(self, totals: Mapping[str, float]) -> None:
        for key in self._unsettled.keys() & totals.keys():
            base, last = self._unsettled.pop(key)
            total = totals[key]
            if isinstance(total, (float, int)) and total >= last:
                self._baselines[key][:] = base, last
                self.fresh[key] = base
