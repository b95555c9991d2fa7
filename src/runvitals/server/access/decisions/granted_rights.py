"""Users with what the metadata store has granted them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.matrix import Role
from runvitals.server.access.principals import Access, KeyLimits, Membership, User

if TYPE_CHECKING:
    from runvitals.server.access.storage.grants import RoleGrant, UserGrants

_ACTIONS: Final = {action.value: action for action in Action}


def user_of(grants: UserGrants, key: KeyLimits | None, has_own_space: bool) -> User:
    """Return the user with these grants, limited to what a key allows."""
    teams = {team: _membership(grant) for team, grant in grants.teams.items()}
    billing: Any = grants.billing_role
    state: Any = grants.state
    return User(
        grants.id,
        state=state,
        org_admin=grants.org_role == "admin",
        access=Access(grants.access),
        billing=billing,
        teams={team: membership for team, membership in teams.items() if membership is not None},
        projects={project: _membership(grant) for project, grant in grants.projects.items()},
        registries=grants.registries,
        key=key,
        home=_home(grants, has_own_space),
    )


def _home(grants: UserGrants, has_own_space: bool) -> int | None:
    """Return where runs go that name no team: the default team, or else the user's own space."""
    default = grants.default_entity_id
    if default is not None and default in grants.teams:
        return default
    return grants.entity_id if has_own_space else None


def _membership(grant: RoleGrant) -> Membership | None:
    if grant.role is None:
        return None
    # An action of a later version is unknown here and grants nothing.
    added = frozenset(_ACTIONS[name] for name in grant.actions if name in _ACTIONS)
    return Membership(Role(grant.role), added)
