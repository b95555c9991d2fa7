"""Custom roles: a base role and the actions it adds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runvitals.model.account_names import display_name
from runvitals.model.names import plain_text
from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.matrix import CUSTOM_ACTIONS, Role

MAX_NAME = 64
MAX_DESCRIPTION = 500
RESERVED_NAMES = frozenset(("admin", "member", "viewer", "owner"))


@dataclass(frozen=True, slots=True)
class CustomRole:
    """A valid custom role. Actions can only be added: a role never has less than its base."""

    name: str
    base: Role
    added: frozenset[Action]
    description: str = ""


def custom_role(name: str, base: str, actions: Iterable[str], description: str = "") -> CustomRole:
    """Check a custom role.

    Raises:
        ValueError: the name, the base or an action is invalid; the message says what is allowed.

    Example:
        >>> sorted(custom_role("labeller", "viewer", ["run:update"]).added)
        [<Action.RUN_UPDATE: 'run:update'>]
    """
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME or "/" in name or name in (".", ".."):
        raise ValueError(f"invalid role name; expected 1 to {MAX_NAME} characters without /")
    try:
        name = display_name(name)
    except ValueError:
        raise ValueError("invalid role name; it contains a control or invisible character") from None
    if name.casefold() in RESERVED_NAMES:
        raise ValueError(f"the role name {name!r} is reserved")
    if len(description) > MAX_DESCRIPTION:
        raise ValueError(f"the description is too long; expected at most {MAX_DESCRIPTION} characters")
    if base not in (Role.VIEWER.value, Role.MEMBER.value):
        raise ValueError(f"invalid base role {base!r}; expected viewer or member")
    return CustomRole(name, Role(base), added_actions(actions), plain_text(description))


def added_actions(actions: Iterable[str]) -> frozenset[Action]:
    """Return the actions that a custom role adds.

    Raises:
        ValueError: an action that does not exist, or that a custom role may not add: one that would let its
            holder change roles, their own included.
    """
    allowed = {action.value: action for action in CUSTOM_ACTIONS}
    requested = set(actions)
    rejected = sorted(requested - allowed.keys())
    if rejected:
        raise ValueError(
            f"a custom role cannot add {rejected[0]!r}; expected some of {', '.join(sorted(allowed))}"
        )
    return frozenset(allowed[action] for action in requested)
