"""Projects and runs as wandb's clients see them: the objects behind the types `Project` and `Run`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from fastapi import HTTPException
from graphql import FieldNode, FragmentSpreadNode, SelectionSetNode

from runvitals.model.registry_names import MODELS, project_of_registry
from runvitals.model.state import RUNNING
from runvitals.server.access.actions import Action
from runvitals.server.access.principals import Operator, User
from runvitals.server.access.resources import Project, ProjectItem
from runvitals.server.doors.wandb import run_ids
from runvitals.server.doors.wandb.context import WITHOUT_ACCOUNTS, EntityNode, GraphQLContext, node_id
from runvitals.server.doors.wandb.history_rows import json_safe
from runvitals.server.doors.wandb.run_settings import INTERNAL, wrapped_config
from runvitals.server.doors.wandb.summaries import SUMMARY_SECTIONS, summary_of
from runvitals.server.projects.storage.projects import NOBODY
from runvitals.server.runs.storage.run_rows import RunRow

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

WANDB_STATES: Final[Mapping[str, str]] = {
    "running": "running",
    "finished": "finished",
    "failed": "failed",
    "crashed": "crashed",
    "stopped": "killed",
    "lost": "crashed",
}
"""wandb's states of runs, by ours."""
OUR_STATES: Final[Mapping[str, tuple[str, ...]]] = {
    theirs: tuple(ours for ours, name in WANDB_STATES.items() if name == theirs)
    for theirs in WANDB_STATES.values()
}
"""Our states, by wandb's."""
_HEAVY: Final[dict[str, tuple[str, ...]]] = {
    "config": ("config",),
    "summaryMetrics": SUMMARY_SECTIONS,
    "commit": ("machine",),
}
"""The sections that a field of `Run` is read from."""
_EXTENTS: Final = frozenset(("historyLineCount", "historyKeys", "parquetHistory"))


@dataclass(frozen=True, slots=True)
class ProjectNode:
    """A project. `resource`: for decisions; None on a server without accounts."""

    number: int
    name: str
    entity: EntityNode
    resource: Project | None

    @property
    def id(self) -> str:
        """The id of the project in GraphQL."""
        return node_id("Project", self.number)

    @property
    def internal_id(self) -> str:
        """The id that clients call internal."""
        return node_id("ProjectInternalId", self.number)

    @property
    def entity_name(self) -> str:
        """The name of the team or user."""
        return self.entity.name


