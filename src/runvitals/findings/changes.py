"""What changes between judgements of a run that goes on: findings open, grow and close.

A finding keeps its number from one judgement to the next, so that it is one event that grows, whatever
happens to its text and its end. It closes some minutes after it was last seen, so that it does not flap.

Example:
    >>> tracker = FindingTracker()
    >>> changes = tracker.update(judge(run), now_ms)
    >>> [tracked.finding.id for tracked in changes.opened]
    ['input_bound_cpu']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf

from runvitals.findings.finding import Finding, Findings

HOLD_MS = 5 * 60_000
"""A finding that has ended closes after this time, if it does not come back until then."""
RETURN_MS = 60 * 60_000
"""One that begins within this time after another of its kind ended is the same, and opens again."""


@dataclass(frozen=True, slots=True)
class TrackedFinding:
    """A finding of a run that goes on.

    Args:
        number: its identity within the run: 1, 2, …
        finding: as last judged, except that it begins when it was first said to begin.
        opened_ms: when it was first seen.
        seen_ms: when it was last seen to go on.
        closed_ms: None while it is open.
    """

    number: int
    finding: Finding
    opened_ms: int
    seen_ms: int
    closed_ms: int | None = None


@dataclass(frozen=True, slots=True)
class FindingChanges:
    """What differs from the judgement before.

    Args:
        opened: seen first, or again after they were closed (with the number they had).
        changed: open ones of which severity, confidence, devices, text, evidence or cost changed.
        closed: over.
    """

    opened: Sequence[TrackedFinding] = ()
    changed: Sequence[TrackedFinding] = ()
    closed: Sequence[TrackedFinding] = ()

    def __bool__(self) -> bool:
        return bool(self.opened or self.changed or self.closed)


class FindingTracker:
    """The findings of a run that goes on, over its judgements.

    Args:
        tracked: as `tracked` was before the program ended, to go on with.
    """

    def __init__(self, tracked: Iterable[TrackedFinding] = ()) -> None:
        self._tracked = {each.number: each for each in tracked}

    @property
    def tracked(self) -> Sequence[TrackedFinding]:
        """All that were ever seen, by number: judgements of whole runs go on to contain what is over."""
        return [self._tracked[number] for number in sorted(self._tracked)]

    def update(self, findings: Findings, now_ms: int, *, ended: bool = False) -> FindingChanges:
        """Take a judgement, and return what changed.

        Args:
            now_ms: until when the run was judged; it never goes back.
            ended: whether the run has ended: then all findings close.
        """
        opened: list[TrackedFinding] = []
        changed: list[TrackedFinding] = []
        closed: list[TrackedFinding] = []
        seen: set[int] = set()
        for finding in findings.findings:
            before = self._match(finding, seen)
            if before is None:
                number = max([0, *self._tracked]) + 1
                now = TrackedFinding(number, finding, now_ms, _seen_ms(finding, now_ms))
                opened.append(now)
            else:
                now = _grown(before, finding, now_ms)
                if before.closed_ms is not None and now.closed_ms is None:
                    opened.append(now)
                elif before.closed_ms is None and now.finding != before.finding:
                    changed.append(now)
            seen.add(now.number)
            self._tracked[now.number] = now
        for tracked in self.tracked:
            if tracked.closed_ms is None and (ended or now_ms - tracked.seen_ms >= HOLD_MS):
                closed.append(_closed(tracked, now_ms))
                self._tracked[tracked.number] = closed[-1]
        numbers = {each.number for each in closed}
        return FindingChanges(opened, [each for each in changed if each.number not in numbers], closed)

    def _match(self, finding: Finding, seen: set[int]) -> TrackedFinding | None:
        """The tracked finding that this one is: of the same rule, on the same devices, at the same time."""
        candidates = [
            tracked
            for tracked in self._tracked.values()
            if tracked.number not in seen and _is_same(tracked, finding)
        ]
        return max(
            candidates,
            key=lambda tracked: (
                tracked.closed_ms is None,
                _common(tracked.finding, finding),
                tracked.number,
            ),
            default=None,
        )


def _is_same(tracked: TrackedFinding, finding: Finding) -> bool:
    known = tracked.finding
    if known.id != finding.id or not set(known.hosts) & set(finding.hosts):
        return False
    if known.devices and finding.devices and not set(known.devices) & set(finding.devices):
        return False
    return _common(known, finding) > -RETURN_MS


def _common(known: Finding, finding: Finding) -> float:
    """For how long two findings hold at once, ms; below 0, how far they are apart."""
    ends = [inf if each.to_ms is None else each.to_ms for each in (known, finding)]
    return min(ends) - max(known.from_ms, finding.from_ms)


def _grown(before: TrackedFinding, finding: Finding, now_ms: int) -> TrackedFinding:
    finding = replace(finding, from_ms=min(before.finding.from_ms, finding.from_ms))
    seen_ms = max(before.seen_ms, _seen_ms(finding, now_ms))
    closed_ms = before.closed_ms
    if closed_ms is not None and (finding.to_ms is None or finding.to_ms > closed_ms):
        closed_ms = None
    return replace(before, finding=finding, seen_ms=seen_ms, closed_ms=closed_ms)


def _seen_ms(finding: Finding, now_ms: int) -> int:
    return now_ms if finding.to_ms is None else finding.to_ms


def _closed(tracked: TrackedFinding, now_ms: int) -> TrackedFinding:
    to_ms = tracked.seen_ms if tracked.finding.to_ms is None else tracked.finding.to_ms
    return replace(tracked, finding=replace(tracked.finding, to_ms=to_ms), closed_ms=now_ms)
