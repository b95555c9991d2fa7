"""`/findings/rules`: what the rules of findings look for, and what provides the signals that they need."""

from __future__ import annotations

from typing import Any

from runvitals.findings.finding import RULES_VERSION
from runvitals.findings.remedies import REMEDIES
from runvitals.findings.rules import RULES
from runvitals.server.access.permission import needs
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.router import Router

router = Router()


class FindingRuleSchema(ResponseBody):
    """A rule: what it finds, what that means, how it decides and what to do about it."""

    id: str
    title: str
    meaning: str
    decided: str
    advice: str
    needs: list[str]


class FindingRulesSchema(ResponseBody):
    """All rules, and by the name of a signal what to install or switch on to have it."""

    version: int
    rules: list[FindingRuleSchema]
    remedies: dict[str, str]


@router.get("/findings/rules", needs("public"), response_model=FindingRulesSchema)
async def finding_rules() -> Any:
    """Every rule of findings, and the remedies for missing signals."""
    return {
        "version": RULES_VERSION,
        "rules": [
            {
                "id": rule.id,
                "title": rule.title,
                "meaning": rule.meaning,
                "decided": rule.decided,
                "advice": rule.advice,
                "needs": list(rule.needs),
            }
            for rule in RULES
        ],
        "remedies": dict(REMEDIES),
    }
