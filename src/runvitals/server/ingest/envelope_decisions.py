"""Decides which envelopes a key may send, to which team's run each belongs, and whose a new run is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import anyio
import anyio.to_thread

from runvitals.model.account_names import address_key
from runvitals.model.names import DEFAULT_PROJECT, PROJECT_NAME_ALLOWED, can_be_created, project_name
from runvitals.model.registry_names import is_registry
from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.decision import Decision
from runvitals.server.access.decisions.directory import Directory, entity_defaults
from runvitals.server.access.decisions.policies import visibility_problem
from runvitals.server.access.enforcement.refusals import Refusals
from runvitals.server.access.principals import SCOPE_ACTIONS, ServiceAccount, User
from runvitals.server.access.resources import Entity, Organisation, Project, ProjectItem, Visibility
from runvitals.server.audit.storage.audit import Actor
from runvitals.server.http.request_errors import HttpRejection, unavailable
from runvitals.server.ingest.envelope import AdmittedEnvelope, Envelope, SentEnvelope
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.projects.storage.projects import ProjectOwner
from runvitals.server.runs.storage.run_places import RunPlace
from runvitals.server.runs.storage.writer_registration import Sender
from runvitals.store.errors import MetadataStoreUnavailable, NotFound

ONLY_READS: Final = "this key may only read: create one that may write or ingest"
_MAX_ADMITTED: Final = 10_000
_MAX_WAITING: Final = 200
_RunKey = tuple[str | None, str]
_OWNERLESS: Final = (Visibility.PRIVATE, Visibility.RESTRICTED)


@dataclass(frozen=True, slots=True)
class Attribution:
    """The user whom a request names as the author of its runs. Only service accounts may."""

    username: str = ""
    address: str = ""


@dataclass(slots=True)
class _Decided:
    """An envelope that may be stored once its new projects, by name, were created.

    `called`: the entity, as the request named it. `ignored_run`: run id and project of a new run whose
    author is not the one who was named.
    """

    admitted: AdmittedEnvelope
    entity: Entity
    called: str
    new_projects: dict[str, Visibility] = field(default_factory=dict)
    ignored_run: tuple[str, str] | None = None


class KeyIngestRights:
    """The rights of one key to send envelopes: an `IngestRights`.

    Decisions are kept as long as this object; `IngestRightsCache` drops it when rights change.

    Args:
        principal: the owner of the key, with the key's limits.
        name: of the owner, for error messages.
        clock: the time now, ms UTC.
        threads: limits the threads that look up what is not known.
        refusals: records keys that are used for what they do not allow.
        earlier: `runs` of what was known before: admitted while the metadata store is away.

    Attributes:
        runs: what was admitted last for each run.
    """

    def __init__(
        self,
        principal: User | ServiceAccount,
        name: str,
        attribution: Attribution,
        metadata_store: MetadataStore,
        directory: Directory,
        clock: Callable[[], int],
        threads: anyio.CapacityLimiter,
        refusals: Refusals,
        earlier: Mapping[_RunKey, AdmittedEnvelope],
    ) -> None:
        self._clock = clock
        self._refusals = refusals
        self.principal = principal
        self.attribution = attribution
        self._name = name
        self._metadata_store = metadata_store
        self._directory = directory
        self._threads = threads
        self._unlimited = replace(principal, key=None)
        self._admitted: dict[tuple[str | None, str, str | None, tuple[str, ...]], AdmittedEnvelope] = {}
        self._earlier = earlier
        self.runs: dict[_RunKey, AdmittedEnvelope] = {}
        self._authors: dict[int, int | None] = {}

    def known(self, envelope: Envelope) -> AdmittedEnvelope | None:
        """Return the envelope if it is known to be admitted, without a look-up. Thread-safe."""
        return self._known(SentEnvelope(envelope))

    def _known(self, sent: SentEnvelope) -> AdmittedEnvelope | None:
        admitted = self._admitted.get(_key(sent))
        if admitted is None and not sent.projects and self._directory.away_s():
            return self.runs.get(_run_key(sent)) or self._earlier.get(_run_key(sent))
        return admitted

    async def admit(self, envelopes: Sequence[SentEnvelope]) -> list[AdmittedEnvelope]:
        """Admit the envelopes of a request, all or none.

        Raises:
            HttpRejection: 403 with the index of the first one that is not admitted; 503 if it cannot be
                decided.
        """
        decisions = [self._known(sent) for sent in envelopes]
        if all(decisions):
            return [admitted for admitted in decisions if admitted is not None]
        if self._threads.statistics().tasks_waiting >= _MAX_WAITING:
            raise unavailable("too many requests wait for a decision about their rights: try again later")
        try:
            return await anyio.to_thread.run_sync(self._admit, envelopes, limiter=self._threads)
        except MetadataStoreUnavailable as error:
            self._directory.store_failed()
            decisions = [self._known(sent) for sent in envelopes]
            if all(decisions):
                return [admitted for admitted in decisions if admitted is not None]
            raise unavailable("rights cannot be checked: see /readyz and the server log") from error

    def _admit(self, envelopes: Sequence[SentEnvelope]) -> list[AdmittedEnvelope]:
        decided: list[_Decided] = []
        projects = _named_projects(envelopes)
        for index, sent in enumerate(envelopes):
            try:
                decided.append(self._decide(sent, projects.get(_run_key(sent))))
            except HttpRejection as error:
                error.index = index
                raise
        if any(decision.new_projects or decision.ignored_run for decision in decided):
            self._metadata_store.in_one_transaction(lambda: self._create_projects(decided))
            self._directory.rights_changed()
        if len(self._admitted) + len(envelopes) > _MAX_ADMITTED:
            self._admitted.clear()
            self.runs.clear()
        for sent, decision in zip(envelopes, decided, strict=True):
            self._admitted[_key(sent)] = self.runs[_run_key(sent)] = decision.admitted
        return [decision.admitted for decision in decided]

    # Decisions

    def _decide(self, sent: SentEnvelope, project: str | None) -> _Decided:
        """Decide where an envelope is stored.

        Args:
            project: the project that the request names for the run; None if it names none.
        """
        envelope = sent.envelope
        self._check_scope(envelope)
        entity, run = self._find(envelope)
        author_id, ignored = self._author(entity) if run is None else (None, None)
        service_account_id = None if isinstance(self.principal, User) else self.principal.id
        key_id = None if self.principal.key is None else self.principal.key.id
        sender = Sender(entity.id, author_id, service_account_id, key_id)
        of_new = project if run is None else None
        called = envelope.entity or self._name_of(entity)
        decided = _Decided(AdmittedEnvelope(sender, ignored, of_new, self.principal), entity, called)
        project_of_envelope = project_name(envelope.project)
        if run is None:
            self._decide_project(decided, project_name(project))
            self._check_limit(entity)
            if ignored is not None:
                decided.ignored_run = envelope.run, project_name(project)
        else:
            self._check_run(decided, run, project_name(project))
            if envelope.project and run.project == DEFAULT_PROJECT != project_of_envelope:
                self._decide_project(decided, project_of_envelope)
        for target in sent.projects:
            if run is None or target != run.project:
                self._decide_project(decided, target)
                self._check_move(run)
        return decided

    def _find(self, envelope: Envelope) -> tuple[Entity, RunPlace | None]:
        """Return the entity of the envelope's run, and the run if it exists."""
        runs = self._metadata_store.runs.places(envelope.run)
        if envelope.entity is not None:
            entity = self._directory.entity_named(envelope.entity.lower())
            if entity is None:
                raise self._no_entity(envelope.entity)
            return entity, next((run for run in runs if run.entity_id == entity.id), None)
        home = self.principal.home
        mine = [run for run in runs if run.entity_id == home] or self._runs_sent(envelope.run, runs)
        if len(mine) == 1 and mine[0].entity_id is not None:
            return self._directory.entity(mine[0].entity_id), mine[0]
        if home is None:
            raise HttpRejection(403, "entity is missing: name the team or user that the run belongs to")
        return self._directory.entity(home), None

    def _runs_sent(self, uid: str, runs: list[RunPlace]) -> list[RunPlace]:
        """Return the runs with this id that the owner of the key has sent before."""
        if not runs:
            return []
        if isinstance(self.principal, User):
            sent = self._metadata_store.runs.sent_by(uid, user_id=self.principal.id)
        else:
            sent = self._metadata_store.runs.sent_by(uid, service_account_id=self.principal.id)
        return [run for run in runs if run.run_id in sent]

    def _check_scope(self, envelope: Envelope) -> None:
        """Check the scope of the key, before anything is looked up that it may not know."""
        key = self.principal.key
        if key is None or Action.RUN_CREATE in SCOPE_ACTIONS[key.scope]:
            return
        entity = None if envelope.entity is None else self._directory.entity_named(envelope.entity.lower())
        self._refusals.key_out_of_scope(self._actor(), Action.RUN_CREATE.value, entity or Organisation())
        raise HttpRejection(403, ONLY_READS)

    def _check_limit(self, entity: Entity) -> None:
        """Check that a plan does not refuse new runs. Only who may read the team learns what it has used."""
        refused = self._metadata_store.usage.refusal(entity.id)
        if refused is None:
            return
        if not self._directory.may(self._unlimited, Action.TEAM_READ, entity):
            refused = f"{self._name_of(entity)} may start no more runs this month: its plan is used up"
        raise HttpRejection(403, refused)

    def _check_run(self, decided: _Decided, run: RunPlace, new_project: str) -> None:
        """Check that envelopes may be added to a run. One in the trash is checked as if it were not there.

        Args:
            new_project: the project of the run, if it did not exist: one that is hidden is refused like that.
        """
        project = self._directory.project(run.project_id)
        if not self._may_add(project, f"{run.entity}/{run.project}"):
            self._decide_project(decided, new_project)
            raise HttpRejection(403, f"the run id {run.uid!r} is taken in {decided.called}")
        if not self._owns(run) and not self._directory.may(
            self._unlimited, Action.RUN_UPDATE, _item(run, project)
        ):
            raise HttpRejection(
                403, f"the run {run.uid!r} is somebody else's, and {self._name} may not write to it"
            )

    def _check_move(self, run: RunPlace | None) -> None:
        if run is None or self._owns(run):
            return
        project = self._directory.project(run.project_id)
        if not self._directory.may(self._unlimited, Action.RUN_MOVE, _item(run, project)):
            raise HttpRejection(
                403, f"the run {run.uid!r} is somebody else's, and {self._name} may not move it"
            )

    def _owns(self, run: RunPlace) -> bool:
        if isinstance(self.principal, User):
            return run.author_id == self.principal.id
        return run.service_account_id == self.principal.id

    def _decide_project(self, decided: _Decided, name: str) -> None:
        """Check that a run may be in a project, and note the project if it is to be created."""
        entity = decided.entity
        what = f"{decided.called}/{name}"
        number = dict(self._metadata_store.projects.named(name)).get(entity.id)
        if number is not None and self._may_add(self._directory.project(number), what):
            return
        # A project that is hidden is refused like one that does not exist.
        decision = self._directory.decide(self.principal, Action.PROJECT_CREATE, entity)
        if decision is not Decision.ALLOWED:
            self._note_scope(Action.PROJECT_CREATE, entity)
        if decision is Decision.HIDDEN:
            raise self._no_entity(decided.called)
        if decision is Decision.DENIED:
            raise HttpRejection(403, f"{self._name} may not create projects in {decided.called}")
        if number is not None:  # as the name is taken, it cannot be created
            raise HttpRejection(403, f"there is no project {what} that this key may log to")
        if not can_be_created(name):
            # After a 403, relays keep the journal: nothing is lost.
            raise HttpRejection(403, f"invalid project name {name[:100]!a}; expected {PROJECT_NAME_ALLOWED}")
        if is_registry(name):
            raise HttpRejection(403, f"{what[:200]} would be a registry, which has no runs")
        decided.new_projects[name] = self._visibility(decided)

    def _may_add(self, project: Project, what: str) -> bool:
        """Return whether runs may be added to a project; False if it is hidden.

        Raises:
            HttpRejection: 403, the project may only be read.
        """
        decision = self._directory.decide(self.principal, Action.RUN_CREATE, project)
        if decision is not Decision.ALLOWED:
            self._note_scope(Action.RUN_CREATE, project)
        if decision is Decision.DENIED:
            raise HttpRejection(403, f"{self._name} may look at {what}, not log to it")
        return decision is Decision.ALLOWED

    def _note_scope(self, action: Action, resource: Entity | Project) -> None:
        """Note in the audit log that only the limits of the key forbid something."""
        if self.principal.key is not None and self._directory.may(self._unlimited, action, resource):
            self._refusals.key_out_of_scope(self._actor(), action.value, resource)

    def _name_of(self, entity: Entity) -> str:
        return self._metadata_store.accounts.entity_names([entity.id]).get(entity.id, "")

    def _no_entity(self, name: str) -> HttpRejection:
        return HttpRejection(403, f"there is no entity {name[:100]!r} that this key may log to")

    # Authors and new projects

    def _author(self, entity: Entity) -> tuple[int | None, str | None]:
        """Return the author of a new run, and why it is not the user who was named."""
        if isinstance(self.principal, User):
            return self.principal.id, None
        attribution = self.attribution
        if not (attribution.username or attribution.address):
            return None, None
        if entity.id not in self._authors:
            self._authors[entity.id] = self._member(entity)
        author_id = self._authors[entity.id]
        if author_id is not None:
            return author_id, None
        what = "user name" if attribution.username else "e-mail address"
        return None, f"the {what} given for this run belongs to no active member of its team"

    def _member(self, entity: Entity) -> int | None:
        """Return the id of the user who was named, if they are an active member of the entity.

        A user name takes precedence.
        """
        accounts, attribution = self._metadata_store.accounts, self.attribution
        try:
            if attribution.username:
                user_id = accounts.users.by_name(attribution.username).id
            else:
                member = accounts.users.by_address(address_key(attribution.address))
                if member is None:
                    return None
                user_id = member.id
        except (NotFound, ValueError):  # also: not an address
            return None
        user = self._directory.user(user_id)
        return user_id if user is not None and user.state == "active" and entity.id in user.teams else None

    def _visibility(self, decided: _Decided) -> Visibility:
        """Return the visibility of a new project: the default of its entity, where it is allowed."""
        facts = self._metadata_store.accounts.entity(decided.entity.id)
        visibility = Visibility.TEAM
        if facts is not None:
            visibility = Visibility(entity_defaults(self._metadata_store.accounts, facts).visibility)
        project = Project(0, decided.entity, Visibility.TEAM, decided.admitted.sender.author_id)
        if visibility_problem(project, visibility, self._directory.policies()) is None:
            return visibility
        return Visibility.RESTRICTED if visibility is Visibility.PRIVATE else Visibility.TEAM

    def _create_projects(self, decided: Sequence[_Decided]) -> None:
        accounts, now_ms, actor = self._metadata_store.accounts, self._clock(), self._actor()
        for decision in decided:
            sender = decision.admitted.sender
            for name, visibility in decision.new_projects.items():
                owner = ProjectOwner(decision.entity.id, sender.author_id, visibility.value)
                number = self._metadata_store.projects.ensure(name, owner, now_ms, actor)
                if visibility in _OWNERLESS and sender.service_account_id is not None:
                    # Without it, the service account could not log to its own project.
                    accounts.project_members.add(
                        number, actor, now_ms, service_account_id=sender.service_account_id
                    )
            if decision.ignored_run is not None:
                run, project = decision.ignored_run
                entity = decision.entity.id, accounts.entity_names([decision.entity.id])[decision.entity.id]
                accounts.audit.record(
                    now_ms, actor, "run.attribution_ignored", entity=entity, project=project, run=run
                )

    def _actor(self) -> Actor:
        kind: Literal["user", "service_account"] = (
            "user" if isinstance(self.principal, User) else "service_account"
        )
        key = self.principal.key
        public_id = None
        if key is not None and key.id is not None:
            public_id = self._metadata_store.accounts.keys.get(key.id).public_id
        return Actor(kind, self._name, self.principal.id, "key", public_id)


def _key(sent: SentEnvelope) -> tuple[str | None, str, str | None, tuple[str, ...]]:
    return sent.envelope.entity, sent.envelope.run, sent.envelope.project, sent.projects


def _run_key(sent: SentEnvelope) -> _RunKey:
    return sent.envelope.entity, sent.envelope.run


def _named_projects(envelopes: Sequence[SentEnvelope]) -> dict[tuple[str | None, str], str]:
    """Return the projects that a request names for its runs: in an envelope, or else in records.

    Only the first envelope of a writer names one. Without this, the others would create the project
    `default`, which then stays empty.
    """
    projects = {_run_key(sent): sent.projects[-1] for sent in envelopes if sent.projects}
    return projects | {_run_key(sent): sent.envelope.project for sent in envelopes if sent.envelope.project}


def _item(run: RunPlace, project: Project) -> ProjectItem:
    return ProjectItem("run", run.run_id, project, run.author_id, run.service_account_id)
