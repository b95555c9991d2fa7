"""Reports as responses have them."""

from __future__ import annotations

from typing import Any, Final

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import ProjectItem
from runvitals.server.reports.document import Document
from runvitals.server.reports.report_ids import slug_of
from runvitals.server.reports.storage.rows import ReportRow
from runvitals.server.user_content import markdown
from runvitals.server.user_content.image_links import ImageLinks

_RIGHTS: Final = {
    "update": Action.REPORT_UPDATE,
    "delete": Action.REPORT_DELETE,
    "share": Action.REPORT_SHARE,
    "share_public": Action.REPORT_SHARE_PUBLIC,
    "comment": Action.REPORT_COMMENT,
    "follow": Action.REPORT_FOLLOW,
}


def listed(row: ReportRow, may_update: bool) -> dict[str, Any]:
    """Return a report as lists have it.

    Args:
        may_update: whether the requester may know that there is a working copy that is not published.
    """
    head = row.head_revision if may_update else row.published_revision or row.head_revision
    names = (
        "id",
        "entity",
        "project",
        "author",
        "service_account",
        "title",
        "description",
        "published_revision",
        "published_ms",
        "created_ms",
        "deleted_ms",
    )
    return {
        **{name: getattr(row, name) for name in names},
        "slug": slug_of(row.title),
        "state": "draft" if row.is_draft else "published",
        "revision": head,
        "changed_ms": row.changed_ms if may_update else row.published_ms or row.changed_ms,
        "unpublished_changes": head != row.published_revision,
    }


def whole(
    access: AccessControl,
    requester: Requester,
    item: ProjectItem,
    row: ReportRow,
    revision: int,
    document: Document,
    images: ImageLinks,
) -> dict[str, Any]:
    """Return a report with the blocks of a revision."""
    may = {name: access.may(requester, action, item) for name, action in _RIGHTS.items()}
    return {
        **listed(row, may["update"]),
        "title": document["title"],
        "description": document["description"],
        "shown_revision": revision,
        "blocks": document["blocks"],
        "html": html_of_blocks(document, images),
        "may": may,
    }


def html_of_blocks(document: Document, images: ImageLinks) -> dict[str, str]:
    """Return the HTML of the blocks of text, by their ids."""
    return {
        block["id"]: markdown.html_of(block["text"][: markdown.MAX_CHARACTERS], images)
        for block in document["blocks"]
        if block["kind"] == "text"
    }
