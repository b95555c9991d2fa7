"""The comments on reports, and the reactions to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, and_, delete, exists, insert, select, update

from runvitals.server.database.database import StoredTable, add_rows, among, in_transaction
from runvitals.server.database.limits import check_room
from runvitals.server.database.tables.accounts import entity, user_account
from runvitals.server.database.tables.reports import report_comment, report_reaction
from runvitals.store.errors import NotFound

MAX_COMMENTS: Final = 5000
"""Of a report."""
_MAX_REACTIONS: Final = 1000
_RESOLVER = user_account.alias()
_RESOLVER_ENTITY = entity.alias()


@dataclass(frozen=True, slots=True)
class NewComment:
    """A comment to be stored. `block`, `panel`, `x`: what it is about; `reply_to`: the thread."""

    text: str
    block: str | None = None
    panel: str | None = None
    x: float | None = None
    reply_to: int | None = None


@dataclass(frozen=True, slots=True)
class CommentRow:
    """A comment.

    Attributes:
        author: the user name; None: the account was deleted, or the comment was.
        author_name: the display name.
        text: empty if it was deleted while others had replied.
        reactions: emoji, and the id of the user whose reaction it is.
    """

    id: int
    report_id: int
    reply_to: int | None
    author_id: int | None
    author: str | None
    author_name: str | None
    block: str | None
    panel: str | None
    x: float | None
    text: str
    created_ms: int
    changed_ms: int | None
    resolved_ms: int | None
    resolved_by: str | None
    reactions: tuple[tuple[str, int], ...] = ()


class UnknownComment(NotFound):
    """The report has no such comment."""

    def __init__(self, comment_id: int) -> None:
        super().__init__(f"there is no comment {comment_id} on this report")


class ReportCommentTable(StoredTable):
    """The tables of comments and reactions.

    Example:
        >>> comment = comments.add(4, NewComment("Why 3e-4?", block="aaaa"), user_id, now_ms)
        >>> comments.react(comment, user_id, "👍", True, now_ms)
    """

    def of_report(self, report_id: int) -> list[CommentRow]:
        """Return the comments of a report, the oldest first."""
        with self._database.read() as connection:
            return _read(connection, report_comment.c.report_id == report_id)

    def get(self, report_id: int, comment_id: int) -> CommentRow:
        """Return a comment of a report, or raise UnknownComment."""
        with self._database.read() as connection:
            return _comment(connection, report_id, comment_id)

    def thread(self, comment: CommentRow) -> list[CommentRow]:
        """Return the comments of the thread of a comment."""
        first = comment.reply_to or comment.id
        with self._database.read() as connection:
            return _read(connection, (report_comment.c.id == first) | (report_comment.c.reply_to == first))

    @in_transaction
    def add(
        self, connection: Connection, report_id: int, new: NewComment, author_id: int, now_ms: int
    ) -> CommentRow:
        """Add a comment; a reply to a reply belongs to the same thread.

        Raises:
            UnknownComment: that of `reply_to`.
            LimitReached: the report has too many.
        """
        refusal = f"the report has {MAX_COMMENTS:,} comments, which is the most it may have"
        this = report_comment.c.report_id == report_id
        check_room(connection, report_comment, MAX_COMMENTS, refusal, this, owner_id=report_id)
        anchor: dict[str, Any] = {"block": new.block, "panel": new.panel, "x": new.x, "reply_to": None}
        if new.reply_to is not None:
            first = _comment(connection, report_id, new.reply_to)
            anchor = {"block": first.block, "panel": first.panel, "x": first.x}
            anchor["reply_to"] = first.reply_to or first.id
        values = {"report_id": report_id, "author_id": author_id, "text": new.text, "created_ms": now_ms}
        added = insert(report_comment).values(**values, **anchor).returning(report_comment.c.id)
        return _comment(connection, report_id, connection.execute(added).scalar_one())

    def change(self, comment: CommentRow, text: str, now_ms: int) -> None:
        """Replace the text of a comment."""
        self._set(comment, {"text": text, "changed_ms": now_ms})

    @in_transaction
    def remove(self, connection: Connection, comment: CommentRow) -> None:
        """Delete a comment. Where others have replied, its place in the thread stays, without text."""
        same = report_comment.c.id == comment.id
        emptied = {"text": "", "author_id": None, "changed_ms": None}
        replies = report_comment.alias()
        has_replies = select(exists().where(replies.c.reply_to == comment.id))
        if connection.execute(has_replies).scalar():
            connection.execute(update(report_comment).where(same).values(emptied))
            reactions = delete(report_reaction).where(report_reaction.c.comment_id == comment.id)
            connection.execute(reactions)
        else:
            connection.execute(delete(report_comment).where(same))

    def resolve(self, comment: CommentRow, by: int | None, now_ms: int | None) -> None:
        """Mark a thread as resolved by a user; or as open again, without a time."""
        self._set(comment, {"resolved_by": by, "resolved_ms": now_ms})

    @in_transaction
    def react(
        self, connection: Connection, comment: CommentRow, user_id: int, emoji: str, reacts: bool, now_ms: int
    ) -> None:
        """Add a reaction of a user, or take it back.

        Raises:
            LimitReached: the comment has too many.
        """
        row = {"comment_id": comment.id, "user_id": user_id, "emoji": emoji}
        if not reacts:
            same = [report_reaction.c[name] == value for name, value in row.items()]
            connection.execute(delete(report_reaction).where(*same))
            return
        refusal = f"the comment has {_MAX_REACTIONS:,} reactions, which is the most"
        this = report_reaction.c.comment_id == comment.id
        check_room(connection, report_reaction, _MAX_REACTIONS, refusal, this, owner_id=comment.id)
        add_rows(connection, report_reaction, [{**row, "created_ms": now_ms}])

    def _set(self, comment: CommentRow, values: dict[str, Any]) -> None:
        same = update(report_comment).where(report_comment.c.id == comment.id)
        self._database.write(lambda connection: connection.execute(same.values(values)))


def _comment(connection: Connection, report_id: int, comment_id: int) -> CommentRow:
    rows = _read(connection, report_comment.c.report_id == report_id, report_comment.c.id == comment_id)
    if not rows:
        raise UnknownComment(comment_id)
    return rows[0]


def _read(connection: Connection, *conditions: Any) -> list[CommentRow]:
    columns = [column for column in report_comment.c if column.name != "resolved_by"]
    joined = (
        report_comment.outerjoin(user_account, user_account.c.id == report_comment.c.author_id)
        .outerjoin(entity, and_(entity.c.id == user_account.c.entity_id, user_account.c.deleted_ms.is_(None)))
        .outerjoin(_RESOLVER, _RESOLVER.c.id == report_comment.c.resolved_by)
        .outerjoin(
            _RESOLVER_ENTITY,
            and_(_RESOLVER_ENTITY.c.id == _RESOLVER.c.entity_id, _RESOLVER.c.deleted_ms.is_(None)),
        )
    )
    statement = (
        select(
            *columns,
            entity.c.name.label("author"),
            user_account.c.display_name.label("author_name"),
            _RESOLVER_ENTITY.c.name.label("resolved_by"),
        )
        .select_from(joined)
        .where(*conditions)
        .order_by(report_comment.c.id)
    )
    rows = connection.execute(statement).all()
    reactions = _reactions(connection, rows)
    return [CommentRow(**row._asdict(), reactions=tuple(reactions.get(row.id, ()))) for row in rows]


def _reactions(connection: Connection, rows: Sequence[Any]) -> dict[int, list[tuple[str, int]]]:
    reactions: dict[int, list[tuple[str, int]]] = {}
    theirs = among(connection, report_reaction.c.comment_id, [row.id for row in rows])
    statement = select(report_reaction).where(theirs).order_by(report_reaction.c.created_ms)
    for row in connection.execute(statement):
        reactions.setdefault(row.comment_id, []).append((row.emoji, row.user_id))
    return reactions
