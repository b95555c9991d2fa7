"""`/reports`, and `…/reports` of a project: create, list, read, change, publish and delete reports."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from fastapi import Depends, HTTPException, Query, Request
from pydantic import ValidationError

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs, with_accounts
from runvitals.server.access.principals import ServiceAccount, User
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import ProjectItem
from runvitals.server.http.errors import DetailedError, InvalidFields
from runvitals.server.http.immediate import immediate
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.projects.storage.owned_projects import ProjectDetail
from runvitals.server.reports.document import Document, document_of
from runvitals.server.reports.markdown_blocks import blocks_of_markdown
from runvitals.server.reports.notices import ReportNotices
from runvitals.server.reports.routes import report_models as models
from runvitals.server.reports.routes.block_models import checked_blocks
from runvitals.server.reports.routes.panel_readers import shown_to_readers, unreadable_place
from runvitals.server.reports.routes.shown_reports import full_report, listed, marks_of, shown_list
from runvitals.server.reports.storage.report_table import ReportTable
from runvitals.server.reports.storage.rows import ReportAuthor, ReportEdited, ReportRow
from runvitals.server.reports.templates import document_of_template
from runvitals.server.runs.routes.project_parameters import PATH, TheProject
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheRequester
from runvitals.store.errors import NotFound

REPORT = "/reports/{report}"
router = Router()


@immediate
def the_report(report: str, request: Request, access: TheAccess) -> ProjectItem:
    """Return the report of the path; `needs` has looked it up and decided."""
    item: ProjectItem = request.state.report
    return item


TheReport = Annotated[ProjectItem, Depends(the_report)]


@immediate
def the_user_id(requester: TheRequester) -> int:
    """Return the id of the user.

    Raises:
        HTTPException: 403 for a service account.
    """
    if requester.user_id is None:
        raise HTTPException(403, "only users edit reports on the page, comment on them, star and follow them")
    return requester.user_id


TheUserId = Annotated[int, Depends(the_user_id)]


@router.get(f"{PATH}/reports", needs("report:read"), response_model=models.ReportsPage)
def project_reports(
    project: TheProject,
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    text: Annotated[str, Query(max_length=200, description="Words in the title or text.")] = "",
    deleted: Annotated[bool, Query(description="Those in the trash that you may restore.")] = False,
) -> Any:
    """The reports of a project that you may read, the one that changed last first."""
    rows = _reports(access).of_project(project.id, requester.user_id, text, deleted)
    action = Action.REPORT_DELETE if deleted else Action.REPORT_READ
    return page_in_order("reports", shown_list(access, requester, rows, action), page)


@router.post(
    f"{PATH}/reports",
    needs("report:create"),
    with_accounts(),
    response_model=models.ReportSchema,
    status_code=201,
)
def create_report(
    project: TheProject,
    new: models.NewReport,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> Any:
    """Create a report: a draft, or published at once."""
    row, document = create(access, requester, project.id, content_of(access, requester, project, new))
    if new.publish:
        row = publish(access, requester, row, row.head_revision)
    item = resource_of(access, requester, row)
    return full_report(access, requester, item, row, row.head_revision, document, outside.image_links())


@router.get(REPORT, needs("report:read"), response_model=models.ReportSchema)
def read_report(
    report: TheReport,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
    draft: Annotated[bool, Query(description="The working copy, for who may change it.")] = False,
    revision: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="An older one, likewise.")] = None,
) -> Any:
    """A report as readers see it; a draft as it is."""
    row = _reports(access).get(report.id)
    shown_revision = row.published_revision
    if draft or revision is not None or shown_revision is None:
        access.require(requester, Action.REPORT_UPDATE, report, f"the working copy of report {row.id}")
        shown_revision = revision or row.head_revision
    try:
        document = _reports(access).document(row.id, shown_revision)
    except NotFound:
        raise HTTPException(404, f"revision {shown_revision} of report {row.id} is not kept") from None
    return full_report(access, requester, report, row, shown_revision, document, outside.image_links())


@router.patch(REPORT, needs("report:update"), response_model=models.MergedReport)
def change_report(
    report: TheReport,
    changes: models.ReportChanges,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> Any:
    """Change the working copy. Changes of others to other blocks are merged; to the same ones: 409."""
    reports = _reports(access)
    try:
        base = reports.document(report.id, changes.revision)
    except NotFound:
        row = reports.get(report.id)
        raise _edited(ReportEdited(row, (), reports.document(row.id, row.head_revision))) from None
    document = checked_document(
        base["title"] if changes.title is None else changes.title,
        base["description"] if changes.description is None else changes.description,
        base["blocks"] if changes.blocks is None else changes.blocks,
    )
    try:
        saved = reports.save(report.id, changes.revision, document, author_of(requester), access.clock())
    except ReportEdited as error:
        raise _edited(error) from None
    record(access, requester, saved.row, "report.update", revision=saved.row.head_revision)
    row = saved.row
    response = full_report(
        access, requester, report, row, row.head_revision, saved.document, outside.image_links()
    )
    return {**response, "others": list(saved.others)}


@router.post(f"{REPORT}/publish", needs("report:update"), response_model=models.ListedReport)
def publish_report(
    report: TheReport, published: models.PublishedRevision, access: TheAccess, requester: TheRequester
) -> Any:
    """Show a revision to everyone who may read reports of the project.

    If others see it by name or by a link, those who publish it must be able to read what panels show anew.
    """
    try:
        row = publish(access, requester, _reports(access).get(report.id), published.revision)
    except NotFound:
        raise InvalidFields({"revision": f"revision {published.revision} is not kept"}) from None
    return listed(row, True, marks_of(access, requester))


@router.post(f"{REPORT}/duplicate", needs("report:read"), response_model=models.ReportSchema, status_code=201)
def duplicate_report(
    report: TheReport,
    copy: models.DuplicatedReport,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> Any:
    """Create a draft with what you see of a report, in its project or another one."""
    row = _reports(access).get(report.id)
    project = report.project
    entity, name = copy.entity or row.entity, copy.project or row.project
    if copy.project is not None:
        project = access.named_project(requester, Action.PROJECT_READ, name, entity)
    access.require(requester, Action.REPORT_CREATE, project, f"project {f'{entity}/{name}'!r}")
    content = _content_of_report(access, requester, report.id)
    content = content._replace(document={**content.document, **({"title": copy.title} if copy.title else {})})
    created, document = create(access, requester, project.id, content)
    item = resource_of(access, requester, created)
    return full_report(
        access, requester, item, created, created.head_revision, document, outside.image_links()
    )


@router.delete(REPORT, needs("report:delete"), status_code=204)
def delete_report(report: TheReport, access: TheAccess, requester: TheRequester) -> None:
    """Move a report to the trash."""
    row = _reports(access).get(report.id)
    if row.deleted_ms is None:
        _reports(access).delete(report.id, access.clock())
        record(access, requester, row, "report.delete")


@router.post(f"{REPORT}/restore", needs("report:delete"), response_model=models.ListedReport)
def restore_report(report: TheReport, access: TheAccess, requester: TheRequester) -> Any:
    """Take a report out of the trash."""
    _reports(access).restore(report.id)
    row = _reports(access).get(report.id)
    record(access, requester, row, "report.restore")
    return listed(row, True, marks_of(access, requester))


class ReportContent(NamedTuple):
    """What a new report begins with. `source`: the report whose files it shows."""

    document: Document
    source: int | None = None


def content_of(
    access: AccessControl, requester: Requester, project: ProjectDetail, new: models.NewReport
) -> ReportContent:
    """Return what a new report begins with.

    Raises:
        InvalidFields: it has no title, or more than one content.
        HTTPException: the requester may not read the report that it begins with.
    """
    if sum((bool(new.blocks), new.markdown is not None, new.source is not None)) > 1:
        raise InvalidFields({"blocks": "expected only one of blocks, markdown and from"})
    content = ReportContent({"title": "", "description": "", "blocks": new.blocks})
    if isinstance(new.source, int):
        content = _content_of_report(access, requester, new.source)
    elif new.source is not None:
        content = ReportContent(document_of_template(new.source, project.entity, project.name))
    elif new.markdown is not None:
        try:
            blocks = blocks_of_markdown(new.markdown)
        except ValueError as error:
            raise InvalidFields({"markdown": str(error).removeprefix("markdown: ")}) from None
        content = ReportContent({"title": "", "description": "", "blocks": blocks})
    own = content.document
    title, description = new.title or own["title"], new.description or own["description"]
    if not title.strip():
        raise InvalidFields({"title": "expected a title"})
    return ReportContent({**own, "title": title, "description": description}, content.source)


def _content_of_report(access: AccessControl, requester: Requester, report_id: int) -> ReportContent:
    """Return what the requester sees of a report: who may change it, the working copy."""
    what = f"report '{report_id}'"
    try:
        row = _reports(access).get(report_id)
    except NotFound:
        access.hide(requester, what)
    item = resource_of(access, requester, row)
    access.require(requester, Action.REPORT_READ, item, what, changes=False)
    may_update = access.may(requester, Action.REPORT_UPDATE, item)
    revision = row.head_revision if may_update else row.published_revision or row.head_revision
    document = _reports(access).document(row.id, revision)
    return ReportContent(
        document if may_update else shown_to_readers(access, requester, item, document), row.id
    )


def create(
    access: AccessControl, requester: Requester, project_id: int, content: ReportContent
) -> tuple[ReportRow, Document]:
    """Create a draft in a project where the requester may."""
    own = content.document
    document = checked_document(own["title"], own["description"], own["blocks"])
    row = _reports(access).create(project_id, document, author_of(requester), access.clock())
    if content.source is not None:
        access.accounts.report_files.copy(content.source, row.id)
        access.accounts.frozen_panels.copy(content.source, row.id)
    record(access, requester, row, "report.create")
    return row, document


def publish(access: AccessControl, requester: Requester, row: ReportRow, revision: int) -> ReportRow:
    """Show a revision to readers, and notify those who follow the report.

    Raises:
        InvalidFields: others see what the requester may not read.
        UnknownReport: the revision is not kept.
    """
    reports, now_ms = _reports(access), access.clock()
    _check_panels(access, requester, row, revision)
    by = requester.actor.name
    notices = ReportNotices(access.metadata_store, access.directory, now_ms, requester.user_id, by)

    def work() -> ReportRow:
        before = reports.kept_document(row.id, row.published_revision)
        published = reports.publish(row.id, revision, now_ms)
        notices.published(published, reports.document(row.id, revision), before)
        return published

    published = access.accounts.in_one_transaction(work)
    record(access, requester, published, "report.publish", revision=revision)
    return published


def _check_panels(access: AccessControl, requester: Requester, row: ReportRow, revision: int) -> None:
    """Raise unless somebody may show what a revision shows to those with whom a report is shared.

    They see what its panels show of the project, also if the one who publishes it may only edit it.

    Raises:
        InvalidFields: a panel shows a project that the requester may not read.
        NotFound: the revision is not kept.
    """
    reports, accounts = _reports(access), access.accounts
    is_shared = accounts.report_shares.of_report(row.id) or accounts.guest_links.all(
        access.clock(), report_id=row.id
    )
    if not is_shared:
        return
    before = None if row.published_revision is None else reports.document(row.id, row.published_revision)
    project = unreadable_place(access, requester, before, reports.document(row.id, revision))
    if project is not None:
        problem = f"panels show {project} anew, which you may not read, or which does not exist"
        raise InvalidFields({"revision": f"{problem}: ask somebody to publish it who may"})


def resource_of(access: AccessControl, requester: Requester, row: ReportRow) -> ProjectItem:
    """Return a report as decisions about this requester need it."""
    return access.report_resource(requester.principal, row)


def author_of(requester: Requester) -> ReportAuthor:
    """Return who makes or changes a report."""
    principal = requester.principal
    if isinstance(principal, User):
        return ReportAuthor(user_id=principal.id)
    return ReportAuthor(service_account_id=principal.id if isinstance(principal, ServiceAccount) else None)


def checked_document(title: str, description: str, blocks: Any) -> Document:
    """Return a document to be stored.

    Raises:
        InvalidFields: ids are not unique, or there is too much of something.
    """
    try:
        return document_of(title, description, checked_blocks(blocks))
    except ValidationError as error:
        raise InvalidFields({"blocks": str(error)}) from None
    except ValueError as error:
        raise InvalidFields({"blocks": str(error).removeprefix("blocks: ")}) from None


def record(access: AccessControl, requester: Requester, row: ReportRow, action: str, **after: Any) -> None:
    """Add what was done with a report to the audit log."""
    access.accounts.audit.record(
        access.clock(),
        requester.actor,
        action,
        entity=(row.entity_id, row.entity),
        project=row.project,
        target=str(row.id),
        after=after or None,
    )


def _reports(access: AccessControl) -> ReportTable:
    return access.accounts.reports


def _edited(error: ReportEdited) -> DetailedError:
    conflicts = [
        {"id": conflict.id, "current": conflict.current, "yours": conflict.yours}
        for conflict in error.conflicts
    ]
    more = {"revision": error.row.head_revision, "conflicts": conflicts, "current": error.document}
    return DetailedError(409, str(error), more)