@dataclass(slots=True)
class RunNode:
    """A run, with those of its values that a request asks for. `last_step`: None without logged rows."""

    row: RunRow
    project: ProjectNode
    name: str
    read_only: bool
    notes: str = ""
    config: str | None = None
    summary_metrics: str | None = None
    system_metrics: str | None = None
    history_line_count: int = 0
    last_step: float | None = None
    user: dict[str, Any] | None = None
    description: str | None = None
    commit: str | None = None
    sweep_name: str | None = None
    tags: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The id of the run in GraphQL."""
        return node_id("Run", self.row.id)

    @property
    def display_name(self) -> str:
        """The name of our run, which users can change."""
        return self.row.name

    @property
    def project_id(self) -> int:
        """The number of the project."""
        return self.row.project_id

    @property
    def state(self) -> str:
        """The state, as wandb calls it."""
        return WANDB_STATES[self.row.state]

    @property
    def exitcode(self) -> int | None:
        """The exit code; None until the run ends, or if none was sent."""
        return self.row.ending.exit_code

    @property
    def failed(self) -> bool:
        """Whether the run failed or crashed."""
        return self.state in ("failed", "crashed")

    @property
    def running(self) -> bool:
        """Whether the run is running."""
        return self.row.state == RUNNING

    @property
    def should_stop(self) -> bool:
        """Whether a user has asked the run to stop."""
        return self.row.stop_requested_ms is not None

    @property
    def group(self) -> str | None:
        """The group; None without one."""
        return self.row.group

    @property
    def job_type(self) -> str | None:
        """The job type; None without one."""
        return self.row.job_type

    @property
    def created_at(self) -> str:
        """When the run started, in UTC."""
        return iso_time(self.row.started_ms)

    @property
    def heartbeat_at(self) -> str:
        """When the run was last heard of, in UTC."""
        return iso_time(self.row.last_ms)


def iso_time(ms: int) -> str:
    """Return a time as clients read it: in UTC, to the millisecond.

    Example:
        >>> iso_time(1_760_000_000_125)
        '2025-10-09T08:53:20.125Z'
    """
    seconds_text = datetime.fromtimestamp(ms // 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{seconds_text}.{ms % 1000:03d}Z"


OF_LINK_MODEL: Final = "model-registry"
"""The project to which `run.link_model()` of clients links: it is the registry `model`."""


def find_project(context: GraphQLContext, name: str | None, entity_name: str | None) -> ProjectNode | None:
    """Return a project by its address; None if there is none that the requester may read."""
    if not name:
        return None
    name = _stored_name(context, name)
    if isinstance(context.requester.principal, Operator):
        for _, number in context.metadata_store.projects.named(name):
            return ProjectNode(number, name, EntityNode(None, entity_name or WITHOUT_ACCOUNTS), None)
        return None
    directory = context.access.directory
    if entity_name:
        owner = directory.entity_named(entity_name.lower())
        entity = None if owner is None or owner.deleted else context.entity_named(entity_name)
    else:
        entity = context.default_entity()
    if entity is None or entity.number is None:
        return None
    project = directory.project_named(entity.number, name)
    if (
        project is None
        or project.deleted
        or not context.access.may(context.requester, Action.PROJECT_READ, project)
    ):
        return None
    return ProjectNode(project.id, name, entity, project)


def _stored_name(context: GraphQLContext, name: str) -> str:
    if name != OF_LINK_MODEL:
        return name
    stored = project_of_registry(MODELS)
    context.names_of_projects[stored] = name  # the client looks for the name by which it asked
    return stored


def ensure_project(context: GraphQLContext, name: str, entity_name: str | None) -> ProjectNode:
    """Return the project with a name, for what begins with it; it is created if it does not exist.

    Raises:
        HTTPException: 401, 403 or 404.
    """
    name = _stored_name(context, name)
    node = find_project(context, name, entity_name)
    if node is not None:
        return node
    entity = context.entity_named(entity_name)
    now_ms = context.now_ms()
    if entity.number is None:
        number = context.metadata_store.projects.ensure(name, NOBODY, now_ms)
        return ProjectNode(number, name, entity, None)
    owner, principal = context.access.directory.entity(entity.number), context.requester.principal
    what = f"project {name[:100]!r}"
    context.access.require(context.requester, Action.PROJECT_CREATE, owner, what)
    if context.access.directory.project_named(entity.number, name) is not None:
        context.access.hide(context.requester, what)
    author_id = principal.id if isinstance(principal, User) else None
    owned = context.access.accounts.owned_projects
    owned.create(entity.number, name, context.requester.actor, now_ms, owner_id=author_id)
    context.access.rights_changed()
    created = find_project(context, name, entity.name)
    if created is None:
        raise HTTPException(403, f"you may not read {what}")
    return created


def project_of(context: GraphQLContext, row: RunRow) -> ProjectNode:
    """Return the project of a run that the requester may read."""
    if isinstance(context.requester.principal, Operator):
        return ProjectNode(row.project_id, row.project, EntityNode(None, WITHOUT_ACCOUNTS), None)
    resource = context.access.directory.project(row.project_id)
    return ProjectNode(row.project_id, row.project, context.entity_named(row.entity), resource)


def find_run(context: GraphQLContext, project: ProjectNode, name: str) -> RunRow | None:
    """Return a run of a project by its name in wandb; None if there is none that the requester may read."""
    client_run = run_ids.find_run(context.metadata_store, project.entity.number, project.name, name)
    if client_run.stored_run is None or client_run.stored_run.project_id != project.number:
        return None
    row = _row(context, client_run.stored_run.run_id)
    if row is None or project.resource is None:
        return row
    item = run_item(project.resource, row)
    return row if context.access.may(context.requester, Action.RUN_READ, item) else None


def run_to_change(context: GraphQLContext, number: int, action: Action, also_deleted: bool = False) -> RunRow:
    """Return a run on which the requester may do an action.

    Args:
        also_deleted: it may be in the trash.

    Raises:
        HTTPException: 401, 403, or 404.
    """
    what = f"run with the id {node_id('Run', number)!r}"
    row = context.metadata_store.runs.get([number], context.now_ms()).get(number)
    if row is None or (row.deleted_ms is not None and not also_deleted):
        context.access.hide(context.requester, what)
    if not isinstance(context.requester.principal, Operator):
        project = context.access.directory.project(row.project_id)
        context.access.require(context.requester, action, run_item(project, row), what)
    return row


def _row(context: GraphQLContext, number: int) -> RunRow | None:
    row = context.metadata_store.runs.get([number], context.now_ms()).get(number)
    return None if row is None or row.deleted_ms is not None else row


def run_nodes(
    context: GraphQLContext, project: ProjectNode, rows: Sequence[RunRow], fields: frozenset[str]
) -> list[RunNode]:
    """Return the nodes of runs, with the values of these fields of `Run`. Call it in a thread."""
    context.count_reads(len(rows))
    ids = [row.id for row in rows]
    library = context.services.library
    section_names = [
        "run",
        run_ids.SECTION,
        *(name for field_name in sorted(fields & _HEAVY.keys()) for name in _HEAVY[field_name]),
    ]
    sections = context.metadata_store.sections.read(ids, section_names)
    extents = library.logged_extents(ids) if fields & _EXTENTS else {}
    newest = library.newest_values(ids) if "systemMetrics" in fields else {}
    sweeps = context.metadata_store.sweeps.runs.sweeps_of(ids) if "sweepName" in fields else {}
    nodes = []
    for row in rows:
        shared = sections[row.id].shared
        own = shared.get(run_ids.SECTION, {})
        node = RunNode(
            row,
            project,
            str(own["id"]) if own.get("project") == row.project and own.get("id") else row.uid,
            not _may_update(context, project, row),
            notes=str(shared.get("run", {}).get("notes") or ""),
            user=_user(row),
            tags=_tags(row, shared.get("run", {})),
            sweep_name=sweeps.get(row.id),
        )
        if "config" in fields:
            internal = {INTERNAL: own["config"]} if own.get("config") else {}
            node.config = wrapped_config(json_safe({**shared.get("config", {}), **internal}))
        if "summaryMetrics" in fields:
            node.summary_metrics = json.dumps(json_safe(summary_of(sections[row.id])))
        if "systemMetrics" in fields:
            node.system_metrics = _system_json(newest.get(row.id, {}))
        node.commit = _commit(sections[row.id].by_host.get("machine", {}))
        if row.id in extents:
            node.history_line_count, node.last_step = extents[row.id]
        nodes.append(node)
    return nodes


def _system_json(newest: dict[str, dict[str, tuple[int, float]]]) -> str:
    """Return the newest system metrics; where there are several hosts, with their names."""
    several = len(newest) > 1
    return json.dumps(
        {
            f"system.{key}/l:{host}" if several else f"system.{key}": json_safe(value)
            for host, values in newest.items()
            for key, (_, value) in values.items()
        }
    )


def _commit(machines: dict[str, dict[str, Any]]) -> str | None:
    """Return the commit that a run was started from."""
    for machine in machines.values():
        git = machine.get("git")
        if isinstance(git, dict) and isinstance(git.get("commit"), str):
            return str(git["commit"])
    return None


def _tags(row: RunRow, about: dict[str, Any]) -> list[str]:
    """Return the tags of a run, in the order in which they were set."""
    ordered = [tag for tag in about.get("tags") or () if isinstance(tag, str)]
    return ordered if set(ordered) == set(row.tags) else list(row.tags)


def _may_update(context: GraphQLContext, project: ProjectNode, row: RunRow) -> bool:
    if project.resource is None:
        return True
    return context.access.may(context.requester, Action.RUN_UPDATE, run_item(project.resource, row))


def run_item(project: Project, row: RunRow) -> ProjectItem:
    """Return a run for decisions."""
    author_id = None if row.author is None else row.author.id
    account_id = None if row.service_account is None else row.service_account.id
    return ProjectItem("run", row.id, project, author_id, account_id, row.deleted_ms is not None)


def _user(row: RunRow) -> dict[str, Any]:
    """Return whose run it is; an empty name if nobody is known, because clients cannot read null."""
    if row.author is not None:
        return {"name": row.author.display_name or row.author.name or "", "username": row.author.name}
    if row.service_account is not None:
        return {"name": row.service_account.name, "username": row.service_account.name}
    return {"name": "", "username": None}


def selected_fields(info: Info) -> frozenset[str]:
    """Yield the names of all fields that a request selects below the field that is resolved."""

    def names(selections: SelectionSetNode | None) -> Iterator[str]:
        for selection in () if selections is None else selections.selections:
            if isinstance(selection, FieldNode):
                yield selection.name.value
                yield from names(selection.selection_set)
            elif isinstance(selection, FragmentSpreadNode):
                yield from names(info.fragments[selection.name.value].selection_set)
            else:
                yield from names(getattr(selection, "selection_set", None))

    return frozenset(name for node in info.field_nodes for name in names(node.selection_set))
