"""The authors of runs: changes after a run was sent."""

from __future__ import annotations

from sqlalchemy import Connection, or_, select, update

from runvitals.model.errors import UnknownRun
from runvitals.model.names import plain_text
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import Database
from runvitals.server.database.tables.accounts import entity, membership, user_account
from runvitals.server.database.tables.runs import run
from runvitals.server.runs.storage.run_places import RunPlace, read_places
from runvitals.store.errors import NotFound


def set_author(database: Database, run_id: int, name: str | None, by: Actor, now_ms: int) -> None:
    """Make an active member of its team the author of a run; None: nobody.

    Raises:
        NotFound: the user is no such member.
        UnknownRun: there is no run with this id.
    """

    def work(connection: Connection) -> None:
        run_places = read_places(connection, run.c.id == run_id)
        if not run_places:
            raise UnknownRun(f"there is no run with id {run_id}")
        [run_place] = run_places
        author_id = None if name is None else _member(connection, run_place, name)
        connection.execute(update(run).where(run.c.id == run_id).values(author_id=author_id))
        owner = None if run_place.entity_id is None else (run_place.entity_id, run_place.entity or "")
        before = {"author": _name(connection, run_place.author_id)}
        record(
            connection,
            now_ms,
            by,
            "run.set_author",
            entity=owner,
            project=run_place.project,
            run=run_place.uid,
            before=before,
            after={"author": name},
        )

    database.write(work)


def _member(connection: Connection, run_place: RunPlace, name: str) -> int:
    own_space = entity.c.id == run_place.entity_id
    in_team = (
        select(membership.c.id)
        .where(membership.c.user_id == user_account.c.id, membership.c.team_id == run_place.entity_id)
        .exists()
    )
    statement = (
        select(user_account.c.id)
        .join(entity, entity.c.id == user_account.c.entity_id)
        .where(
            entity.c.name == plain_text(name).lower(),
            user_account.c.state == "active",
            or_(own_space, in_team),
        )
    )
    user_id: int | None = connection.execute(statement).scalar()
    if user_id is None:
        raise NotFound(f"{name!r} is no active member of {run_place.entity}")
    return user_id


def _name(connection: Connection, user_id: int | None) -> str | None:
    statement = select(entity.c.name).join(user_account, user_account.c.entity_id == entity.c.id)
    name: str | None = connection.execute(statement.where(user_account.c.id == user_id)).scalar()
    return name
