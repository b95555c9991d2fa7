"""Rules: what one looks for, what it needs, and how it reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite

import numpy as np

from runvitals.findings.devices import Device
from runvitals.findings.finding import Confidence, Evidence, Finding, Severity, Undecided
from runvitals.findings.observed_run import ObservedHost, ObservedRun
from runvitals.findings.spans import Span, from_to_ms, mask_of, median
from runvitals.findings.windows import Floats, HostColumns, TimeWindows
from runvitals.model.metrics import DEFINITIONS

DOCS = "reference/findings.md#"
"""In the documentation."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Where a rule found what it looks for.

    Args:
        spans: of windows, at least one.
        cost_s: device-seconds that were lost.
        open: whether it still goes on, where that does not follow from the spans.
    """

    severity: Severity
    confidence: Confidence
    spans: Sequence[Span]
    text: str
    evidence: Sequence[Evidence] = ()
    devices: Sequence[Device] = ()
    hosts: Sequence[str] = ()
    cost_s: float = 0.0
    advice: str | None = None
    share: float | None = None
    from_ms: int | None = None
    to_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Abstention:
    """Why a rule cannot decide, and which keys would help."""

    why: str
    needs: tuple[str, ...] = ()


Judgement = Sequence[Occurrence] | Abstention


@dataclass(frozen=True, slots=True)
class FindingRule:
    """A rule.

    Args:
        id: as in the API; it never changes.
        title: what it finds, for people.
        meaning: what that means, a paragraph for the documentation.
        decided: how it is decided, with thresholds and their source.
        advice: what to do about it.
        needs: keys without which it abstains.
        judge: looks for it.
        order: of headlines where costs are near: broken 0, hung 1, idle 2, limited by something outside 3,
            input 4, communication 5, inefficient 6, description 7.
    """

    id: str
    title: str
    meaning: str
    decided: str
    advice: str
    needs: tuple[str, ...]
    judge: Callable[[ObservedRun], Judgement] = field(repr=False)
    order: int = 6

    def apply(self, run: ObservedRun) -> list[Finding] | Undecided:
        """Judge a run."""
        judgement = self.judge(run)
        if isinstance(judgement, Abstention):
            return Undecided(self.id, judgement.needs or self.needs, judgement.why)
        return [self._finding(run, occurrence) for occurrence in judgement]

    def _finding(self, run: ObservedRun, occurrence: Occurrence) -> Finding:
        windows = run.windows
        from_ms, to_ms = from_to_ms(windows, occurrence.spans)
        from_ms = max(occurrence.from_ms or from_ms, run.started_ms)
        end_ms = max(run.ended_ms or run.now_ms, from_ms)
        to_ms = max(min(occurrence.to_ms or to_ms, end_ms), from_ms)
        is_open = run.ended_ms is None and to_ms >= end_ms - 3 * windows.width_ms
        covered_ms = sum(len(span) for span in occurrence.spans) * windows.width_ms
        if len(occurrence.spans) == 1:
            covered_ms = min(covered_ms, to_ms - from_ms)
        share = occurrence.share
        if share is None:
            share = covered_ms / run.duration_ms
        devices = occurrence.devices
        hosts = tuple(dict.fromkeys([*occurrence.hosts, *(device.host.name for device in devices)]))
        hours = max(occurrence.cost_s, 0.0) / 3600 if isfinite(occurrence.cost_s) else 0.0
        price = run.price_per_device_hour
        return Finding(
            id=self.id,
            severity=occurrence.severity,
            confidence=occurrence.confidence,
            from_ms=from_ms,
            to_ms=None if is_open else to_ms,
            share=min(max(share, 0.0), 1.0) if isfinite(share) else 0.0,
            hosts=hosts or tuple(host.name for host in run.hosts),
            devices=tuple(sorted({device.index for device in devices})),
            ranks=tuple(sorted({device.rank for device in devices if device.rank is not None})),
            text=occurrence.text,
            evidence=tuple(occurrence.evidence),
            device_hours=hours,
            money=None if price is None else round(hours * price, 2),
            advice=occurrence.advice or self.advice,
            docs=DOCS + self.id,
        )


def evidence(
    columns: HostColumns,
    key: str | None,
    where: Sequence[Span],
    normal: float | None = None,
    *,
    value: Floats | None = None,
    unit: str | None = None,
) -> list[Evidence]:
    """Return the median of a series in some spans as evidence; nothing if it has no value there.

    Of a counter whose growth decided, the evidence is its rate, as charts show it.

    Args:
        normal: what it is compared with.
        value: the column, if it is not the mean of the series itself.
    """
    if key is None:
        return []
    column = columns.mean(key) if value is None else value
    middle = median(column, mask_of(where, len(column)))
    if not np.isfinite(middle):
        return []
    match = DEFINITIONS.find(key)
    known_unit = match.metric.unit if match else ""
    unit = known_unit if unit is None else unit
    rate = DEFINITIONS.rate_of.get(match.metric.key) if match else None
    if match and rate is not None and unit == rate.unit != known_unit:
        key = rate.key.format(**match.labels)
    return [Evidence(key, columns.name, middle, unit, normal)]


def names_of(devices: Sequence[Device], run: ObservedRun) -> str:
    """Name devices in a sentence: `GPU 3`, `GPUs 0 to 7`, `GPU 3 of node0`, `all 32 GPUs`."""
    if not devices:
        return "the devices"
    kind = devices[0].plural
    if len(devices) == len(run.devices) > 2:
        return f"all {len(devices)} {kind}"
    if len(run.hosts) == 1:
        if len(devices) == 1:
            return devices[0].label
        return f"{kind} {numbers([device.index for device in devices])}"
    by_host: dict[str, list[int]] = {}
    for device in devices:
        by_host.setdefault(device.host.name, []).append(device.index)
    if len(by_host) > 3:
        return f"{len(devices)} {kind} of {len(by_host)} hosts"
    parts = [
        f"{kind if len(each) > 1 else kind[:-1]} {numbers(each)} of {name}" for name, each in by_host.items()
    ]
    return enumeration(parts)


def capitalised(text: str) -> str:
    """Return a text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def numbers(values: Iterable[int]) -> str:
    """Write numbers in a sentence: `1, 2 and 5`, `0 to 7`."""
    ordered = sorted(set(values))
    if len(ordered) > 2 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]} to {ordered[-1]}"
    return enumeration([str(value) for value in ordered])


def enumeration(texts: Sequence[str]) -> str:
    """Join texts in a sentence: `a, b and c`."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def duration_text(seconds: float) -> str:
    """Write a duration: `45 s`, `12 min`, `4 h 05 min`, `3 days`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest:02} min" if hours < 48 else f"{round(hours / 24)} days"


def seconds_of(spans: Sequence[Span], windows: TimeWindows) -> float:
    """Return how long spans are together."""
    return sum(len(span) for span in spans) * windows.width_s


def hosts_with(run: ObservedRun, *keys: str) -> list[ObservedHost]:
    """Return the hosts that have all these keys."""
    return [host for host in run.hosts if all(host.columns.has(key) for key in keys)]
