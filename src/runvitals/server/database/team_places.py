"""Where the files of teams are kept: in the file store of the server, or in a bucket of their own."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, ScalarSelect, select

from runvitals.server.database.tables.buckets import team_bucket
from runvitals.store.errors import OtherStorage


def place_of(connection: Connection, entity_id: ScalarSelect[Any] | int | None) -> int:
    """Return where the files of a team or user are kept, as in `stored_file.place`."""
    own = select(team_bucket.c.team_id).where(team_bucket.c.team_id == entity_id)
    return connection.execute(own).scalar() or 0


def require_same_place(connection: Connection, before_id: int | None, after_id: int | None) -> None:
    """Check that what moves from one team or user to another keeps its files where they are.

    Raises:
        OtherStorage: they would have to be copied.
    """
    if place_of(connection, before_id) != place_of(connection, after_id):
        raise OtherStorage("the two teams keep their files in different buckets, and files are not copied")
