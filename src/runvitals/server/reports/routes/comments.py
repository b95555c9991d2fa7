"""`/reports/{report}/comments`: threads about a report, a block of it or a point of a panel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import Depends, HTTPException, Path
from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import ProjectItem
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.reports.audience import mentioned_readers
from runvitals.server.reports.document import panels_of
from runvitals.server.reports.notices import ReportNotices
from runvitals.server.reports.routes.block_models import Finite, ItemId
from runvitals.server.reports.routes.reports import REPORT, TheReport, TheUserId, record
from runvitals.server.reports.storage.comments import CommentRow, NewComment
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheRequester
from runvitals.server.user_content.image_links import ImageLinks
from runvitals.server.user_content.markdown import html_of, mentions_of

EMOJI: Final = ("👍", "👎", "😄", "🎉", "😕", "❤", "🚀", "👀")
_SELECTOR: Final = "\ufe0f"
_COMMENT: Final = f"{REPORT}/comments/{{comment}}"
CommentText = Annotated[str, Field(min_length=1, max_length=10_000, description="Markdown.")]
router = Router()


class NewReportComment(RequestBody):
    """A comment on a report, or on a block, panel or point of a panel's x-axis; or a reply."""

    text: CommentText
    block: ItemId | None = None
    panel: ItemId | None = None
    x: Finite | None = None
    reply_to: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        None, description="A comment of the thread; the reply is about the same."
    )


class CommentChanges(RequestBody):
    """The new text of a comment."""

    text: CommentText


class ReactionSchema(ResponseBody):
    """How many users reacted to a comment with an emoji."""

    emoji: str
    count: int
    mine: bool


class CommentRights(ResponseBody):
    """What the requester may do with a comment."""

    update: bool
    delete: bool
    resolve: bool


class ReportCommentSchema(ResponseBody):
    """A comment."""

    id: int
    reply_to: int | None
    author: str | None = Field(description="None: the author's account was deleted, or the comment was.")
    author_name: str | None
    block: str | None
    panel: str | None
    x: float | None
    text: str = Field(description="Empty: it was deleted, but others have replied.")
    html: str
    created_ms: int
    changed_ms: int | None
    resolved_ms: int | None
    resolved_by: str | None
    reactions: list[ReactionSchema]
    may: CommentRights


ReportCommentsPage = page_body(
    "ReportCommentsPage", "A page of comments, the oldest first.", comments=list[ReportCommentSchema]
)


CommentOfPath = Annotated[int, Path(ge=1, le=2**31 - 1)]


def the_comment(report: TheReport, comment: CommentOfPath, access: TheAccess) -> CommentRow:
    """Return the comment of the path."""
    return access.accounts.report_comments.get(report.id, comment)


TheComment = Annotated[CommentRow, Depends(the_comment)]


@router.get(f"{REPORT}/comments", needs("report:comment"), response_model=ReportCommentsPage)
def report_comments(
    report: TheReport,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
    page: ThePage,
) -> Any:
    """The comments on a report, the oldest first."""
    rows = access.accounts.report_comments.of_report(report.id)
    comment_response = _CommentResponse(access, requester, report, outside.image_links())
    return page_of("comments", rows, lambda row: row.id, page, comment_response.of)


@router.post(
    f"{REPORT}/comments", needs("report:comment"), response_model=ReportCommentSchema, status_code=201
)
def add_comment(
    report: TheReport,
    new: NewReportComment,
    access: TheAccess,
    requester: TheRequester,
    user_id: TheUserId,
    outside: TheOutsideServices,
) -> Any:
    """Comment on a report. Its author, followers, the thread and who is mentioned are notified."""
    text = _checked_text(new.text)
    _check_place(access, report.id, new)
    accounts, now_ms = access.accounts, access.clock()
    row = accounts.reports.get(report.id)
    notices = ReportNotices(access.metadata_store, access.directory, now_ms, user_id, requester.actor.name)

    def add() -> CommentRow:
        new_comment = NewComment(text, new.block, new.panel, new.x, new.reply_to)
        comment = accounts.report_comments.add(report.id, new_comment, user_id, now_ms)
        notices.commented(row, comment)
        return comment

    comment = accounts.in_one_transaction(add)
    return _CommentResponse(access, requester, report, outside.image_links()).of(comment)


@router.patch(_COMMENT, needs("report:comment"), response_model=ReportCommentSchema)
def change_comment(
    report: TheReport,
    comment: TheComment,
    changes: CommentChanges,
    access: TheAccess,
    requester: TheRequester,
    user_id: TheUserId,
    outside: TheOutsideServices,
) -> Any:
    """Change the text of your own comment."""
    if comment.author_id != user_id:
        raise HTTPException(403, "you may change your own comments only")
    access.accounts.report_comments.change(comment, _checked_text(changes.text), access.clock())
    changed = access.accounts.report_comments.get(report.id, comment.id)
    return _CommentResponse(access, requester, report, outside.image_links()).of(changed)


@router.delete(_COMMENT, needs("report:comment"), status_code=204)
def delete_comment(
    report: TheReport, comment: TheComment, access: TheAccess, requester: TheRequester
) -> None:
    """Delete your own comment; administrators delete any. What others replied stays."""
    if not _may_delete(access, requester, report, comment):
        raise HTTPException(403, "you may delete your own comments only")
    access.accounts.report_comments.remove(comment)
    if comment.author_id != requester.user_id:
        row = access.accounts.reports.get(report.id)
        record(access, requester, row, "report.comment_delete", author=comment.author)


