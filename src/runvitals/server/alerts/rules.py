"""Alert rules, on metrics and findings: what a rule is, how it is written, and what is valid.

A rule is a JSON object, or a table of a TOML file:

    name = "GPU idle"
    severity = "warning"
    for = "15m"
    [rule.condition]
    kind = "threshold"
    metric = "gpu.*.gpu"
    statistic = "mean"
    window = "1m"
    operator = "<"
    value = 5
    clear = 10
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from runvitals.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from runvitals.model.filter_text import FilterError, parse
from runvitals.model.run_verdict import FINDING_IDS
from runvitals.server.alerts.maintenance import Maintenance, maintenance_windows

Severity = Literal["info", "warning", "error"]
Statistic = Literal["last", "mean", "min", "max"]
Kind = Literal["threshold", "change", "spread", "silence", "not_finite", "finding", "points"]
"""`points`: what an automation about a metric waits for; it cannot be written as a rule."""
SEVERITIES: Final = ("info", "warning", "error")
STATISTICS: Final = ("last", "mean", "min", "max")
OPERATORS: Final = (">", ">=", "<", "<=")
KINDS: Final = ("threshold", "change", "spread", "silence", "not_finite", "finding")
SILENT: Final = ("metric", "host", "rank", "steps")
"""Of what there may be nothing: a metric, a host, a rank while others log, or steps of the training."""
DIRECTIONS: Final = ("up", "down", "either")
FINDING_SEVERITIES: Final = ("info", "warning", "critical")
"""Of findings, in ascending order."""
MAX_WINDOW_MS: Final = 7 * DAY_MS
MAX_NAME: Final = 100
MAX_METRIC: Final = 200
MAX_TELL: Final = 20
MAX_LISTED: Final = 50
CHANGE_BUCKETS: Final = 4
MAX_BASELINE: Final = 15
"""How many times longer than the window a baseline may be."""
_TELL: Final = re.compile(r"author|members|(?:slack|webhook|apprise):[1-9][0-9]{0,8}", re.ASCII)
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)", re.ASCII)
_UNITS: Final = {"ms": 1, "s": 1000, "m": MINUTE_MS, "min": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
_METRIC: Final = re.compile(r"[^\s\x00-\x1f]+")


class InvalidRule(ValueError):
    """A rule that cannot be understood.

    Attributes:
        fields: what is wrong, by the name of the field.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" for name, text in fields.items()))
        self.fields = dict(fields)


@dataclass(frozen=True, slots=True)
class Feature:
    """A number that is computed for each series of a metric. Rules with the same feature share it.

    Args:
        metric: a key; `*` stands for any text.
        statistic: of the values in the window; `not_finite`: 1 for a value that is no number, else 0;
            `deviations`: how many standard deviations the newest point is away from those before it.
        window_ms: 0 for the last value.
        baseline_ms: the change of the mean against that of the time before the window; 0: none.
        relative: the change in percent of the baseline's mean; of points, as a part of it.
        spread: in percent of the median of the same metric in the same run.
        points: a window of so many points, in the order in which they arrive, in place of `window_ms`. They
            are those that a run logs, on whichever host; for `deviations`, those of all runs of its project.
        points_before: so many points before the window, in place of `baseline_ms`.
    """

    metric: str
    statistic: str = "last"
    window_ms: int = 0
    baseline_ms: int = 0
    relative: bool = False
    spread: bool = False
    points: int = 0
    points_before: int = 0


@dataclass(frozen=True, slots=True)
class RuleCondition:
    """When a rule holds.

    Args:
        fire, clear: it begins to hold beyond `fire`, and holds until the feature is back beyond `clear`.
        operator: which side is beyond; of points also `=` and `!=`.
        absolute: the sign of the feature does not count.
        busy_metric, busy_value: of a silence: only while a series of the run is above this value.
        of: of a silence: one of `SILENT`.
        findings: ids of findings; none: any.
        finding_severity: of findings, at least this one of `FINDING_SEVERITIES`.
    """

    kind: Kind
    feature: Feature | None = None
    operator: str = ">"
    fire: float = 0.0
    clear: float = 0.0
    absolute: bool = False
    of: str = ""
    busy_metric: str = ""
    busy_value: float = 0.0
    findings: tuple[str, ...] = ()
    finding_severity: str = "info"


@dataclass(frozen=True, slots=True)
class AlertRule:
    """A rule.

    Args:
        id: 0 until it is stored.
        for_ms: how long the condition must hold.
        cooldown_ms: how long after it fired a series does not fire again.
        resolve: whether a message says that it is over.
        projects: names; none: all of the entity.
        filter: a filter text; the runs that match it.
        hosts: names, with `*`; none: all.
        tell: `author`, `members`, and destinations such as `slack:3`.
        everywhere: it looks at the hardware of the runs of all teams and users, not at what they log, as
            long as its creator administers the organisation.
    """

    name: str
    condition: RuleCondition
    severity: Severity = "warning"
    for_ms: int = 0
    cooldown_ms: int = 0
    resolve: bool = True
    projects: tuple[str, ...] = ()
    filter: str = ""
    hosts: tuple[str, ...] = ()
    tell: tuple[str, ...] = ()
    maintenance: tuple[Maintenance, ...] = ()
    enabled: bool = True
    id: int = 0
    everywhere: bool = False


