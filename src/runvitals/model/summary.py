"""A run's summary: one value for each metric, computed from the rows of `log()`.

Training processes, readers of journals and the server all compute it here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, TypeGuard

KINDS = ("last", "min", "max", "mean", "none")
"""Kinds of a metric's value in the summary: `define_metric(name, summary=…)`."""
MAX_NAMES = 10_000
"""Maximum number of metrics in a writer's summary; metrics logged later are left out."""
_BYTES_PER_VALUE = 45  # with its time, as JSON
TEXT_CHARACTERS = 1000
"""Longer strings are left out of a summary, as are lists."""


def matches(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern, in which `*` matches any text. Takes linear time.

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
    start, end = len(first), len(name) - len(last)
    for part in rest:
        index = name.find(part, start, end)
        if index < 0:
            return False
        start = index + len(part)
    return True


class SummaryRules:
    """The kind of value that the summary holds of each metric, from `define_metric()`; by default the last.

    An exact name takes precedence over patterns, a longer pattern over shorter ones.

    Example:
        >>> rules = SummaryRules()
        >>> rules.define({"val/*": {"summary": "max"}, "val/loss": {"summary": "min"}})
        >>> rules.kind("val/acc"), rules.kind("val/loss"), rules.kind("lr")
        ('max', 'min', 'last')
    """

    __slots__ = ("_cached_kinds", "_kinds")

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self._cached_kinds: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def define(self, metrics: Mapping[str, Any]) -> None:
        """Add rules by name or pattern. Unknown kinds are ignored."""
        for pattern, definition in metrics.items():
            kind = definition.get("summary") if isinstance(definition, dict) else None
            if kind in KINDS:
                self._kinds[pattern] = kind
        self._cached_kinds = {}

    def kind(self, name: str) -> str:
        """One of `KINDS`: by the name itself, else by the longest pattern that matches."""
        kind = self._cached_kinds.get(name)
        if kind is None:
            matching = (pattern for pattern in self._kinds if matches(pattern, name))
            pattern = name if name in self._kinds else max(matching, key=_by_length, default="")
            kind = self._cached_kinds[name] = self._kinds.get(pattern, "last")
        return kind


def flat(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Put the numbers that are nested in a row of `log()` under dotted names.

    Nested is, for example, the minimum of an array. A row without any is returned as it is.

    Example:
        >>> flat({"loss": 0.5, "weights": {"min": -1.0, "max": 1.0}})
        {'loss': 0.5, 'weights.min': -1.0, 'weights.max': 1.0}
    """
    for value in row.values():
        if type(value) is dict:
            return dict(_leaves(row, ""))
    return row


def _leaves(row: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if type(value) is dict:
            yield from _leaves(value, f"{prefix}{name}.")
        elif not prefix or is_number(value):
            yield prefix + name, value


def _by_length(pattern: str) -> tuple[int, str]:
    return len(pattern), pattern


class WriterSummary:
    """The summary of one writer's rows so far.

    Attributes:
        rules: they apply to rows added from now on.
        values: name → value; for a mean, the sum.
        times: name → when it was last logged, in ms.
        counts: name → number of values in a mean.
    """

    __slots__ = ("counts", "rules", "times", "values")

    def __init__(self) -> None:
        self.rules = SummaryRules()
        self.values: dict[str, Any] = {}
        self.times: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def add(self, row: Mapping[str, Any], time_ms: int) -> None:
        """Add one row of `log()`."""
        row = flat(row)
        if len(self.values) + len(row) > MAX_NAMES:
            free = max(0, MAX_NAMES - len(self.values))
            new = set([name for name in row if name not in self.values][:free])
            row = {name: value for name, value in row.items() if name in self.values or name in new}
        if not self.rules:
            self.values.update(row)
            self.times.update(dict.fromkeys(row, time_ms))
            return
        for name, value in row.items():
            kind = self.rules.kind(name)
            if kind == "last":
                self.values[name] = value
            elif kind == "none" or not is_number(value) or value != value:
                continue
            elif kind == "mean":
                before = self.counts.get(name, 0)
                self.counts[name] = before + 1
                self.values[name] = float(value) + (self.values[name] if before else 0.0)
            else:
                earlier = self.values.get(name)
                better = not is_number(earlier) or (value < earlier if kind == "min" else value > earlier)
                self.values[name] = value if better else earlier
            self.times[name] = time_ms

    def add_many(
        self, name: str, count: int, total: float, least: float, greatest: float, last: float, last_ms: int
    ) -> None:
        """Add several values of a metric, from any writer, by their aggregates."""
        kind = self.rules.kind(name)
        if kind == "last":
            if last_ms < self.times.get(name, last_ms):
                return
            self.values[name] = last
        elif kind == "mean":
            before = self.counts.get(name, 0)
            self.counts[name] = before + count
            self.values[name] = total + (self.values[name] if before else 0.0)
        elif kind != "none":
            earlier = self.values.get(name)
            best = least if kind == "min" else greatest
            if is_number(earlier):
                best = min(best, float(earlier)) if kind == "min" else max(best, float(earlier))
            self.values[name] = best
        self.times[name] = max(last_ms, self.times.get(name, last_ms))

    def values_of(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the summary's values of some metrics."""
        summary = {}
        for name in names:
            if name in self.values and self.rules.kind(name) != "none":
                count = self.counts.get(name) if self.rules.kind(name) == "mean" else None
                summary[name] = self.values[name] / count if count else self.values[name]
        return summary

    def state(self, most_bytes: int = 1 << 30) -> dict[str, Any]:
        """Everything but the rules, as JSON values; see `restore`.

        Args:
            most_bytes: approximate limit of its size as JSON; metrics logged first take precedence.
        """
        values: dict[str, Any] = {}
        for name, value in self.values.items():
            if is_short(value):
                most_bytes -= 2 * len(name) + _BYTES_PER_VALUE + (len(value) if isinstance(value, str) else 0)
                if most_bytes < 0:
                    break
                values[name] = value
        return {
            "values": values,
            "times": {name: self.times[name] for name in values},
            "counts": {name: self.counts[name] for name in values if name in self.counts},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a `state`, which `is_summary_state` has accepted; invalid values in it are ignored.

        Metrics that are not in it are unchanged.
        """
        values, times, counts = state["values"], state["times"], state["counts"]
        self.values.update((name, value) for name, value in values.items() if is_short(value))
        self.times.update((name, time) for name, time in times.items() if type(time) is int)
        self.counts.update((name, n) for name, n in counts.items() if type(n) is int and n > 0)


def is_summary_state(value: object) -> bool:
    """Return whether a value has the form that `WriterSummary.state` returns."""
    return isinstance(value, dict) and all(
        isinstance(value.get(part), dict) for part in ("values", "times", "counts")
    )


def combined_summary(writers: Iterable[WriterSummary], rules: SummaryRules) -> dict[str, Any]:
    """Return the summary of a run: of the last values the newest, of the minima the least, and so on.

    Args:
        rules: of the whole run.
    """
    summary: dict[str, Any] = {}
    newest: dict[str, int] = {}
    counts: dict[str, int] = {}
    for writer in writers:
        for name, value in writer.values.items():
            kind = rules.kind(name)
            if kind == "none" or not is_short(value):
                continue
            time_ms = writer.times.get(name, 0)
            if name not in summary:
                summary[name], newest[name] = value, time_ms
                counts[name] = writer.counts.get(name, 1)
            elif kind == "last":
                if time_ms >= newest[name]:
                    summary[name], newest[name] = value, time_ms
            elif not is_number(value) or not is_number(summary[name]):
                continue
            elif kind == "mean":
                summary[name] += value
                counts[name] += writer.counts.get(name, 1)
            else:
                summary[name] = min(value, summary[name]) if kind == "min" else max(value, summary[name])
    return {
        name: value / counts[name] if rules.kind(name) == "mean" and is_number(value) else value
        for name, value in summary.items()
    }


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value counts towards a minimum, maximum or mean."""
    return isinstance(value, float) or (type(value) is int and value.bit_length() < 1024)


def is_short(value: object) -> bool:
    """Return whether a value may be in a summary: a number, a boolean or a short string."""
    return isinstance(value, (int, float)) or (isinstance(value, str) and len(value) <= TEXT_CHARACTERS)
