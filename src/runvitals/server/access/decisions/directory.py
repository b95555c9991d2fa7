"""Principals and policies, as the metadata store has them, from a cache that a change of rights empties.

Example:
    >>> directory = Directory(metadata_store, now_ms, time.monotonic)
    >>> identity = directory.identify(Credential("key", secret))
    >>> directory.decide(identity.principal, Action.RUN_CREATE, directory.project(project_id))
    <Decision.ALLOWED: 'allowed'>
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from runvitals.model.account_names import ORGANISATION
from runvitals.model.durations import DAY_MS
from runvitals.model.errors import AmbiguousName, UnknownRun
from runvitals.model.filter import ReadableRuns
from runvitals.model.registry_names import is_registry
from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.decision import Decision, decide
from runvitals.server.access.decisions.decision_cache import DecisionCache, Missing
from runvitals.server.access.decisions.granted_rights import user_of
from runvitals.server.access.decisions.policies import OrganisationPolicies
from runvitals.server.access.decisions.readable_runs import readable_runs
from runvitals.server.access.identification.identity import Credential, CredentialOwner, Identity
from runvitals.server.access.principals import (
    GuestLink,
    KeyLimits,
    KeyScope,
    Operator,
    Principal,
    ServiceAccount,
    User,
)
from runvitals.server.access.resources import Entity, Project, ProjectItem, Resource, Visibility
from runvitals.server.organisation.settings import enforced_switches, with_defaults
from runvitals.store.errors import NotFound

if TYPE_CHECKING:
    from runvitals.server.access.storage.grants import EntityFacts
    from runvitals.server.account_store import AccountStore
    from runvitals.server.accounts.storage.keys import KeyRow
    from runvitals.server.accounts.storage.sessions import SessionLife, SessionRow
    from runvitals.server.metadata_store import MetadataStore
    from runvitals.server.projects.storage.project_members import OwnedProject
    from runvitals.server.runs.storage.run_places import RunPlace

KEY_LIFE_MS: Final = 2500
"""How long a credential is taken as valid without a look-up, unless rights change: expiry, and the revocation
of a token from before accounts, are noticed this late."""
_ORGANISATION: Final = Entity(0, public_projects=False, public_links=False, organisation=True)
RUN_LIFE_MS: Final = 1000
"""How long the project and the author of a run are taken as unchanged."""


class Directory:
    """Loads principals and resources for decisions. Thread-safe.

    Args:
        now_ms: the time in ms UTC.
        monotonic: seconds that only grow.

    Attributes:
        accounts_exist: whether there was an administrator at the last `rights_changed`: from then on,
            requests need an account or a key.
        after_check: called at the end of `rights_changed`.
    """

    def __init__(
        self, metadata_store: MetadataStore, now_ms: Callable[[], int], monotonic: Callable[[], float]
    ) -> None:
        self._metadata_store = metadata_store
        self._accounts = metadata_store.accounts
        self._now_ms = now_ms
        self._monotonic = monotonic
        self.accounts_exist = False
        self.after_check: Callable[[], None] = lambda: None
        self._account_of: Callable[[str], int | None] | None = None
        self._cache = DecisionCache(self._accounts.generation, monotonic)

    def rights_changed(self) -> None:
        """Forget at once what this process changed; other processes do within half a second."""
        self._cache.check()
        self.accounts_exist = self._cache.get("accounts", self._accounts.users.any_administrator)
        self.after_check()

    @property
    def generation(self) -> int | None:
        """A number that changes with the rights that are in the cache."""
        return self._cache.generation

    def store_failed(self) -> None:
        """Note that the metadata store could not be reached."""
        self._cache.note_failure()

    def away_s(self) -> float:
        """For how long the metadata store has not answered; 0 if it does."""
        return self._cache.away_s

    def policies(self) -> OrganisationPolicies:
        """Return the organisation's settings that change who may do what."""
        return self._cache.get("policies", self._policies)

    def visitors_may_read(self) -> bool | None:
        """Return whether visitors may read what is public; None if that needs a look-up."""
        policies: OrganisationPolicies | Missing = self._cache.known("policies")
        return None if isinstance(policies, Missing) else policies.anonymous_read

    def user(self, user_id: int) -> User | None:
        """Return a user who is signed in, with all rights; None if there is no such user."""
        return self._cache.get(("user", user_id, self._period()), lambda: self._signed_in(user_id))

    def identify(self, credential: Credential) -> Identity | None:
        """Return the owner of a credential, limited to what the credential allows; None if it is not valid.

        Tokens from before accounts act as the service account of the team that adopted them.
        """
        return self._cache.get(self._key_of(credential), lambda: self._identify(credential))

    def owner_now(self, owner: CredentialOwner) -> Identity | None:
        """Return the owner of something with the rights that they have now, known for a few seconds.

        None if they have no account any more, or if the key that they made it with is not valid any
        more.
        """
        without = owner.without_account
        if without is not None:
            return Identity(without)
        return self._cache.get(("owner", owner, self._period()), lambda: self._owner_now(owner))

    def has_expired(self, owner: Identity) -> bool:
        """Return whether the key of an owner has ended since it was looked up."""
        return owner.expires_ms is not None and self._now_ms() >= owner.expires_ms

    def link_problem(self, secret: str) -> str | None:
        """Why a guest link that was made here is not valid; None if no such link exists."""
        return self._accounts.guest_links.problem(secret, self._now_ms())

    def known(self, credential: Credential) -> Identity | Missing | None:
        """Return what `identify` does, from the cache alone: `Missing.MISSING` if it is not there."""
        identity: Identity | Missing | None = self._cache.known(self._key_of(credential))
        return identity

    def accept_tokens(self, account_of: Callable[[str], int | None]) -> None:
        """Accept tokens of other services as keys. `account_of`: the service account that shows a token."""
        self._account_of = account_of

    def session_life(self) -> SessionLife:
        """Return how long sessions last, by the organisation's settings."""
        return self._cache.get("session life", self._session_life)

    def entity_named(self, name: str) -> Entity | None:
        """Return a team or a user's own space by name; None if there is none."""
        entity_id = self._cache.get(("name", name), lambda: self._accounts.entity_id(name))
        return None if entity_id is None else self.entity(entity_id)

    def owner_named(self, name: str) -> Entity | None:
        """Return who may own registries, by name: as `entity_named`, and the organisation before it has one.

        That has the id 0.
        """
        owner = self.entity_named(name)
        return _ORGANISATION if owner is None and name.lower() == ORGANISATION else owner

    def entity(self, entity_id: int) -> Entity:
        """Return a team, or a user's own space, or raise NotFound."""
        return self._cache.get(("entity", entity_id), lambda: self._entity(entity_id))

    def project(self, project_id: int) -> Project:
        """Return a project with its owner and visibility; raise UnknownProject or NotFound."""
        return self._cache.get(("project", project_id), lambda: self._project(project_id))

    def projects_of(self, entity_id: int) -> dict[int, Project]:
        """Return the projects of a team or user, by their ids."""
        projects: list[Project] = self._cache.get("projects", self._projects)
        return {project.id: project for project in projects if project.entity.id == entity_id}

    def project_named(self, entity_id: int, name: str) -> Project | None:
        """Return a project by its owner and name; None if there is none."""
        number = dict(self._metadata_store.projects.named(name)).get(entity_id)
        return None if number is None else self.project(number)

    def readable_runs(self, principal: Principal) -> ReadableRuns | None:
        """Return the runs that a principal may read, for `Filter.readable`; None: all."""
        if isinstance(principal, Operator):
            return None
        if isinstance(principal, GuestLink) and principal.kind == "run":
            return self._run_of_link(principal)
        # A user's rights are dictionaries, which cannot be keys. The entry keeps the user alive, so no other
        # object gets its id.
        key = id(principal) if isinstance(principal, User) else principal
        return self._cache.get(("readable", key), lambda: (self._readable_runs(principal), principal))[0]

    def decide(self, principal: Principal, action: Action, resource: Resource) -> Decision:
        """`decide` with the organisation's present settings."""
        return decide(principal, action, resource, self.policies())

    def may(self, principal: Principal, action: Action, resource: Resource) -> bool:
        """Return whether a principal may do an action on a resource."""
        return self.decide(principal, action, resource) is Decision.ALLOWED

    def _readable_runs(self, principal: Principal) -> ReadableRuns:
        return readable_runs(principal, self._cache.get("projects", self._projects), self.policies())

    def find_run(self, principal: Principal, uid: str, entity: str | None = None) -> ProjectItem:
        """Return the run with this run id that a principal may read. Its project is known for up to a second.

        Args:
            entity: name of the team or user that has it. Without it: the run of the principal's default
                entity, otherwise the only one that the principal may read.

        Raises:
            UnknownRun: there is none.
            AmbiguousName: several teams or users have one.
        """
        readable = self.readable_runs(principal)

        def found(places: Iterable[RunPlace]) -> list[RunPlace]:
            in_entity = [run for run in places if entity is None or run.entity == entity.lower()]
            return [run for run in in_entity if readable is None or readable.has(run)]

        # One that is not known may have been created a moment ago.
        runs = found(self._runs_of(uid)) or found(self._metadata_store.runs.places(uid))
        home = principal.home if isinstance(principal, (User, ServiceAccount)) else None
        if len(runs) > 1:
            runs = [run for run in runs if run.entity_id == home] or runs
        if not runs:
            raise UnknownRun(f"there is no run {uid!r}")
        if len(runs) > 1:
            names = sorted(run.entity or "" for run in runs)
            text = f"{', '.join(names)} each have a run {uid!r}; add ?entity= and one of these names"
            raise AmbiguousName(text, names)
        return self._item(runs[0])

    def find_sent_run(self, principal: Principal, uid: str, entity: str | None = None) -> ProjectItem:
        """Return the run with this run id that a principal may add to: its own, or one that it may change.

        Args:
            entity: name of the team or user that has it; default: as in `find_run`.

        Raises:
            UnknownRun: there is none.
            AmbiguousName: several teams or users have one.
        """
        runs = []
        for run in self._metadata_store.runs.places(uid):  # it may have been created a moment ago
            if run.entity_id is None or (entity is not None and run.entity != entity.lower()):
                continue
            item = self._item(run)
            if self._may_add_to(principal, item):
                runs.append((run, item))
        if len(runs) > 1 and isinstance(principal, (User, ServiceAccount)):
            runs = [pair for pair in runs if pair[0].entity_id == principal.home] or runs
        if not runs:
            raise UnknownRun(f"there is no run {uid!r}")
        if len(runs) > 1:
            names = sorted(run.entity or "" for run, _ in runs)
            raise AmbiguousName(f"{', '.join(names)} each have a run {uid!r}; add ?entity=", names)
        return runs[0][1]

    def may_add_to(self, principal: Principal, run_id: int) -> bool:
        """Return whether a principal may add to a run, by its number in the metadata store."""
        if isinstance(principal, Operator):
            return self._metadata_store.runs.place(run_id) is not None
        run = self._run_item(run_id)
        return run is not None and self._may_add_to(principal, run)

    def _may_add_to(self, principal: Principal, run: ProjectItem) -> bool:
        unlimited: Principal = principal
        if isinstance(principal, (User, ServiceAccount)):
            unlimited = replace(principal, key=None)
        return self.may(principal, Action.RUN_CREATE, run) and (
            _is_own(principal, run) or self.may(unlimited, Action.RUN_UPDATE, run)
        )

    def _runs_of(self, uid: str) -> list[RunPlace]:
        second = self._now_ms() // RUN_LIFE_MS
        return self._cache.get(("run", uid, second), lambda: self._metadata_store.runs.places(uid))

    def _run_of_link(self, link: GuestLink) -> ReadableRuns:
        run = self._run_item(link.id)
        allowed = run is not None and self.decide(link, Action.RUN_READ, run) is Decision.ALLOWED
        return ReadableRuns(run_id=link.id if allowed else None)

    def _run_item(self, run_id: int) -> ProjectItem | None:
        run = self._metadata_store.runs.place(run_id)
        return None if run is None else self._item(run)

    def _item(self, run: RunPlace) -> ProjectItem:
        return ProjectItem(
            "run",
            run.run_id,
            self.project(run.project_id),
            run.author_id,
            run.service_account_id,
            run.deleted,
        )

    def _projects(self) -> list[Project]:
        """Return all projects that a user or team owns."""
        return [self._of_row(row) for row in self._accounts.project_members.all() if row.entity_id]

    def _period(self) -> int:
        """Part of the keys of what ends by itself: credentials and memberships have a time of expiry.

        Of the monotonic clock: a clock that is set back must not find the entries of before a revocation.
        """
        return int(self._monotonic() * 1000) // KEY_LIFE_MS

    def _policies(self) -> OrganisationPolicies:
        return OrganisationPolicies.of(with_defaults(self._accounts.settings.all()))

    def _key_of(self, credential: Credential) -> Hashable:
        digest = hashlib.sha256(credential.secret.encode("utf-8", "surrogatepass")).digest()
        return credential.kind, digest, self._period()

    def _identify(self, credential: Credential) -> Identity | None:
        if credential.kind == "key":
            return self._of_key(credential.secret)
        if credential.kind == "session":
            return self._of_session(credential.secret)
        return self._of_link(credential.secret)

    def _of_key(self, secret: str) -> Identity | None:
        now_ms = self._now_ms()
        key = self._accounts.keys.check(secret, now_ms)
        if key is None:
            return self._of_token(secret, now_ms) or self._of_other_service(secret)
        limits = _limits(key)
        if key.user_id is not None:
            owner = self._of_user(key.user_id, limits, key.public_id)
        elif key.service_account_id is not None:
            owner = self._of_service(key.service_account_id, limits, key.public_id)
        else:
            return None
        return None if owner is None else replace(owner, expires_ms=key.expires_ms)

    def _owner_now(self, owner: CredentialOwner) -> Identity | None:
        limits, public_id = None, None
        if owner.key_id is not None:
            key = self._accounts.keys.valid(owner.key_id, self._now_ms())
            if key is None:
                return None
            limits, public_id = _limits(key), key.public_id
        if owner.kind == "user":
            return self._of_user(owner.id, limits, public_id)
        return self._of_service(owner.id, limits or KeyLimits(KeyScope.WRITE), public_id)

    def _of_session(self, secret: str) -> Identity | None:
        session = self._accounts.sessions.check(secret, self._now_ms(), self.session_life())
        return None if session is None else self._of_user(session.user_id, None, None, session)

    def _of_link(self, secret: str) -> Identity | None:
        link = self._accounts.guest_links.check(secret, self._now_ms())
        if link is None:
            return None
        if link.project_id is not None:
            return Identity(GuestLink("project", link.project_id))
        if link.report_id is not None:
            return Identity(GuestLink("report", link.report_id, link.created_by))
        return None if link.run_id is None else Identity(GuestLink("run", link.run_id))

    def _of_token(self, secret: str, now_ms: int) -> Identity | None:
        legacy = self._accounts.service_accounts.legacy()
        if legacy is None or self._metadata_store.tokens.check(secret, now_ms) is None:
            return None
        return self._of_service(legacy.id, KeyLimits(KeyScope.WRITE), None)

    def _of_other_service(self, token: str) -> Identity | None:
        account_id = None if self._account_of is None else self._account_of(token)
        return None if account_id is None else self._of_service(account_id, KeyLimits(KeyScope.WRITE), None)

    def _of_user(
        self,
        user_id: int,
        key: KeyLimits | None,
        public_id: str | None,
        session: SessionRow | None = None,
    ) -> Identity | None:
        grants = self._accounts.user_grants(user_id, self._now_ms())
        if grants is None or grants.state in ("suspended", "deleted"):
            return None
        user = user_of(grants, key, self.policies().personal_entities)
        if session is not None and session.must_change_password:
            user = replace(user, must_change_password=True)
        return Identity(user, grants.name, public_id, session)

    def _of_service(self, account_id: int, key: KeyLimits, public_id: str | None) -> Identity | None:
        grants = self._accounts.service_grants(account_id)
        if grants is None:
            return None
        account = ServiceAccount(
            grants.id,
            grants.team_id,
            grants.projects,
            grants.reads_only,
            grants.kind == "legacy",
            key,
            grants.team_id or grants.default_team_id,
        )
        return Identity(account, grants.name, public_id)

    def _signed_in(self, user_id: int) -> User | None:
        grants = self._accounts.user_grants(user_id, self._now_ms())
        if grants is None or grants.state == "deleted":
            return None
        return user_of(grants, None, self.policies().personal_entities)

    def _session_life(self) -> SessionLife:
        from runvitals.server.accounts.storage.sessions import SessionLife

        settings = with_defaults(self._accounts.settings.all())
        return SessionLife(
            settings["session_idle_days"] * DAY_MS,
            settings["session_days"] * DAY_MS,
            settings["sudo_minutes"] * 60_000,
        )

    def _entity(self, entity_id: int) -> Entity:
        row = self._accounts.entity(entity_id)
        if row is None:
            raise NotFound(f"there is no user or team with id {entity_id}")
        switches = {
            "hidden": row.hidden,
            "members_invite": row.members_invite,
            "public_projects": row.public_projects,
            "public_links": row.public_links,
        }
        if row.organisation:
            return replace(_ORGANISATION, id=row.id)
        if row.owner_id is None:
            enforced = self._cache.get("enforced", lambda: enforced_switches(self._accounts.settings.all()))
            switches |= {name: value for name, value in enforced.items() if name in switches}
        return Entity(row.id, row.owner_id, deleted=row.deleted, **switches)

    def _project(self, project_id: int) -> Project:
        row = self._accounts.project_members.get(project_id)
        if row.entity_id is None:
            raise NotFound(f"the project {row.name!r} belongs to no team yet")
        return self._of_row(row)

    def _of_row(self, row: OwnedProject) -> Project:
        assert row.entity_id is not None
        entity = self.entity(row.entity_id)
        return Project(
            row.id,
            entity,
            Visibility(row.visibility),
            row.owner_id,
            deleted=row.deleted,
            is_registry=is_registry(row.name),
        )


def _limits(key: KeyRow) -> KeyLimits:
    return KeyLimits(KeyScope(key.scope), key.entities or None, key.id)


def _is_own(principal: Principal, item: ProjectItem) -> bool:
    if isinstance(principal, User):
        return item.author_id == principal.id
    return isinstance(principal, ServiceAccount) and item.service_account_id == principal.id


@dataclass(frozen=True, slots=True)
class EntityDefaults:
    """The defaults of a team or own space: whether code is saved, and the visibility of new projects."""

    code_saving: bool
    visibility: str


def entity_defaults(accounts: AccountStore, entity: EntityFacts) -> EntityDefaults:
    """Return the defaults of a team or own space: what the user or else the organisation chose."""
    stored = accounts.settings.all()
    if entity.owner_id is None:
        team = accounts.teams.by_name(entity.name)
        code_saving = enforced_switches(stored).get("code_saving", team.code_saving)
        return EntityDefaults(code_saving, entity.default_visibility)
    settings, chosen = with_defaults(stored), accounts.profiles.get(entity.owner_id).fields
    return EntityDefaults(
        chosen.get("code_saving", settings["code_saving_default"]),
        chosen.get("default_visibility") or settings["personal_visibility"],
    )
