"""Who makes a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final, Literal

from runvitals.server.access.actions import INGEST, NEEDS_SUDO, READS, WRITES, Action
from runvitals.server.access.decisions.matrix import Role

UserState = Literal["unverified", "active", "suspended", "deleted"]


class Access(str, Enum):
    """A limit on a user's roles in all teams, set by the organisation."""

    NONE = "none"
    VIEWER = "viewer"
    FULL = "full"


class KeyScope(str, Enum):
    """The most that a key may be used for."""

    INGEST = "ingest"
    READ = "read"
    WRITE = "write"
    FULL = "full"


SCOPE_ACTIONS: Final[dict[KeyScope, frozenset[Action]]] = {
    KeyScope.INGEST: INGEST,
    KeyScope.READ: READS,
    KeyScope.WRITE: WRITES | INGEST,
    KeyScope.FULL: frozenset(Action) - NEEDS_SUDO,
}
"""The actions of each scope: what the owner of the key may not do, the key may not either."""


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """The limits of the key that a request came with.

    Attributes:
        entities: ids of those it works in; None: all.
        id: the key's; None for a token from before accounts.
    """

    scope: KeyScope = KeyScope.WRITE
    entities: frozenset[int] | None = None
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Membership:
    """A role in a team or project. `added`: what a custom role adds to it."""

    role: Role
    added: frozenset[Action] = frozenset()


_NOTHING: Final[Mapping[int, Membership | None]] = MappingProxyType({})
_NO_TEAMS: Final[Mapping[int, Membership]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class User:
    """A person with an account.

    Attributes:
        teams: the user's role by the team's entity id.
        projects: the role by project id, where the user was added to a project; None: the role in the team.
        registries: ids of the registries that the user administers.
        key: the limits of the key that was used; None for a session.
        home: the entity that gets runs which name none.
        must_change_password: the session may do nothing else first.
    """

    id: int
    state: UserState = "active"
    org_admin: bool = False
    access: Access = Access.FULL
    billing: Literal["none", "viewer", "admin"] = "none"
    teams: Mapping[int, Membership] = field(default_factory=lambda: _NO_TEAMS)
    projects: Mapping[int, Membership | None] = field(default_factory=lambda: _NOTHING)
    registries: frozenset[int] = frozenset()
    key: KeyLimits | None = None
    home: int | None = None
    must_change_password: bool = False


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A program's account. It has keys, and can never sign in.

    Attributes:
        team: the entity id of its team; None: of the organisation, a member of every team.
        projects: ids of the private and restricted projects that it was added to.
        reads_only: it may log and change nothing.
        legacy: it stands for the tokens from before accounts, which may do everything to data.
        home: the team that gets runs which name none.
    """

    id: int
    team: int | None
    projects: frozenset[int] = frozenset()
    reads_only: bool = False
    legacy: bool = False
    key: KeyLimits | None = None
    home: int | None = None


@dataclass(frozen=True, slots=True)
class GuestLink:
    """A link that lets anyone read one thing: `kind` is `project`, `run` or `report`.

    Attributes:
        maker: id of the user who made a link to a report: its panels show no other projects than that user
            may read.
    """

    kind: Literal["project", "run", "report"]
    id: int
    maker: int | None = None


@dataclass(frozen=True, slots=True)
class Anonymous:
    """A visitor who is not signed in."""


@dataclass(frozen=True, slots=True)
class Operator:
    """Whoever reaches a server without accounts: everyone may send, read and tidy up runs."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command that has the database itself, and so may do everything to accounts, even without any.

    Only `server.in_process` makes one, for calls within the process of the command. No request that arrives
    at a server gets it: the middleware there takes principals from credentials alone.
    """


Principal = User | ServiceAccount | GuestLink | Anonymous | Operator | CommandLine


def is_report_guest(principal: Principal) -> bool:
    """Return whether somebody came with a link to a report, which leads to what it shows and nothing else."""
    return isinstance(principal, GuestLink) and principal.kind == "report"
