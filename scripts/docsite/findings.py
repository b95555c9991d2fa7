"""The reference of findings, from the rules."""

from __future__ import annotations

from runvitals.findings.remedies import REMEDIES
from runvitals.findings.rules import RULES
from scripts.docsite.finding_pictures import picture

_INTRODUCTION = """\
# Findings

What `runvitals findings`, the page and `/api/v1/runs/{run}/findings` can say about a run, generated from the
rules. [Find out what is wrong with a run](../guides/findings.md) tells how to use them.
The pictures show the series that decided, over made-up runs. The time of the finding is shaded, and a dashed
line is what is normal.
"""


def page() -> str:
    """The page in Markdown."""
    parts = [_INTRODUCTION]
    for rule in sorted(RULES, key=lambda rule: rule.id):
        needs = ", ".join(f"`{key}`" if " " not in key else key for key in rule.needs)
        parts.append(f"## {rule.id}\n\n**{rule.title}.** {rule.meaning}\n")
        parts.append(f"{picture(rule.id)}\n")
        parts.append(f"How it is decided: {rule.decided}\n")
        if needs:
            parts.append(f"It needs at least one of: {needs}.\n")
            parts += [f"* `{key}`: {REMEDIES[key]}" for key in rule.needs if " " not in key]
            parts.append("")
        parts.append(f"What to do: {rule.advice}\n")
    return "\n".join(parts)
