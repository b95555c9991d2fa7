"""Findings: what a rule found, with its evidence, its cost and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from runvitals.model.run_verdict import UNKNOWN, RunSeverity, RunVerdict

Severity = Literal["critical", "warning", "info"]
Confidence = Literal["certain", "likely", "possible"]
RULES_VERSION = 3
"""It changes when the rules may judge a run differently: kept results are then computed again."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The value of a series that decided.

    Args:
        key: of the series.
        host: where it was measured.
        value: the median of the windows in which the finding holds.
        unit: of the value, as the metric's definition has it.
        normal: what it is compared with; None if there is nothing to compare.
    """

    key: str
    host: str
    value: float
    unit: str
    normal: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As in the API."""
        return {
            "key": self.key,
            "host": self.host,
            "value": _short(self.value),
            "unit": self.unit,
            "normal": None if self.normal is None else _short(self.normal),
        }


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a run, or worth to know.

    Args:
        id: of the rule.
        from_ms: ms UTC, when it began.
        to_ms: when it ended; None while it goes on.
        share: of the run's time in which it held, 0 to 1.
        device_hours: lost to it.
        money: what these cost; None without prices.
    """

    id: str
    severity: Severity
    confidence: Confidence
    from_ms: int
    to_ms: int | None
    share: float
    hosts: tuple[str, ...]
    devices: tuple[int, ...]
    ranks: tuple[int, ...]
    text: str
    evidence: tuple[Evidence, ...]
    device_hours: float
    advice: str
    docs: str
    money: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As in the API."""
        return {
            "id": self.id,
            "severity": self.severity,
            "confidence": self.confidence,
            "from_ms": self.from_ms,
            "to_ms": self.to_ms,
            "share": round(self.share, 4),
            "hosts": list(self.hosts),
            "devices": list(self.devices),
            "ranks": list(self.ranks),
            "text": self.text,
            "evidence": [evidence.to_json() for evidence in self.evidence],
            "cost": {"device_hours": round(self.device_hours, 3), "money": self.money},
            "advice": self.advice,
            "docs": self.docs,
        }


@dataclass(frozen=True, slots=True)
class Undecided:
    """A rule that could not decide.

    Args:
        needs: keys of which it would need one, or all, as `why` says.
    """

    id: str
    needs: tuple[str, ...]
    why: str

    def to_json(self) -> dict[str, Any]:
        """As in the API."""
        return {"id": self.id, "needs": list(self.needs), "why": self.why}


@dataclass(frozen=True, slots=True)
class Findings:
    """What the rules say about a run.

    Args:
        verdict: the id of the finding that costs most, `healthy` or `unknown`.
        text: the verdict as a sentence.
        findings: most important first.
        fine: ids of rules that looked and found nothing.
    """

    verdict: str
    text: str
    findings: Sequence[Finding] = ()
    fine: Sequence[str] = ()
    undecided: Sequence[Undecided] = field(default=())

    @property
    def severity(self) -> RunSeverity:
        """The severity of the worst finding."""
        severities = {finding.severity for finding in self.findings}
        if "critical" in severities:
            return "critical"
        if "warning" in severities:
            return "warning"
        return "unknown" if self.verdict == UNKNOWN else "healthy"

    def about_run(self, lost_hours: float, judged_ms: int) -> RunVerdict:
        """Return what lists of runs show of it."""
        ids = tuple(finding.id for finding in self.findings)
        return RunVerdict(self.verdict, self.text, self.severity, lost_hours, ids, judged_ms)

    def to_json(self) -> dict[str, Any]:
        """As in the API; other programs rely on this form."""
        return {
            "verdict": {"id": self.verdict, "text": self.text},
            "findings": [finding.to_json() for finding in self.findings],
            "fine": list(self.fine),
            "undecided": [undecided.to_json() for undecided in self.undecided],
        }


def from_json(body: Mapping[str, Any]) -> Findings:
    """Return findings from their JSON form."""
    return Findings(
        body["verdict"]["id"],
        body["verdict"]["text"],
        [_finding_from_json(each) for each in body["findings"]],
        body["fine"],
        [Undecided(each["id"], tuple(each["needs"]), each["why"]) for each in body["undecided"]],
    )


def _finding_from_json(body: Mapping[str, Any]) -> Finding:
    return Finding(
        id=body["id"],
        severity=body["severity"],
        confidence=body["confidence"],
        from_ms=body["from_ms"],
        to_ms=body["to_ms"],
        share=body["share"],
        hosts=tuple(body["hosts"]),
        devices=tuple(body["devices"]),
        ranks=tuple(body["ranks"]),
        text=body["text"],
        evidence=tuple(
            Evidence(each["key"], each["host"], each["value"], each["unit"], each["normal"])
            for each in body["evidence"]
        ),
        device_hours=body["cost"]["device_hours"],
        money=body["cost"]["money"],
        advice=body["advice"],
        docs=body["docs"],
    )


def _short(value: float) -> float:
    """Round to four significant digits; whole numbers from 1,000 on."""
    return float(f"{value:.4g}") if abs(value) < 1000 else float(round(value))