@dataclass(slots=True)
class _Reader:
    """Reads the fields of a rule and collects what is wrong with them."""

    values: Mapping[str, Any]
    prefix: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)

    def wrong(self, name: str, text: str) -> None:
        self.fields.setdefault(self.prefix + name, text)

    def text(self, name: str, longest: int, default: str | None = None) -> str:
        value = self._get(name, default)
        if not isinstance(value, str) or (not value.strip() and default is None):
            self.wrong(name, "expected a text")
            return ""
        if len(value) > longest:
            self.wrong(name, f"expected at most {longest} characters")
        return value.strip()

    def choice(self, name: str, choices: tuple[str, ...], default: str | None = None) -> Any:
        value = self._get(name, default)
        if value not in choices:
            self.wrong(name, f"expected one of {', '.join(choices)}")
            return choices[0]
        return value

    def number(self, name: str, default: float | None = None) -> float:
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            self.wrong(name, "expected a number")
            return 0.0
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        value = self._get(name, default)
        if not isinstance(value, bool):
            self.wrong(name, "expected true or false")
            return default
        return value

    def duration(self, name: str, default_ms: int | None = 0) -> int:
        if name not in self.values and default_ms is not None:
            self.read.add(name)
            return default_ms
        value = self._get(name, None)
        try:
            ms = duration_ms(value)
        except ValueError as error:
            self.wrong(name, str(error))
            return 0
        if ms > MAX_WINDOW_MS:
            self.wrong(name, f"expected at most {MAX_WINDOW_MS // HOUR_MS} h")
        return ms

    def texts(self, name: str, longest: int = MAX_METRIC) -> tuple[str, ...]:
        value = self._get(name, ())
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, (list, tuple)) or len(value) > MAX_LISTED:
            self.wrong(name, f"expected a list of at most {MAX_LISTED} texts")
            return ()
        if not all(isinstance(item, str) and 0 < len(item) <= longest for item in value):
            self.wrong(name, f"expected texts of at most {longest} characters")
            return ()
        return tuple(value)

    def refuse_unknown(self) -> None:
        for name in self.values:
            if name not in self.read:
                self.wrong(str(name)[:60], "unknown field")

    def _get(self, name: str, default: Any) -> Any:
        self.read.add(name)
        return self.values.get(name, default)


def rule(definition: Mapping[str, Any], rule_id: int = 0) -> AlertRule:
    """Return the rule of a definition.

    Raises:
        InvalidRule: a field is missing, unknown or invalid.
    """
    reader = _Reader(definition)
    name = reader.text("name", MAX_NAME)
    if not name.isprintable():
        reader.wrong("name", "expected one line of text")
    severity = reader.choice("severity", SEVERITIES, "warning")
    for_ms = reader.duration("for")
    cooldown_ms = reader.duration("cooldown")
    tell = reader.texts("tell")
    for index, target in enumerate(tell):
        if not _TELL.fullmatch(target):
            reader.wrong(f"tell[{index}]", "expected author, members, slack:ID, webhook:ID or apprise:ID")
    if len(tell) > MAX_TELL:
        reader.wrong("tell", f"expected at most {MAX_TELL} receivers")
    parsed = AlertRule(
        name,
        _condition(reader, definition.get("condition")),
        severity,
        for_ms,
        cooldown_ms,
        reader.flag("resolve", True),
        reader.texts("projects", 256),
        _filter(reader),
        reader.texts("hosts"),
        tell,
        _maintenance(reader, definition.get("maintenance", ())),
        reader.flag("enabled", True),
        rule_id,
        reader.flag("everywhere", False),
    )
    reader.read |= {"condition", "maintenance"}
    reader.text("description", 1000, "")
    reader.refuse_unknown()
    if parsed.condition.kind == "silence" and for_ms < 10_000:
        reader.wrong("for", "expected at least 10 s: how long the silence lasts")
    if reader.fields:
        raise InvalidRule(reader.fields)
    return parsed


def is_target(text: str) -> bool:
    """Return whether a text names who is notified: `author`, `members`, or a channel such as `slack:3`."""
    return _TELL.fullmatch(text) is not None


