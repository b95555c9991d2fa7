"""Reports as W&B's clients list, read, write and delete them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError
from starlette.exceptions import HTTPException

from runvitals.base.numbers import parse_integer
from runvitals.model.errors import UnknownProject
from runvitals.model.hidden_characters import without_hidden_characters
from runvitals.server.access.actions import Action
from runvitals.server.access.principals import Operator
from runvitals.server.access.resources import ProjectItem
from runvitals.server.doors.wandb.context import GraphQLContext, node_id
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.reports import documents
from runvitals.server.doors.wandb.reports.documents import SentSpec
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_nodes import ProjectNode, find_project, iso_time
from runvitals.server.doors.wandb.viewer import UserNode
from runvitals.server.reports.document import MAX_DESCRIPTION, MAX_TITLE, Document, document_of
from runvitals.server.reports.report_ids import report_number
from runvitals.server.reports.routes.block_models import checked_blocks
from runvitals.server.reports.routes.reports import author_of, publish, record
from runvitals.server.reports.storage.rows import ReportEdited, ReportRow, UnknownReport

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

REPORT_VIEWS: Final = Resolvers("reports")
_MAX_PAGE: Final = 100
_MAX_NUMBER: Final = 2**31
_REPORT: Final = "runs"
_DRAFT: Final = "runs/draft"
_REVISION: Final = "runvitalsRevision"
"""In `panelSettings`, which clients send back: the revision that they changed."""


@dataclass(frozen=True, slots=True)
class ReportView:
    """A report, for the type `View`. `revision`: that it shows."""

    row: ReportRow
    project: ProjectNode
    revision: int

    @property
    def id(self) -> str:
        """The id of the report in GraphQL, and in the addresses that clients make."""
        return node_id("View", self.row.id)

    @property
    def name(self) -> str:
        """The name by which `Api.reports(name=…)` finds it."""
        return f"report-{self.row.id}"

    @property
    def type(self) -> str:
        """`runs`, or `runs/draft`."""
        return _DRAFT if self.row.is_draft else _REPORT

    @property
    def created_at(self) -> str:
        """When it was created."""
        return iso_time(self.row.created_ms)

    @property
    def updated_at(self) -> str:
        """When it was changed last."""
        return iso_time(self.row.changed_ms)


@REPORT_VIEWS.field("Query", "view")
def view(_: None, info: Info, id: str) -> ReportView | None:
    """Return a report: the working copy for who may change it."""
    context = info.context
    try:
        row, item = find_report(context, id)
    except HTTPException as error:
        if error.status_code == 404:
            return None
        raise
    return _view(context, row, item)


@REPORT_VIEWS.field("Project", "allViews")
def all_views(
    node: ProjectNode,
    info: Info,
    view_type: str | None = None,
    view_name: str | None = None,
    first: int | None = None,
    after: str | None = None,
    **_: Any,
) -> dict[str, Any]:
    """Return a page of the reports of a project, the one that changed last first."""
    context = info.context
    begin = parse_integer(after, _MAX_NUMBER) if after else 0
    if begin is None:
        raise InvalidArgument("invalid after: expected the `endCursor` of a previous page")
    views = [] if view_type not in (None, _REPORT, _DRAFT) else _views_of(context, node)
    if view_name is not None:
        views = [each for each in views if view_name in (each.name, each.row.title)]
    if view_type is not None:
        views = [each for each in views if each.type == view_type]
    limit = max(1, min(_MAX_PAGE, 50 if first is None else first))
    part = views[begin : begin + limit]
    end = begin + len(part)
    context.count_rows(len(part))
    more = {"hasNextPage": end < len(views), "hasPreviousPage": begin > 0}
    return {
        "edges": [{"node": each, "cursor": str(begin + index)} for index, each in enumerate(part, 1)],
        "pageInfo": {"endCursor": str(end), "startCursor": None, **more},
        "totalCount": len(views),
    }


@REPORT_VIEWS.field("View", "displayName")
def display_name(node: ReportView, info: Info) -> str:
    """Return the title."""
    title: str = _document(info.context, node)["title"]
    return title


@REPORT_VIEWS.field("View", "description")
def description(node: ReportView, info: Info) -> str:
    """Return the description."""
    text: str = _document(info.context, node)["description"]
    return text


@REPORT_VIEWS.field("View", "user")
def author(node: ReportView, info: Info) -> UserNode | None:
    """Return the author; None for a service account, or if the account was deleted."""
    if node.row.author_id is None or node.row.author is None:
        return None
    name = node.row.author
    return UserNode(node_id("User", node.row.author_id), name, name, [], name)


@REPORT_VIEWS.field("View", "spec")
def spec(node: ReportView, info: Info) -> str:
    """Return the report as wandb's clients and pages have it, as JSON."""
    context = info.context
    document = _document(context, node)
    sent = _sent_spec(context, node.row.id)
    client_blocks = documents.shown_blocks(document["blocks"], sent, _blocks_at(context, node.row.id, sent))
    return documents.spec_text(client_blocks, sent, {_REVISION: node.revision})


