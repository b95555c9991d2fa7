"""Requests for protected aliases: members ask, administrators of the registry decide, both may comment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import Connection, Select, func, insert, select, update

from runvitals.model.artifact_names import checked_alias
from runvitals.server.artifacts.storage.memberships import record_aliases, set_aliases
from runvitals.server.artifacts.storage.protection import Changer
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.limits import check_room, take_turns
from runvitals.server.database.tables.artifacts import artifact_collection, artifact_membership
from runvitals.server.database.tables.registry import alias_request, alias_request_comment
from runvitals.server.events.automation_events import raise_request
from runvitals.server.events.outbox import Notification, add
from runvitals.store.errors import LimitReached, NameTaken, NotFound

MAX_OPEN: Final = 100
"""Of a collection."""
MAX_COMMENTS: Final = 500
MAX_COMMENT: Final = 10_000

RequestState = Literal["open", "approved", "declined", "withdrawn"]


@dataclass(frozen=True, slots=True)
class AliasRequest:
    """A request that a version gets an alias. `number`: of the version. Times are ms UTC."""

    id: int
    project_id: int
    collection_id: int
    collection: str
    membership_id: int
    number: int
    alias: str
    state: RequestState
    author_id: int | None
    author: str
    created_ms: int
    closed_by: str | None
    closed_ms: int | None
    comments: int


@dataclass(frozen=True, slots=True)
class RequestComment:
    """A comment on a request."""

    id: int
    author_id: int | None
    author: str
    text: str
    created_ms: int


News = Callable[[AliasRequest], Iterable[Notification]]
"""Makes the notifications about a request."""


def _no_news(request: AliasRequest) -> Iterable[Notification]:
    return ()


class AliasRequestTable(StoredTable):
    """The requests of all registries.

    Example:
        >>> request = metadata_store.alias_requests.add(member.id, "production", "It is better.", now_ms, by)
        >>> metadata_store.alias_requests.close(request.id, "approved", "", now_ms, by).state
        'approved'
    """

    def get(self, project_id: int, request_id: int) -> AliasRequest:
        """Return a request of a registry, or raise NotFound."""
        with self._database.read() as connection:
            return _get(connection, request_id, project_id)

    def page(
        self, project_id: int, state: RequestState | None, collection_id: int | None, skip: int, limit: int
    ) -> tuple[list[AliasRequest], int]:
        """A page of the requests of a registry, the newest first, and how many there are."""
        statement = _requests().where(artifact_collection.c.project_id == project_id)
        if state is not None:
            statement = statement.where(alias_request.c.state == state)
        if collection_id is not None:
            statement = statement.where(artifact_collection.c.id == collection_id)
        with self._database.read() as connection:
            total = connection.execute(select(func.count()).select_from(statement.subquery())).scalar_one()
            page = statement.order_by(alias_request.c.id.desc()).offset(skip).limit(limit)
            return [AliasRequest(**row._asdict()) for row in connection.execute(page)], int(total)

    def comments(self, request_id: int) -> list[RequestComment]:
        """The comments on a request, the oldest first."""
        columns = alias_request_comment.c
        selected = (columns.id, columns.author_id, columns.author, columns.text, columns.created_ms)
        statement = select(*selected).where(columns.request_id == request_id).order_by(columns.id)
        with self._database.read() as connection:
            return [RequestComment(*row) for row in connection.execute(statement.limit(MAX_COMMENTS))]

    @in_transaction
    def add(
        self,
        connection: Connection,
        membership_id: int,
        alias: str,
        text: str,
        now_ms: int,
        by: Changer,
        news: News = _no_news,
    ) -> AliasRequest:
        """Request an alias for a version.

        Args:
            news: makes the notifications of the new request.

        Raises:
            ValueError: an invalid alias or text.
            NameTaken: it is requested already.
            LimitReached: the collection has too many open requests.
        """
        checked = checked_alias(alias)
        row = {"membership_id": membership_id, "alias": checked, "state": "open", "created_ms": now_ms}
        author = _author(by)
        column = artifact_membership.c.collection_id
        of_version = select(column).where(artifact_membership.c.id == membership_id)
        collection = connection.execute(of_version).scalar()
        take_turns(connection, "alias_request", collection or 0)
        statement = _requests().where(artifact_collection.c.id == collection, alias_request.c.state == "open")
        waiting = [AliasRequest(**each._asdict()) for each in connection.execute(statement)]
        if len(waiting) >= MAX_OPEN:
            raise LimitReached(f"the collection has {MAX_OPEN} open requests: wait for a decision")
        if any((each.membership_id, each.alias) == (membership_id, checked) for each in waiting):
            raise NameTaken(f"the alias {checked!r} is requested for this version already")
        added = insert(alias_request).values({**row, **author}).returning(alias_request.c.id)
        number = int(connection.execute(added).scalar_one())
        if text:
            _comment(connection, number, text, now_ms, by)
        raise_request(connection, membership_id, checked, author["author"], now_ms, str(number))
        request = _get(connection, number)
        _tell(connection, news(request))
        return request

    @in_transaction
    def comment(
        self,
        connection: Connection,
        request: AliasRequest,
        text: str,
        now_ms: int,
        by: Changer,
        news: News = _no_news,
    ) -> None:
        """Add a comment.

        Raises:
            ValueError: an empty or too long text.
            LimitReached: there are too many.
        """
        _comment(connection, request.id, text, now_ms, by)
        _tell(connection, news(_get(connection, request.id)))

    @in_transaction
    def close(
        self,
        connection: Connection,
        request_id: int,
        state: RequestState,
        text: str,
        now_ms: int,
        by: Changer,
        news: News = _no_news,
    ) -> AliasRequest:
        """Decide about an open request; an approved one gives the version its alias.

        Args:
            text: a comment that says why; empty: none.

        Raises:
            ValueError: the text is too long.
            NotFound: there is none.
            NameTaken: it was closed already.
            LimitReached: there are too many comments.
        """
        same = alias_request.c.id == request_id
        values = {"state": state, "closed_by": _author(by)["author"], "closed_ms": now_ms}
        closed = update(alias_request).where(same, alias_request.c.state == "open").values(values)
        changed = connection.execute(closed).rowcount
        request = _get(connection, request_id)
        if not changed:
            raise NameTaken(f"the request is {request.state} already")
        if state == "approved":
            link_ids = request.collection_id, request.membership_id
            record_aliases(connection, *link_ids, [request.alias], now_ms, by)
            set_aliases(connection, *link_ids, [request.alias])
        if text.strip():
            _comment(connection, request_id, text, now_ms, by)
        _tell(connection, news(request))
        return request


def _tell(connection: Connection, news: Iterable[Notification]) -> None:
    for notification in news:
        add(connection, notification)


def _author(by: Changer) -> dict[str, Any]:
    if by.actor is None:
        return {"author_id": None, "author": ""}
    return {"author_id": by.actor.user_id, "author": by.actor.name}


def _comment(connection: Connection, request_id: int, text: str, now_ms: int, by: Changer) -> None:
    checked = text.strip().replace("\x00", "␀")
    if not 1 <= len(checked) <= MAX_COMMENT:
        raise ValueError(f"a comment of {len(checked):,} characters; expected 1 to {MAX_COMMENT:,}")
    columns = alias_request_comment.c
    this = columns.request_id == request_id
    refusal = f"the request has {MAX_COMMENTS} comments"
    check_room(connection, alias_request_comment, MAX_COMMENTS, refusal, this, owner_id=request_id)
    row = {"request_id": request_id, "text": checked, "created_ms": now_ms, **_author(by)}
    connection.execute(insert(alias_request_comment).values(row))


def _get(connection: Connection, request_id: int, project_id: int | None = None) -> AliasRequest:
    statement = _requests().where(alias_request.c.id == request_id)
    if project_id is not None:
        statement = statement.where(artifact_collection.c.project_id == project_id)
    row = connection.execute(statement).first()
    if row is None:
        raise NotFound("the registry has no such request")
    return AliasRequest(**row._asdict())


def _requests() -> Select[Any]:
    comments = (
        select(func.count())
        .where(alias_request_comment.c.request_id == alias_request.c.id)
        .correlate(alias_request)
        .scalar_subquery()
    )
    names = ("id", "membership_id", "alias", "state", "author_id", "author", "created_ms", "closed_by")
    return (
        select(
            *(alias_request.c[name] for name in names),
            alias_request.c.closed_ms,
            artifact_collection.c.project_id,
            artifact_collection.c.id.label("collection_id"),
            artifact_collection.c.name.label("collection"),
            artifact_membership.c.number,
            comments.label("comments"),
        )
        .join(artifact_membership, artifact_membership.c.id == alias_request.c.membership_id)
        .join(artifact_collection, artifact_collection.c.id == artifact_membership.c.collection_id)
    )
