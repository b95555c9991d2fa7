"""Saved views of projects: users' own ones, and those that are published for the project."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, delete, insert, or_, select, update

from runvitals.model import json_values
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.limits import check_room
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.accounts import entity, user_account
from runvitals.server.database.tables.projects import saved_view
from runvitals.server.database.tables.runs import project
from runvitals.server.database.text import checked_new_name
from runvitals.store.errors import NotFound

KINDS: Final = ("runs", "workspace")
MAX_VIEWS: Final = 200
"""Of each kind, that a user has in a project, and that are published for it."""
MAX_NAME: Final = 128
MAX_DATA_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class SavedView:
    """A saved view.

    Args:
        entity: the name of the team or user that has the project; None in a store without accounts.
        user_id, owner: whose view it is, and their name; None if it is published for the project.
        data: what the page saved, a JSON object.
        revision: grows with each change.
    """

    id: int
    kind: str
    name: str
    project_id: int
    project: str
    entity: str | None
    user_id: int | None
    owner: str | None
    data: dict[str, Any]
    revision: int
    changed_ms: int


class ViewChanged(ValueError):
    """Someone else has changed a view since it was read. `current`: as it is now."""

    def __init__(self, current: SavedView) -> None:
        super().__init__(
            f"the view {current.name!r} was changed meanwhile: its revision is {current.revision}; "
            "read it again"
        )
        self.current = current


class SavedViewTable(StoredTable):
    """The table of saved views.

    Example:
        >>> views = metadata_store.accounts.saved_views
        >>> view = views.create(3, "runs", "best", None, {"sort": "name"}, now_ms)
        >>> views.of_project(3, "runs", None) == [view]
        True
    """

    def of_project(self, project_id: int, kind: str | None, user_id: int | None) -> list[SavedView]:
        """The published views of a project and those of a user, by name.

        Args:
            kind: None: of all kinds.
            user_id: None: only the published ones.
        """
        mine: ColumnElement[bool] = saved_view.c.user_id.is_(None)
        if user_id is not None:
            mine = or_(mine, saved_view.c.user_id == user_id)
        statement = _views().where(saved_view.c.project_id == project_id, mine)
        if kind is not None:
            statement = statement.where(saved_view.c.kind == kind)
        with self._database.read() as connection:
            rows = connection.execute(statement.order_by(saved_view.c.name, saved_view.c.id))
            return [_view(row) for row in rows]

    def get(self, view_id: int) -> SavedView:
        """Return a view, or raise NotFound."""
        with self._database.read() as connection:
            return _to_view(connection, view_id)

    @in_transaction
    def create(
        self,
        connection: Connection,
        project_id: int,
        kind: str,
        name: str,
        user_id: int | None,
        data: dict[str, Any],
        now_ms: int,
    ) -> SavedView:
        """Save a new view of a user, or publish it if `user_id` is None.

        Raises:
            ValueError: an invalid kind, name or content.
            LimitReached: there are too many.
        """
        if kind not in KINDS:
            raise ValueError(f"kind: unknown kind {kind!r}; expected one of {', '.join(KINDS)}")
        values = {
            "project_id": project_id,
            "kind": kind,
            "name": checked_new_name("name", name, MAX_NAME),
            "user_id": user_id,
            "data": _encode(data),
            "revision": 1,
            "changed_ms": now_ms,
        }
        _check_count(connection, project_id, kind, user_id)
        view_id = connection.execute(
            insert(saved_view).values(values).returning(saved_view.c.id)
        ).scalar_one()
        return _to_view(connection, view_id)

    @in_transaction
    def change(
        self,
        connection: Connection,
        view_id: int,
        revision: int,
        now_ms: int,
        name: str | None = None,
        data: dict[str, Any] | None = None,
        move_to: tuple[int | None] | None = None,
    ) -> SavedView:
        """Change a view.

        Args:
            revision: of the view that the user saw.
            name, data: None: unchanged.
            move_to: the user whose view it becomes, or None to publish it, in a tuple; None: unchanged.

        Raises:
            NotFound: there is no such view.
            ViewChanged: it has another revision.
            ValueError: an invalid name or content.
            LimitReached: there are too many where it is moved to.
        """
        values: dict[str, Any] = {"revision": revision + 1, "changed_ms": now_ms}
        if name is not None:
            values["name"] = checked_new_name("name", name, MAX_NAME)
        if data is not None:
            values["data"] = _encode(data)
        if move_to is not None:
            values["user_id"] = move_to[0]
        before = _to_view(connection, view_id)
        if move_to is not None and before.user_id != move_to[0]:
            _check_count(connection, before.project_id, before.kind, move_to[0])
        same = (saved_view.c.id == view_id, saved_view.c.revision == revision)
        if connection.execute(update(saved_view).where(*same).values(values)).rowcount == 0:
            raise ViewChanged(_to_view(connection, view_id))
        return _to_view(connection, view_id)

    def delete(self, view_id: int) -> None:
        """Delete a view; without effect if there is none."""
        self._database.write(
            lambda connection: connection.execute(delete(saved_view).where(saved_view.c.id == view_id))
        )


def _encode(data: dict[str, Any]) -> str:
    try:
        json_values.check(data)
    except ValueError as error:
        raise ValueError(f"data: {error}") from None
    try:
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise ValueError("data: expected numbers that are finite") from None
    if len(text) > MAX_DATA_BYTES:
        raise ValueError(f"data: {len(text):,} bytes as JSON; expected at most {MAX_DATA_BYTES:,}")
    return text


def _check_count(connection: Connection, project_id: int, kind: str, user_id: int | None) -> None:
    same = (saved_view.c.project_id == project_id, saved_view.c.kind == kind)
    theirs = saved_view.c.user_id.is_not_distinct_from(user_id)
    whose = "published for this project" if user_id is None else "of yours in this project"
    refusal = f"there are {MAX_VIEWS} views {whose}: delete one first"
    check_room(connection, saved_view, MAX_VIEWS, refusal, *same, theirs, owner_id=project_id)


def _views() -> Select[Any]:
    owner = entity.alias("owner")
    return (
        select(
            saved_view,
            project.c.name.label("project"),
            entity.c.name.label("entity"),
            owner.c.name.label("owner"),
        )
        .join(project, project.c.id == saved_view.c.project_id)
        .outerjoin(entity, entity.c.id == project.c.entity_id)
        .outerjoin(user_account, user_account.c.id == saved_view.c.user_id)
        .outerjoin(owner, owner.c.id == user_account.c.entity_id)
    )


def _to_view(connection: Connection, view_id: int) -> SavedView:
    row = connection.execute(_views().where(saved_view.c.id == view_id)).first()
    if row is None:
        raise NotFound(f"there is no view {view_id}")
    return _view(row)


def _view(row: Any) -> SavedView:
    return SavedView(
        row.id,
        row.kind,
        row.name,
        row.project_id,
        row.project,
        row.entity,
        row.user_id,
        row.owner,
        stored_object(row.data, f"the view {row.id}"),
        row.revision,
        row.changed_ms,
    )
