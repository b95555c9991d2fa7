"""The pane with the findings about a run, and which charts show one of them."""

from __future__ import annotations

import re

from runvitals.findings.finding import Finding, Findings
from runvitals.terminal.leet.finding_rows import finding_rows
from runvitals.terminal.leet.text_pane import TextPane

ROOM_SHARE, MIN_ROOM_MS = 0.1, 60_000.0
"""Around the time of a finding, in charts."""


class FindingsPane(TextPane):
    """The findings about a run, with their evidence and what to do."""

    def __init__(self, *, id: str) -> None:
        super().__init__("Findings", id=id)
        self.findings: Findings | None = None
        self._now_ms = 0.0
        self._finding_index = -1

    def set_findings(self, findings: Findings, now_ms: float) -> None:
        """Set what is shown."""
        self.findings, self._now_ms = findings, now_ms
        self.fit_size()

    def fit_size(self) -> None:
        """Wrap the texts in the present width."""
        if self.findings is not None and self.size.width:
            self.set_rows(finding_rows(self.findings, self.size.width - 1, self._now_ms))
        else:
            self.redraw()

    def next_finding(self) -> Finding | None:
        """Return the next finding that has evidence, after the last the first; None without any."""
        findings = [] if self.findings is None else [each for each in self.findings.findings if each.evidence]
        if not findings:
            return None
        self._finding_index = (self._finding_index + 1) % len(findings)
        return findings[self._finding_index]

    def begin_again(self) -> None:
        """Let `next_finding` return the first."""
        self._finding_index = -1


def pattern_of(finding: Finding) -> str:
    """Return the filter of charts that shows the series that decided a finding."""
    keys = dict.fromkeys(re.escape(evidence.key) for evidence in finding.evidence)
    return f"^({'|'.join(keys)})$"


def time_range(finding: Finding, start_ms: float, end_ms: float) -> tuple[float, float]:
    """Return the time of a finding with some room around it, within the run."""
    to_ms = end_ms if finding.to_ms is None else float(finding.to_ms)
    room = max(MIN_ROOM_MS, ROOM_SHARE * (to_ms - finding.from_ms))
    return max(finding.from_ms - room, start_ms), min(to_ms + room, end_ms)


def node_filter(finding: Finding, hosts: int) -> str:
    """Return the filter that shows the node of the evidence only; "" if that is no one of several."""
    nodes = {evidence.host for evidence in finding.evidence} - {""}
    if hosts < 2 or len(nodes) != 1:
        return ""
    node = f"node:^{re.escape(nodes.pop())}$"
    return node if len(node.split()) == 1 else ""
