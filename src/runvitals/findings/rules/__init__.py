"""All rules, in the order in which they are listed."""

from __future__ import annotations

from runvitals.findings.rule import FindingRule
from runvitals.findings.rules import (
    activity,
    coverage,
    disks,
    efficiency,
    hang,
    hardware,
    input_bound,
    limits,
    loss,
    memory,
    ranks,
    throttling,
)

RULES: tuple[FindingRule, ...] = (
    *hardware.RULES,
    *hang.RULES,
    *activity.RULES,
    *ranks.RULES,
    *limits.RULES,
    *throttling.RULES,
    *input_bound.RULES,
    *efficiency.RULES,
    *memory.RULES,
    *disks.RULES,
    *loss.RULES,
    *coverage.RULES,
)
