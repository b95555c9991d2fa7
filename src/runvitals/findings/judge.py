"""`judge`: apply all rules to a run, and choose the headline."""

from __future__ import annotations

from collections.abc import Sequence

from runvitals.findings.causes import CAUSE_S, CAUSED_BY, EXPLAINED_BY
from runvitals.findings.finding import Finding, Findings, Undecided
from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.rules import RULES
from runvitals.model.run_verdict import HEALTHY, UNKNOWN

MIN_RUN_S = 60.0
"""A shorter run is not judged, except by what needs no time."""

_SEVERITIES = ("critical", "warning", "info")
_NEAR_COST = 0.5


def judge(run: ObservedRun) -> Findings:
    """Judge a run by all rules.

    Example:
        >>> judge(run).verdict
        'input_bound_cpu'
    """
    findings: list[Finding] = []
    undecided: list[Undecided] = []
    fine: list[str] = []
    for rule in RULES:
        judged = rule.apply(run)
        if isinstance(judged, Undecided):
            undecided.append(judged)
        elif judged:
            findings += judged
        else:
            fine.append(rule.id)
    findings = _without_consequences(findings, run.ended_ms or run.now_ms)
    findings.sort(key=_importance)
    seconds = run.duration_ms / 1000
    accused = [finding for finding in findings if finding.severity != "info"]
    if accused:
        headline = _headline(accused)
        findings.remove(headline)
        return Findings(headline.id, headline.text, [headline, *findings], fine, undecided)
    if seconds < MIN_RUN_S or not run.hosts:
        why = (
            "The run is too short to judge."
            if seconds < MIN_RUN_S and run.hosts
            else "Nothing was measured to judge by."
        )
        return Findings(UNKNOWN, why, findings, fine, undecided)
    if not _is_judgeable(run):
        return Findings(UNKNOWN, "No signal tells how the run used its hardware.", findings, fine, undecided)
    about = next(
        (finding.text for finding in findings if finding.id in ("compute_bound", "memory_bound")), ""
    )
    return Findings(HEALTHY, f"Nothing is wrong with this run. {about}".strip(), findings, fine, undecided)


def _is_judgeable(run: ObservedRun) -> bool:
    return any(device.has("busy") for device in run.devices) or any(
        host.columns.has(key)
        for host in run.hosts
        for key in ("cpu", "cpu.mean", "memory_percent", "proc.memory.rssMB")
    )


def _without_consequences(findings: Sequence[Finding], now_ms: int) -> list[Finding]:
    """Leave out what another finding explains: idle because hung is one finding."""
    causes = []
    for finding in findings:
        explained = any(
            finding.id in EXPLAINED_BY.get(other.id, ()) and _overlaps(finding, other, now_ms)
            for other in findings
            if other is not finding
        )
        if not explained:
            causes.append(finding)
    return causes


def _overlaps(finding: Finding, cause: Finding, now_ms: int) -> bool:
    """Whether a finding lies, for the most part, in the time and on the devices of another."""
    end = now_ms if finding.to_ms is None else finding.to_ms
    cause_end = now_ms if cause.to_ms is None else cause.to_ms
    common = min(end, cause_end) - max(finding.from_ms, cause.from_ms)
    if common < 0.5 * max(end - finding.from_ms, 1):
        return False
    if not cause.devices or not finding.devices or cause.id == "hang":
        return True
    return set(finding.devices) <= set(cause.devices) and set(finding.hosts) <= set(cause.hosts)


def _importance(finding: Finding) -> tuple[int, float, int]:
    return _SEVERITIES.index(finding.severity), -finding.device_hours, _ORDER[finding.id]


_ORDER = {rule.id: rule.order for rule in RULES}


def _headline(accused: Sequence[Finding]) -> Finding:
    """Return the finding that costs most; where costs are near, what is broken comes before what is slow.

    A critical finding that costs no device time (memory, a disk, the loss) comes first if it ends the run or
    makes it worthless.
    """
    candidates = [finding for finding in accused if not _is_caused(finding, accused)]
    fatal = [finding for finding in candidates if finding.severity == "critical" and _ORDER[finding.id] <= 1]
    candidates = fatal or candidates
    most = max(finding.device_hours for finding in candidates)
    near = [finding for finding in candidates if finding.device_hours >= _NEAR_COST * most]
    return min(near, key=lambda finding: (_ORDER[finding.id], -finding.device_hours))


def _is_caused(finding: Finding, accused: Sequence[Finding]) -> bool:
    """Whether another finding of the same time is the cause of one."""
    return any(
        finding.id in CAUSED_BY.get(cause.id, ())
        and finding.from_ms >= cause.from_ms - CAUSE_S * 1000
        and (cause.to_ms is None or cause.to_ms > finding.from_ms)
        for cause in accused
    )
