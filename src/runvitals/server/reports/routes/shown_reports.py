"""Reports as responses have them."""

from __future__ import annotations

import html
from collections.abc import Collection, Sequence
from typing import Any, Final

from runvitals.model.errors import UnknownProject
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import ProjectItem
from runvitals.server.reports.audience import mentioned_readers
from runvitals.server.reports.document import Document
from runvitals.server.reports.report_ids import slug_of
from runvitals.server.reports.routes.panel_readers import shown_to_readers
from runvitals.server.reports.storage.rows import ReportMarks, ReportRow
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
_MAX_MARKUP: Final = 2_500_000
_MARKS: Final = {
    **dict.fromkeys("$@", 60),
    **dict.fromkeys("_~`\n", 40),
    **dict.fromkeys("[!*", 30),
    "<": 15,
    "|": 15,
}


def marks_of(access: AccessControl, requester: Requester) -> ReportMarks:
    """Return which reports the requester has starred, and which they follow."""
    user_id = requester.user_id
    return ReportMarks() if user_id is None else access.accounts.report_readers.marks(user_id)


def shown_list(
    access: AccessControl, requester: Requester, rows: Sequence[ReportRow], action: Action
) -> list[dict[str, Any]]:
    """Return those of some reports for which the requester may do something, as lists have them."""
    user_id = requester.user_id
    roles = {} if user_id is None else access.accounts.report_readers.share_roles(user_id)
    marks = marks_of(access, requester)
    reports = []
    for row in rows:
        try:
            item = access.report_resource(requester.principal, row, roles)
        except UnknownProject:  # removed a moment ago
            continue
        if access.may(requester, action, item):
            reports.append(listed(row, access.may(requester, Action.REPORT_UPDATE, item), marks))
    return reports


def listed(row: ReportRow, may_update: bool, marks: ReportMarks) -> dict[str, Any]:
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
        "starred": row.id in marks.starred,
        "followed": row.id in marks.followed,
    }


def full_report(
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
    if not may["update"]:
        document = shown_to_readers(access, requester, item, document)
    return {
        **listed(row, may["update"], marks_of(access, requester)),
        "title": document["title"],
        "description": document["description"],
        "shown_revision": revision,
        "blocks": document["blocks"],
        "html": html_of_blocks(document, images, _mentions(access, requester, row, document)),
        "may": may,
    }


def _mentions(
    access: AccessControl, requester: Requester, row: ReportRow, document: Document
) -> Collection[str]:
    """Return the names in the text of users who may read the report; a guest sees no links to them."""
    if requester.user_id is None:
        return ()
    texts = (block["text"] for block in document["blocks"] if block["kind"] == "text")
    names = set[str]().union(*map(markdown.mentions_of, texts))
    return mentioned_readers(access.accounts, access.directory, row, names)


def html_of_blocks(document: Document, images: ImageLinks, mentions: Collection[str] = ()) -> dict[str, str]:
    """Return the HTML of the blocks of text, by their ids.

    What would take too long, such as thousands of brackets, is shown as it was written.

    Args:
        mentions: names that become links.
    """
    remaining_markup = _MAX_MARKUP
    rendered = {}
    for block in document["blocks"]:
        if block["kind"] == "text":
            text = block["text"]
            remaining_markup -= _markup(text)
            is_shown = remaining_markup >= 0 and len(text) <= markdown.MAX_CHARACTERS
            rendered[block["id"]] = (
                markdown.html_of(text, images, mentions) if is_shown else f"<pre>{html.escape(text)}</pre>\n"
            )
    return rendered


def _markup(text: str) -> int:
    """Return how long it takes to render a text, at most: about a microsecond for each."""
    return len(text) + sum(weight * text.count(mark) for mark, weight in _MARKS.items())
