"""Resources that requests act on: as much of each as a decision needs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.matrix import Role


class Visibility(str, Enum):
    """The visibility of a project, from the narrowest to the widest."""

    PRIVATE = "private"
    """Its owner alone."""
    RESTRICTED = "restricted"
    """Its owner, and the members of the team who were added to it."""
    TEAM = "team"
    """The team. In a user's own space: that user."""
    ORGANISATION = "organisation"
    """Every signed-in user may read it."""
    PUBLIC = "public"
    """The same, and visitors where the organisation lets them read."""
    OPEN = "open"
    """As public, and every signed-in user and service account may log to it."""


@dataclass(frozen=True, slots=True)
class Organisation:
    """The organisation of this server."""


@dataclass(frozen=True, slots=True)
class Account:
    """A user's account: `user_id` is whose."""

    user_id: int


@dataclass(frozen=True, slots=True)
class Entity:
    """An owner of projects: a team, a user's own space, or the organisation, which has registries only.

    Attributes:
        owner_id: the user whose space it is; None for a team and the organisation.
        organisation: it is the organisation.
        hidden: the team's page is hidden from users who are not in it.
        members_invite: members may invite, not only administrators.
        public_projects, public_links: the team's own switches, beside the organisation's.
        deleted: it is in the trash.
    """

    id: int
    owner_id: int | None = None
    hidden: bool = False
    members_invite: bool = False
    public_projects: bool = True
    public_links: bool = True
    deleted: bool = False
    organisation: bool = False


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a team, or a user to be invited: the role they have or are to have."""

    team: Entity
    role: Role
    custom: bool = False


@dataclass(frozen=True, slots=True)
class Project:
    """A project. `sole_author`: all its runs are its owner's. `is_registry`: it has collections, no runs."""

    id: int
    entity: Entity
    visibility: Visibility = Visibility.TEAM
    owner_id: int | None = None
    sole_author: bool = False
    deleted: bool = False
    is_registry: bool = False


@dataclass(frozen=True, slots=True)
class ProjectItem:
    """A run, report, artifact, sweep or workspace of a project.

    Attributes:
        author_id: the user who made it, or to whom a service account attributed it.
        service_account_id: the service account that made it, where it has no author.
        draft: only its author may know of it, and those it is shared with.
        shared: what the requester may do because it was shared with them by name.
    """

    kind: Literal["run", "report", "artifact", "sweep", "workspace"]
    id: int
    project: Project
    author_id: int | None = None
    service_account_id: int | None = None
    deleted: bool = False
    draft: bool = False
    shared: frozenset[Action] = frozenset()


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry of a team, of a user's own space, or of the organisation.

    Attributes:
        id: that of the project that it is; 0: a new one.
        shared: all of the organisation may read it.
    """

    id: int
    team: Entity
    shared: bool = False
    deleted: bool = False


Resource = Organisation | Account | Entity | Member | Project | ProjectItem | Registry