@REPORT_VIEWS.field("Mutation", "upsertView")
def upsert_view(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Create a report, or change one. What others changed meanwhile is merged."""
    context = info.context
    if isinstance(context.requester.principal, Operator):
        raise InvalidArgument("reports need accounts: create the first administrator")
    kind = input.get("type") or _REPORT
    if kind not in (_REPORT, _DRAFT):
        raise InvalidArgument(
            f"views of the type {kind[:60]!r} are not supported: only reports are, of the type {_REPORT!r}"
        )
    row, item = _change(context, input) if input.get("id") else _create(context, input)
    if kind == _REPORT and row.published_revision != row.head_revision:
        row = publish(context.access, context.requester, row, row.head_revision)
    return {"view": _view(context, row, item), "inserted": not input.get("id")}


@REPORT_VIEWS.field("Mutation", "deleteView")
def delete_view(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Move a report to the trash."""
    context = info.context
    row, item = find_report(context, input["id"])
    context.access.require(context.requester, Action.REPORT_DELETE, item, _named(input["id"]))
    context.access.accounts.reports.delete(row.id, context.now_ms())
    record(context.access, context.requester, row, "report.delete")
    return {"success": True, "pendingDrafts": False}


def _create(context: GraphQLContext, sent: dict[str, Any]) -> tuple[ReportRow, ProjectItem]:
    project = find_project(context, sent.get("project_name"), sent.get("entity_name"))
    name = f"{sent.get('entity_name')}/{sent.get('project_name')}"[:200]
    if project is None or project.resource is None:
        context.access.hide(context.requester, f"project {name!r}")
    context.access.require(context.requester, Action.REPORT_CREATE, project.resource, f"project {name!r}")
    specification = documents.parsed_spec(sent.get("spec") or "")
    blocks, pairs = documents.received(specification, project.entity.name, project.name, [], {})
    document = _checked(sent, blocks, {"title": "Untitled report", "description": ""})
    reports = context.access.accounts.reports
    row = reports.create(project.number, document, author_of(context.requester), context.now_ms())
    record(context.access, context.requester, row, "report.create")
    _keep(context, row.id, SentSpec(row.head_revision, pairs, documents.rest_of(specification)))
    return row, context.access.report_resource(context.requester.principal, row)


def _change(context: GraphQLContext, sent: dict[str, Any]) -> tuple[ReportRow, ProjectItem]:
    row, item = find_report(context, sent["id"])
    context.access.require(context.requester, Action.REPORT_UPDATE, item, _named(sent["id"]))
    reports = context.access.accounts.reports
    specification = documents.parsed_spec(sent.get("spec") or "")
    before = _sent_spec(context, row.id)
    base_revision = _base_revision(specification, before, row)
    try:
        base = reports.document(row.id, base_revision)
    except UnknownReport:
        raise InvalidArgument(
            f"revision {base_revision} of the report is not kept: load the report again, and change that"
        ) from None
    client_blocks = documents.shown_blocks(base["blocks"], before, _blocks_at(context, row.id, before))
    present = {block["id"]: block for block in base["blocks"]}
    blocks, pairs = documents.received(specification, row.entity, row.project, client_blocks, present)
    document = _checked(sent, blocks, base)
    try:
        saved = reports.save(row.id, base_revision, document, author_of(context.requester), context.now_ms())
    except ReportEdited as error:
        raise InvalidArgument(
            f"nothing was saved: {error}; load the report again, and make your changes to that"
        ) from None
    record(context.access, context.requester, saved.row, "report.update", revision=saved.row.head_revision)
    blocks_with_ids = [(own_id, block) for own_id, block in pairs if own_id not in saved.others]
    _keep(
        context, row.id, SentSpec(saved.row.head_revision, blocks_with_ids, documents.rest_of(specification))
    )
    return saved.row, item


def _base_revision(specification: dict[str, Any], before: SentSpec | None, row: ReportRow) -> int:
    """The revision that a client changed: as it says, else what a client saved last."""
    settings = specification.get("panelSettings")
    revision = settings.get(_REVISION) if isinstance(settings, dict) else None
    if isinstance(revision, int) and not isinstance(revision, bool) and 0 < revision <= row.head_revision:
        return revision
    return row.head_revision if before is None else before.revision


def _checked(sent: dict[str, Any], blocks: list[dict[str, Any]], base: Document) -> Document:
    title = base["title"] if sent.get("display_name") is None else sent["display_name"]
    text = base["description"] if sent.get("description") is None else sent["description"]
    title = title.strip()[:MAX_TITLE] or "Untitled report"
    if len(text) > MAX_DESCRIPTION:
        raise InvalidArgument(f"the description has {len(text):,} characters; at most {MAX_DESCRIPTION:,}")
    try:
        if title != base["title"]:
            title = without_hidden_characters("title", " ".join(title.split()))
        return document_of(title, text, checked_blocks(blocks))
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"][:8])
        raise InvalidArgument(f"invalid block of a report: {path}: {first['msg']}") from None
    except ValueError as error:
        raise InvalidArgument(str(error)) from None


def find_report(context: GraphQLContext, view_id: str) -> tuple[ReportRow, ProjectItem]:
    """Return a report that the requester may read, or raise HTTPException 401 or 404."""
    what, number = _named(view_id), report_number(view_id)
    if isinstance(context.requester.principal, Operator) or number is None:
        context.access.hide(context.requester, what)
    try:
        row = context.access.accounts.reports.get(number)
        item = context.access.report_resource(context.requester.principal, row)
    except (UnknownReport, UnknownProject):
        context.access.hide(context.requester, what)
    if row.deleted_ms is not None or not context.access.may(context.requester, Action.REPORT_READ, item):
        context.access.hide(context.requester, what)
    return row, item


def _named(view_id: str) -> str:
    return f"report {view_id[:60]!r}"


def _view(context: GraphQLContext, row: ReportRow, item: ProjectItem) -> ReportView:
    project = find_project(context, row.project, row.entity)
    if project is None:  # shared by name with somebody outside the team
        entity = context.entity_named(row.entity)
        project = ProjectNode(row.project_id, row.project, entity, item.project)
    may_update = context.access.may(context.requester, Action.REPORT_UPDATE, item)
    revision = row.head_revision if may_update or row.published_revision is None else row.published_revision
    return ReportView(row, project, revision)


def _views_of(context: GraphQLContext, node: ProjectNode) -> list[ReportView]:
    if node.resource is None:
        return []
    requester = context.requester
    rows = context.access.accounts.reports.of_project(node.number, requester.user_id)
    views = []
    for row in rows:
        item = context.access.report_resource(requester.principal, row)
        if context.access.may(requester, Action.REPORT_READ, item):
            views.append(_view(context, row, item))
    return views


def _document(context: GraphQLContext, node: ReportView) -> Document:
    context.count_reads(1)
    return context.access.accounts.reports.document(node.row.id, node.revision)


def _sent_spec(context: GraphQLContext, report_id: int) -> SentSpec | None:
    text = context.metadata_store.wandb_report_specs.get(report_id)
    return None if text is None else SentSpec.from_json(text)


def _blocks_at(context: GraphQLContext, report_id: int, sent: SentSpec | None) -> dict[str, Any]:
    """Our blocks of the revision that a client sent, by id."""
    if sent is None:
        return {}
    try:
        document = context.access.accounts.reports.document(report_id, sent.revision)
    except UnknownReport:  # not kept any more: all blocks count as changed
        return {}
    return {block["id"]: block for block in document["blocks"]}


def _keep(context: GraphQLContext, report_id: int, sent: SentSpec) -> None:
    context.metadata_store.wandb_report_specs.put(report_id, sent.as_json())
