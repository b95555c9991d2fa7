"""A run's summary: one value for each metric, from the rows of `log()`. The one rule of trainings, readers of
journals, and the server.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeGuard

KINDS = ("last", "min", "max", "mean", "none")
"""What of a metric's values the summary has: `define_metric(name, summary=…)`."""
MAX_NAMES = 10_000
"""Metrics in a writer's summary: those that are logged first."""
_BYTES_OF_VALUE = 45  # with its time, as JSON
TEXT_CHARACTERS = 1000
"""Longer texts, lists and mappings are no part of a summary."""


def matches(pattern: str, name: str) -> bool:
    """Whether a name is one that a pattern stands for; `*` stands for any letters. In linear time.

    Example:
        >>> matches("val/*", "val/loss"), matches("*loss", "loss/a")
        (True, False)
    """
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == name
    last = rest.pop()
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    place, end = len(first), len(name) - len(last)
    for part in rest:
        found = name.find(part, place, end)
        if found < 0:
            return False
        place = found + len(part)
    return True


class Definitions:
    """What the summary has of each metric, as `define_metric()` says; of others the last value. A name itself
    goes before patterns, a longer pattern before shorter ones.

    Example:
        >>> definitions = Definitions()
        >>> definitions.define({"val/*": {"summary": "max"}, "val/loss": {"summary": "min"}})
        >>> definitions.kind("val/acc"), definitions.kind("val/loss"), definitions.kind("lr")
        ('max', 'min', 'last')
    """

    __slots__ = ("_kinds", "_known")

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self._known: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def define(self, metrics: Mapping[str, Any]) -> None:
        """Take in names or patterns with their definitions; what is not understood is passed over."""
        for pattern, said in metrics.items():
            kind = said.get("summary") if isinstance(said, dict) else None
            if kind in KINDS:
                self._kinds[pattern] = kind
        self._known = {}

    def kind(self, name: str) -> str:
        """One of `KINDS`: what the name itself was defined as, else the longest pattern that matches."""
        kind = self._known.get(name)
        if kind is None:
            found = (pattern for pattern in self._kinds if matches(pattern, name))
            pattern = name if name in self._kinds else max(found, key=_by_length, default="")
            kind = self._known[name] = self._kinds.get(pattern, "last")
        return kind


def _by_length(pattern: str) -> tuple[int, str]:
    return len(pattern), pattern


class Tally:
    """What one writer's rows come to so far.

    Attributes:
        values: name → value, by the definitions that held when the rows came; of a mean the sum.
        times: name → when it came last, in ms.
        counts: name → how many values a mean is of.
    """

    __slots__ = ("counts", "definitions", "times", "values")

    def __init__(self) -> None:
        self.definitions = Definitions()
        self.values: dict[str, Any] = {}
        self.times: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def add(self, row: Mapping[str, Any], time_ms: int) -> None:
        """Take in one row of `log()`."""
        if len(self.values) + len(row) > MAX_NAMES:
            room = max(0, MAX_NAMES - len(self.values))
            fresh = set([name for name in row if name not in self.values][:room])
            row = {name: value for name, value in row.items() if name in self.values or name in fresh}
        if not self.definitions:
            self.values.update(row)
            self.times.update(dict.fromkeys(row, time_ms))
            return
        for name, value in row.items():
            kind = self.definitions.kind(name)
            if kind == "last":
                self.values[name] = value
            elif kind == "none" or not is_number(value) or value != value:
                continue
            elif kind == "mean":
                before = self.counts.get(name, 0)
                self.counts[name] = before + 1
                self.values[name] = float(value) + (self.values[name] if before else 0.0)
            else:
                known = self.values.get(name)
                better = not is_number(known) or (value < known if kind == "min" else value > known)
                self.values[name] = value if better else known
            self.times[name] = time_ms

    def add_many(
        self, name: str, count: int, total: float, least: float, greatest: float, last: float, last_ms: int
    ) -> None:
        """Take in what some rows, of whichever writer, have of a metric."""
        kind = self.definitions.kind(name)
        if kind == "last":
            if last_ms < self.times.get(name, last_ms):
                return
            self.values[name] = last
        elif kind == "mean":
            before = self.counts.get(name, 0)
            self.counts[name] = before + count
            self.values[name] = total + (self.values[name] if before else 0.0)
        elif kind != "none":
            known = self.values.get(name)
            best = least if kind == "min" else greatest
            if is_number(known):
                best = min(best, float(known)) if kind == "min" else max(best, float(known))
            self.values[name] = best
        self.times[name] = max(last_ms, self.times.get(name, last_ms))

    def shown(self, names: Iterable[str]) -> dict[str, Any]:
        """The summary's values of some metrics."""
        found = {}
        for name in names:
            if name in self.values and self.definitions.kind(name) != "none":
                count = self.counts.get(name) if self.definitions.kind(name) == "mean" else None
                found[name] = self.values[name] / count if count else self.values[name]
        return found

    def state(self, most_bytes: int = 1 << 30) -> dict[str, Any]:
        """All of it but the definitions, as JSON can hold it; see `restore`.

        Args:
            most_bytes: that it takes, about: the metrics that were logged first go before others.
        """
        values: dict[str, Any] = {}
        for name, value in self.values.items():
            if is_short(value):
                most_bytes -= 2 * len(name) + _BYTES_OF_VALUE + (len(value) if isinstance(value, str) else 0)
                if most_bytes < 0:
                    break
                values[name] = value
        return {
            "values": values,
            "times": {name: self.times[name] for name in values},
            "counts": {name: self.counts[name] for name in values if name in self.counts},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, and what of it is as it should be; see `is_state`. Of metrics that are
        not in it nothing changes.
        """
        values, times, counts = state["values"], state["times"], state["counts"]
        self.values.update((name, value) for name, value in values.items() if is_short(value))
        self.times.update((name, time) for name, time in times.items() if type(time) is int)
        self.counts.update((name, one) for name, one in counts.items() if type(one) is int and one > 0)


def is_state(value: object) -> bool:
    """Whether a value can be what `Tally.state` gave."""
    return isinstance(value, dict) and all(
        isinstance(value.get(part), dict) for part in ("values", "times", "counts")
    )


def combined(tallies: Iterable[Tally], definitions: Definitions) -> dict[str, Any]:
    """The summary of all writers of a run: the newest of last values, the least of the least …

    Args:
        definitions: of the whole run.
    """
    found: dict[str, Any] = {}
    newest: dict[str, int] = {}
    counts: dict[str, int] = {}
    for tally in tallies:
        for name, value in tally.values.items():
            kind = definitions.kind(name)
            if kind == "none" or not is_short(value):
                continue
            time_ms = tally.times.get(name, 0)
            if name not in found:
                found[name], newest[name] = value, time_ms
                counts[name] = tally.counts.get(name, 1)
            elif kind == "last":
                if time_ms >= newest[name]:
                    found[name], newest[name] = value, time_ms
            elif not is_number(value) or not is_number(found[name]):
                continue
            elif kind == "mean":
                found[name] += value
                counts[name] += tally.counts.get(name, 1)
            else:
                found[name] = min(value, found[name]) if kind == "min" else max(value, found[name])
    return {
        name: value / counts[name] if definitions.kind(name) == "mean" and is_number(value) else value
        for name, value in found.items()
    }


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value counts in a least, greatest or mean one."""
    return isinstance(value, float) or (type(value) is int and value.bit_length() < 1024)


def is_short(value: object) -> bool:
    """Whether a value may be in a summary: a number, a truth value, a short text."""
    return isinstance(value, (int, float)) or (isinstance(value, str) and len(value) <= TEXT_CHARACTERS)