def duration_ms(value: object) -> int:
    """Return a duration: seconds, or a text such as `15m` or `1h`.

    Raises:
        ValueError: something else.

    >>> duration_ms("15m"), duration_ms(90)
    (900000, 90000)
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9:
        return int(value * 1000)
    if isinstance(value, str) and len(value) <= 40:
        parts = _DURATION.findall(value)
        if parts and not _DURATION.sub("", value).strip():
            return int(sum(float(number) * _UNITS[unit] for number, unit in parts))
    raise ValueError("expected a duration such as 90s, 15m or 1h")


def _filter(reader: _Reader) -> str:
    text = reader.text("filter", 2000, "")
    try:
        parse(text)
    except FilterError as error:
        reader.wrong("filter", str(error))
        return ""
    return text


def _maintenance(reader: _Reader, value: Any) -> tuple[Maintenance, ...]:
    try:
        return maintenance_windows(value)
    except ValueError as error:
        reader.wrong("maintenance", str(error))
        return ()


def _condition(outer: _Reader, value: Any) -> RuleCondition:
    if not isinstance(value, Mapping):
        outer.wrong("condition", "expected an object with kind, metric and so on")
        return RuleCondition("threshold")
    reader = _Reader(value, "condition.", outer.fields)
    kind = reader.choice("kind", KINDS)
    condition = _CONDITIONS[kind](reader)
    reader.refuse_unknown()
    return condition


def _metric(reader: _Reader) -> str:
    metric = reader.text("metric", MAX_METRIC)
    if metric and not _METRIC.fullmatch(metric):
        reader.wrong("metric", "expected a key such as gpu.0.gpu, or a pattern such as gpu.*.gpu")
    return metric


def _threshold(reader: _Reader) -> RuleCondition:
    metric = _metric(reader)
    statistic = reader.choice("statistic", STATISTICS, "last")
    window = reader.duration("window", 0)
    if statistic != "last" and window < 1000:
        reader.wrong("window", "expected at least 1 s")
    operator = reader.choice("operator", OPERATORS, ">")
    fire = reader.number("value")
    clear = reader.number("clear", fire)
    if clear != fire and (clear > fire) == operator.startswith(">"):
        side = "at most" if operator.startswith(">") else "at least"
        reader.wrong("clear", f"expected {side} the value at which the rule fires")
    feature = Feature(metric, statistic, 0 if statistic == "last" else window)
    return RuleCondition("threshold", feature, operator, fire, clear)


def _change(reader: _Reader) -> RuleCondition:
    metric, window = _metric(reader), reader.duration("window", None)
    baseline = reader.duration("baseline", None)
    if window < 1000:
        reader.wrong("window", "expected at least 1 s")
    elif not window <= baseline <= MAX_BASELINE * window:
        reader.wrong("baseline", f"expected 1 to {MAX_BASELINE} times the window")
    direction = reader.choice("direction", DIRECTIONS, "either")
    by, relative = reader.number("by"), reader.flag("relative", True)
    if by < 0:
        reader.wrong("by", "expected a positive number")
    clear = reader.number("clear", by)
    if not 0 <= clear <= by:
        reader.wrong("clear", "expected at most the change at which the rule fires")
    feature = Feature(metric, "mean", window, baseline, relative)
    if direction == "down":
        return RuleCondition("change", feature, "<", -by, -clear)
    return RuleCondition("change", feature, ">", by, clear, absolute=direction == "either")


def _spread(reader: _Reader) -> RuleCondition:
    metric, window = _metric(reader), reader.duration("window", MINUTE_MS)
    by = reader.number("by")
    clear = reader.number("clear", by)
    direction = reader.choice("direction", DIRECTIONS, "either")
    if not 0 <= clear <= by:
        reader.wrong("clear", "expected at most the distance at which the rule fires")
    feature = Feature(metric, "mean", max(window, 1000), spread=True)
    if direction == "down":
        return RuleCondition("spread", feature, "<", -by, -clear)
    return RuleCondition("spread", feature, ">", by, clear, absolute=direction == "either")


def _silence(reader: _Reader) -> RuleCondition:
    of = reader.choice("of", SILENT, "metric")
    metric = _metric(reader) if of == "metric" else ""
    busy = reader.text("busy_metric", MAX_METRIC, "")
    return RuleCondition(
        "silence",
        Feature(metric) if metric else None,
        of=of,
        busy_metric=busy,
        busy_value=reader.number("busy_value", 0.0),
    )


def _not_finite(reader: _Reader) -> RuleCondition:
    return RuleCondition("not_finite", Feature(_metric(reader), "not_finite"), ">", 0.5, 0.5)


def _finding(reader: _Reader) -> RuleCondition:
    ids = reader.texts("findings")
    unknown = next((name for name in ids if name not in FINDING_IDS), None)
    if unknown is not None:
        allowed = f"expected some of {', '.join(FINDING_IDS)}"
        reader.wrong("findings", f"there is no finding {unknown[:60]!r}; {allowed}")
    severity = reader.choice("severity", FINDING_SEVERITIES, "warning")
    return RuleCondition("finding", findings=ids, finding_severity=severity)


_CONDITIONS: Final = {
    "threshold": _threshold,
    "change": _change,
    "spread": _spread,
    "silence": _silence,
    "not_finite": _not_finite,
    "finding": _finding,
}
