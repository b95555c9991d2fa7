"""The findings about a run as rows of a terminal: the verdict in one, everything else below each other."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from runvitals.base.terminal_text import inert
from runvitals.findings.finding import HEALTHY, Evidence, Finding, Findings
from runvitals.findings.remedies import remedies
from runvitals.terminal.leet import axes
from runvitals.terminal.leet.braille import Row
from runvitals.terminal.leet.fitting_text import cut

SEVERITY_STYLES = {"critical": "bad", "warning": "warn", "info": "dim"}
_MIN_WIDTH = 20


def verdict_row(findings: Findings, width: int) -> Row:
    """Return the verdict in one row: what, since when, and what it cost."""
    headline = next((each for each in findings.findings if each.id == findings.verdict), None)
    if headline is None:
        style = "good" if findings.verdict == HEALTHY else "dim"
        return [(" ● ", style), (cut(inert(findings.text), max(width - 3, 1)), "dim")]
    more = f"  {cost_text(headline)}" if headline.device_hours > 0 else ""
    text = cut(inert(headline.text), max(width - 3 - len(more), _MIN_WIDTH))
    return [(" ● ", SEVERITY_STYLES[headline.severity]), (text, "title"), (more, "dim")]


def finding_rows(findings: Findings, width: int, now_ms: float) -> list[Row]:
    """Return everything that the rules say, most important first."""
    rows: list[Row] = []
    for finding in findings.findings:
        rows += [*_finding(finding, width, now_ms), []]
    if not findings.findings:
        rows += [*_wrapped(findings.text, width, ""), []]
    if findings.fine:
        rows += [*_wrapped(f"Found fine: {', '.join(findings.fine)}.", width, "dim"), []]
    if findings.undecided:
        rows.append([("Could not be decided", "title")])
        for undecided in findings.undecided:
            rows += _wrapped(f"{undecided.id}: {undecided.why}", width, "dim")
    missing = [key for undecided in findings.undecided for key in undecided.needs]
    if helpful := remedies(missing):
        rows += [[], [("What would help", "title")]]
        for remedy in helpful:
            rows += _wrapped(remedy, width, "dim")
    return rows


def _finding(finding: Finding, width: int, now_ms: float) -> Iterator[Row]:
    about = [finding.confidence, span_text(finding, now_ms)]
    if finding.device_hours > 0:
        about.append(cost_text(finding))
    yield [(finding.severity, SEVERITY_STYLES[finding.severity]), (f" {finding.id}", "title")]
    yield from _wrapped(" · ".join(about), width, "dim")
    yield from _wrapped(finding.text, width, "")
    for evidence in finding.evidence:
        yield from _wrapped(evidence_text(evidence), width, "value", "  ")
    if finding.severity != "info":
        yield from _wrapped(f"Next: {finding.advice}", width, "")


def span_text(finding: Finding, now_ms: float) -> str:
    """Tell how long a finding held, or since when it goes on."""
    end_ms = now_ms if finding.to_ms is None else finding.to_ms
    word = "since" if finding.to_ms is None else "for"
    return f"{word} {axes.elapsed(max(end_ms - finding.from_ms, 0))}"


def cost_text(finding: Finding) -> str:
    """Tell what a finding cost."""
    money = "" if finding.money is None else f", {finding.money:,.2f} in money"
    return f"{finding.device_hours:.3g} device-hours lost{money}"


def evidence_text(evidence: Evidence) -> str:
    """Tell the value of a series that decided, and what is normal."""
    unit = "" if evidence.unit in ("", "1") else f" {evidence.unit}"
    where = f" on {evidence.host}" if evidence.host else ""
    normal = "" if evidence.normal is None else f", normally {evidence.normal:.4g}"
    return f"{evidence.key}{where}: {evidence.value:.4g}{unit}{normal}"


def _wrapped(text: str, width: int, style: str, indent: str = "") -> list[Row]:
    lines = textwrap.wrap(
        inert(text), max(width, _MIN_WIDTH), initial_indent=indent, subsequent_indent=indent
    )
    return [[(line, style)] for line in lines]
