"""What is kept of the findings about a run, and how the next judgement continues it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from runvitals.findings.causes import EXPLAINED_BY
from runvitals.findings.finding import Finding, Findings
from runvitals.findings.lost_hours import lost_hours
from runvitals.model.durations import MINUTE_MS
from runvitals.model.run_verdict import HEALTHY, UNKNOWN, RunVerdict
from runvitals.server.events.finding_changes import (
    FindingChange,
    FindingClosed,
    FindingGrew,
    FindingOpened,
)

HOLD_MS = 5 * MINUTE_MS
"""A finding that has ended, or is not found any more, closes after this time if it does not come back."""
RETURN_MS = 60 * MINUTE_MS
"""One that comes back within this time after it closed is the same, and from then on is held for so long."""


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """The findings about a run, as they were judged.

    Args:
        run_id: of the run, in the metadata store.
        rules_version: of the rules.
        judged_ms: when, ms UTC. What arrived later was not judged.
        from_ms, up_to_ms: the times of the first and the last sample that were judged.
        is_final: whether the run had ended.
        findings: without prices.
        device_hours: that the run had.
    """

    run_id: int
    rules_version: int
    judged_ms: int
    from_ms: int
    up_to_ms: int
    is_final: bool
    findings: Findings
    device_hours: float


@dataclass(frozen=True, slots=True)
class KeptFinding:
    """A finding with its number among all that the run ever had.

    Args:
        opened_ms: up to when the run was judged when it was noticed.
        lost_hours: of devices, for which no more important finding accounts.
        seen_ms: while it is open, until when it was last found to go on.
        has_returned: whether it had been closed and came back.
    """

    number: int
    opened_ms: int
    finding: Finding
    lost_hours: float = 0.0
    seen_ms: int = 0
    has_returned: bool = False


@dataclass(frozen=True, slots=True)
class RetractedFinding:
    """A finding that was closed because the rules, which know more now, find it no longer.

    Args:
        seen_ms: until when it was last found to go on.
    """

    number: int
    rule: str
    hosts: tuple[str, ...]
    devices: tuple[int, ...]
    seen_ms: int

    def is_same(self, finding: Finding, up_to_ms: int) -> bool:
        """Whether a finding is this one, which has come back."""
        return (
            finding.id == self.rule
            and up_to_ms - self.seen_ms < RETURN_MS
            and not set(finding.hosts).isdisjoint(self.hosts)
            and (finding.devices == self.devices or not set(finding.devices).isdisjoint(self.devices))
        )


@dataclass(frozen=True, slots=True)
class KeptResult:
    """What is kept of the findings about a run.

    Args:
        kept: the findings, the most important first.
        lost_hours: of devices, of all findings but information.
        numbered: how many findings the run ever had.
        error: why the run could not be judged; None if it was. Then the rest is of an earlier judgement, or
            empty.
        retracted: what was closed in the last hour and may come back.
    """

    run_id: int
    rules_version: int
    judged_ms: int
    from_ms: int
    up_to_ms: int
    is_final: bool
    findings: Findings
    kept: tuple[KeptFinding, ...]
    lost_hours: float
    numbered: int
    error: str | None = None
    retracted: tuple[RetractedFinding, ...] = ()

    @property
    def verdict(self) -> RunVerdict:
        """The verdict as lists show it."""
        return self.findings.about_run(self.lost_hours, self.judged_ms)


def nothing_judged(run_id: int, error: str) -> KeptResult:
    """Return the result of a run that could not be judged."""
    findings = Findings(UNKNOWN, "This run could not be judged.")
    return KeptResult(run_id, 0, 0, 0, 0, False, findings, (), 0.0, 0, error)


def continue_result(before: KeptResult | None, judged: JudgedRun) -> tuple[KeptResult, list[FindingChange]]:
    """Return what is kept of a judgement, and what has changed since the one before.

    A finding that goes on keeps its number, and its start while the run goes on: windows become wider with
    the run, and would move it. One that comes and goes stays open.
    """
    earlier = list(() if before is None else before.kept)
    retracted = list(() if before is None else before.retracted)
    numbered = 0 if before is None else before.numbered
    kept: list[KeptFinding] = []
    changes: list[FindingChange] = []
    for finding in judged.findings.findings:
        same = _same(finding, earlier)
        back = next((each for each in retracted if each.is_same(finding, judged.up_to_ms)), None)
        if same is not None:
            earlier.remove(same)
            start_ms = finding.from_ms if judged.is_final else same.finding.from_ms
            returned = same.has_returned or (same.finding.to_ms is not None and finding.to_ms is None)
            now = replace(same, finding=replace(finding, from_ms=start_ms), has_returned=returned)
        elif back is not None:
            retracted.remove(back)
            now = KeptFinding(back.number, judged.up_to_ms, finding, has_returned=True)
        else:
            numbered += 1
            now = KeptFinding(numbered, judged.up_to_ms, finding)
        now = _held(same, now, judged)
        kept.append(now)
        changes += _changes(same, now, judged)
    for absent in (each for each in earlier if each.finding.to_ms is None):
        if _is_held(absent, absent.seen_ms, judged) and not _is_explained(absent.finding, judged.findings):
            kept.append(absent)
        else:
            changes.append(_vanished(absent, judged))
            retracted.append(_retracted(absent))
    hours = lost_hours([each.finding for each in kept], judged.up_to_ms, judged.device_hours or None)
    result = KeptResult(
        run_id=judged.run_id,
        rules_version=judged.rules_version,
        judged_ms=judged.judged_ms,
        from_ms=judged.from_ms,
        up_to_ms=judged.up_to_ms,
        is_final=judged.is_final,
        findings=_with_held(judged.findings, [each.finding for each in kept]),
        kept=tuple(replace(each, lost_hours=mine) for each, mine in zip(kept, hours, strict=True)),
        lost_hours=sum(hours),
        numbered=numbered,
        retracted=tuple(each for each in retracted if judged.up_to_ms - each.seen_ms < RETURN_MS),
    )
    return result, changes


def _is_held(kept: KeptFinding, seen_ms: int, judged: JudgedRun) -> bool:
    hold_ms = RETURN_MS if kept.has_returned else HOLD_MS
    return not judged.is_final and judged.up_to_ms - seen_ms < hold_ms


def _held(before: KeptFinding | None, now: KeptFinding, judged: JudgedRun) -> KeptFinding:
    """Return a finding with until when it was seen; it stays open for some minutes after its end."""
    to_ms = now.finding.to_ms
    if to_ms is None:
        return replace(now, seen_ms=judged.up_to_ms)
    was_open = before is not None and before.finding.to_ms is None
    if not was_open or not _is_held(now, to_ms, judged):
        return replace(now, seen_ms=0)
    return replace(now, finding=replace(now.finding, to_ms=None), seen_ms=to_ms)


def _is_explained(finding: Finding, findings: Findings) -> bool:
    """Whether what is found now explains a finding that is not found any more."""
    return any(finding.id in EXPLAINED_BY.get(each.id, ()) for each in findings.findings)


def _with_held(judged: Findings, kept: Sequence[Finding]) -> Findings:
    """Return a judgement with the findings that are held: the worst is the headline if there is no other."""
    held = kept[len(judged.findings) :]
    fine = [name for name in judged.fine if name not in {finding.id for finding in held}]
    accused = [finding for finding in held if finding.severity != "info"]
    if not accused or judged.verdict not in (HEALTHY, UNKNOWN):
        return replace(judged, findings=kept, fine=fine)
    return replace(judged, verdict=accused[0].id, text=accused[0].text, findings=kept, fine=fine)


def _same(finding: Finding, earlier: Sequence[KeptFinding]) -> KeptFinding | None:
    """Return the earlier finding that goes on in this one: of the same rule, with the most time in common."""
    candidates = [
        each for each in earlier if each.finding.id == finding.id and _common_ms(each.finding, finding) >= 0
    ]

    def likeness(each: KeptFinding) -> tuple[float, int, int]:
        common_devices = set(each.finding.devices) & set(finding.devices)
        return _common_ms(each.finding, finding), len(common_devices), -each.number

    return max(candidates, key=likeness, default=None)


def _common_ms(finding: Finding, other: Finding) -> float:
    """Return for how long both hold; negative if they do not touch."""
    ends = [inf if each.to_ms is None else each.to_ms for each in (finding, other)]
    return min(ends) - max(finding.from_ms, other.from_ms)


def _changes(before: KeptFinding | None, now: KeptFinding, judged: JudgedRun) -> list[FindingChange]:
    is_open = now.finding.to_ms is None
    was_open = before is not None and before.finding.to_ms is None
    facts = (judged.run_id, now.number, now.finding, now.opened_ms, judged.up_to_ms, judged.is_final)
    if before is None and not is_open:
        return [FindingOpened(*facts), FindingClosed(*facts)]
    if is_open:
        return [FindingGrew(*facts) if was_open else FindingOpened(*facts)]
    return [FindingClosed(*facts)] if was_open else []


def _retracted(kept: KeptFinding) -> RetractedFinding:
    finding = kept.finding
    return RetractedFinding(kept.number, finding.id, finding.hosts, finding.devices, kept.seen_ms)


def _vanished(kept: KeptFinding, judged: JudgedRun) -> FindingChange:
    finding = replace(kept.finding, to_ms=max(kept.seen_ms, kept.finding.from_ms))
    return FindingClosed(
        judged.run_id, kept.number, finding, kept.opened_ms, judged.up_to_ms, judged.is_final
    )


def with_prices(findings: Findings, price: float | None) -> Findings:
    """Return the findings with what they cost in money."""
    if price is None:
        return findings
    priced = [replace(finding, money=round(finding.device_hours * price, 2)) for finding in findings.findings]
    return replace(findings, findings=priced)
