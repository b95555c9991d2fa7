"""The page's table of permissions shows what the permission matrix grants."""

from __future__ import annotations

import re
from pathlib import Path

from runvitals.server.access.decisions.matrix import MATRIX, Grant, Role

_SOURCE = Path(__file__).parents[3] / "web" / "src" / "features" / "teams" / "permissions.ts"
_ROW = re.compile(r"permission\('([a-z_:]+)', (?:'[^']*'|\"[^\"]*\"), '([nyoi]{3})'(, ADDED)?\)")
_LETTERS = {
    Grant.NO: "n",
    Grant.YES: "y",
    Grant.OWN: "o",
    Grant.PROJECT_OWNER: "o",
    Grant.SOLE_AUTHOR: "o",
    Grant.OWN_IF_LINKS: "o",
}


def test_the_page_shows_the_permission_matrix() -> None:
    shown = {action: (grants, bool(added)) for action, grants, added in _ROW.findall(_SOURCE.read_text())}
    rules = {action.value: rule for action, rule in MATRIX.items()}
    assert shown.keys() <= rules.keys()
    assert shown == {
        action: ("".join(_LETTERS.get(rules[action].of(role), "i") for role in Role), rules[action].custom)
        for action in shown
    }


def test_the_page_offers_every_permission_that_a_custom_role_may_add() -> None:
    shown = {action for action, _, added in _ROW.findall(_SOURCE.read_text()) if added}
    assert shown == {action.value for action, rule in MATRIX.items() if rule.custom}