@router.put(f"{_COMMENT}/resolved", needs("report:comment"), status_code=204)
def resolve_comment(
    report: TheReport,
    comment: TheComment,
    access: TheAccess,
    requester: TheRequester,
    user_id: TheUserId,
) -> None:
    """Mark a thread as resolved: whoever began it may, and whoever may change the report."""
    _check_resolves(access, requester, report, comment)
    access.accounts.report_comments.resolve(comment, user_id, access.clock())


@router.delete(f"{_COMMENT}/resolved", needs("report:comment"), status_code=204)
def reopen_comment(
    report: TheReport, comment: TheComment, access: TheAccess, requester: TheRequester
) -> None:
    """Open a resolved thread again."""
    _check_resolves(access, requester, report, comment)
    access.accounts.report_comments.resolve(comment, None, None)


@router.put(f"{_COMMENT}/reactions/{{emoji}}", needs("report:comment"), status_code=204)
def add_reaction(
    report: TheReport, comment: TheComment, emoji: str, access: TheAccess, user_id: TheUserId
) -> None:
    """React to a comment with one of 👍 👎 😄 🎉 😕 ❤ 🚀 👀."""
    accounts, now_ms = access.accounts, access.clock()
    accounts.report_comments.react(comment, user_id, _checked_emoji(emoji), True, now_ms)


@router.delete(f"{_COMMENT}/reactions/{{emoji}}", needs("report:comment"), status_code=204)
def remove_reaction(
    report: TheReport, comment: TheComment, emoji: str, access: TheAccess, user_id: TheUserId
) -> None:
    """Take your reaction back."""
    accounts, now_ms = access.accounts, access.clock()
    accounts.report_comments.react(comment, user_id, _checked_emoji(emoji), False, now_ms)


class _CommentResponse:
    """Comments as responses have them."""

    def __init__(
        self, access: AccessControl, requester: Requester, report: ProjectItem, images: ImageLinks
    ) -> None:
        self._access = access
        self._requester = requester
        self._report = report
        self._images = images
        self._row = access.accounts.reports.get(report.id)
        self._is_reader: dict[str, bool] = {}

    def of(self, row: CommentRow) -> Mapping[str, Any]:
        """Return the fields of a `ReportCommentSchema`."""
        counts: dict[str, int] = {}
        for emoji, _ in row.reactions:
            counts[emoji] = counts.get(emoji, 0) + 1
        mine = {emoji for emoji, author_id in row.reactions if author_id == self._requester.user_id}
        is_own = row.author_id is not None and row.author_id == self._requester.user_id
        names = ReportCommentSchema.model_fields.keys() - {"html", "reactions", "may"}
        return {
            **{name: getattr(row, name) for name in names},
            "html": html_of(row.text, self._images, self._mentions(row.text)),
            "reactions": [
                {"emoji": emoji, "count": count, "mine": emoji in mine} for emoji, count in counts.items()
            ],
            "may": {
                "update": is_own,
                "delete": _may_delete(self._access, self._requester, self._report, row),
                "resolve": _may_resolve(self._access, self._requester, self._report, row),
            },
        }

    def _mentions(self, text: str) -> set[str]:
        """Return the names in a text of users who may read the report."""
        names = mentions_of(text)
        new = names - self._is_reader.keys()
        if new:
            readers = mentioned_readers(self._access.accounts, self._access.directory, self._row, new)
            self._is_reader |= {name: name in readers for name in new}
        return {name for name in names if self._is_reader[name]}


def _may_delete(
    access: AccessControl, requester: Requester, report: ProjectItem, comment: CommentRow
) -> bool:
    """Return whether it is the requester's own, or they may delete any report of the project."""
    if comment.author_id is not None and comment.author_id == requester.user_id:
        return True
    of_others = replace(report, author_id=None, service_account_id=None, shared=frozenset(), draft=False)
    return access.may(requester, Action.REPORT_DELETE, of_others)


def _may_resolve(
    access: AccessControl, requester: Requester, report: ProjectItem, comment: CommentRow
) -> bool:
    if comment.reply_to is not None or requester.user_id is None:
        return False
    is_own = comment.author_id == requester.user_id
    return is_own or access.may(requester, Action.REPORT_UPDATE, report)


def _check_resolves(
    access: AccessControl, requester: Requester, report: ProjectItem, comment: CommentRow
) -> None:
    if comment.reply_to is not None:
        raise HTTPException(409, f"comment {comment.id} is a reply; expected the first of a thread")
    if not _may_resolve(access, requester, report, comment):
        raise HTTPException(403, "only who began a thread or may change the report resolves it")


def _checked_text(text: str) -> str:
    if not text.strip():
        raise InvalidFields({"text": "expected a text"})
    return text


def _checked_emoji(emoji: str) -> str:
    plain = emoji.removesuffix(_SELECTOR)
    if plain not in EMOJI:
        raise HTTPException(422, f"unknown reaction {emoji[:10]!r}; expected one of {' '.join(EMOJI)}")
    return plain


def _check_place(access: AccessControl, report_id: int, new: NewReportComment) -> None:
    """Check that the block or panel is in the report, as it is published or as it is edited."""
    if new.block is None and new.panel is None:
        if new.x is not None:
            raise InvalidFields({"x": "a point of an x-axis expects a panel"})
        return
    row = access.accounts.reports.get(report_id)
    revisions = {row.head_revision, row.published_revision or row.head_revision}
    blocks, panels = set(), set()
    for revision in revisions:
        document = access.accounts.reports.document(report_id, revision)
        blocks |= {block["id"] for block in document["blocks"]}
        panels |= {panel["id"] for _, panel in panels_of(document)}
    if new.block is not None and new.block not in blocks:
        raise InvalidFields({"block": f"the report has no block {new.block!r}"})
    if new.panel is not None and new.panel not in panels:
        raise InvalidFields({"panel": f"the report has no panel {new.panel!r}"})
