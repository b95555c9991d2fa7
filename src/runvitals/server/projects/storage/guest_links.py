"""Links that let anyone read a project, a run or a report: read-only, expiring and revocable."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Select, func, insert, or_, select, update

from runvitals.server.accounts.storage.entities import name_of
from runvitals.server.accounts.storage.random_secrets import digest_of, new_secret
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.projects import guest_link
from runvitals.server.database.tables.reports import report
from runvitals.server.database.tables.runs import project, run
from runvitals.store.errors import NotFound


@dataclass(frozen=True, slots=True)
class GuestLinkRow:
    """A link without its secret, to a project, a run or a report."""

    id: int
    project_id: int | None
    run_id: int | None
    report_id: int | None
    created_by: int | None
    created_ms: int
    expires_ms: int | None


_LINKS = select(*[guest_link.c[name] for name in GuestLinkRow.__dataclass_fields__])


class GuestLinkTable(StoredTable):
    """The table of guest links."""

    def create(
        self,
        by: Actor,
        now_ms: int,
        *,
        project_id: int | None = None,
        run_id: int | None = None,
        report_id: int | None = None,
        expires_ms: int | None = None,
    ) -> tuple[str, GuestLinkRow]:
        """Create a link; returns its secret and its record. The secret is shown once.

        Raises:
            ValueError: not to exactly one project, run or report, or it would have expired already.
        """
        if [project_id, run_id, report_id].count(None) != 2:
            raise ValueError("a link is to one project, one run or one report")
        if expires_ms is not None and expires_ms <= now_ms:
            raise ValueError("the link would have expired already")
        secret, digest = new_secret()
        values = {
            "digest": digest,
            "project_id": project_id,
            "run_id": run_id,
            "report_id": report_id,
            "created_by": by.user_id,
            "created_ms": now_ms,
            "expires_ms": expires_ms,
        }

        def work(connection: Connection) -> GuestLinkRow:
            connection.execute(insert(guest_link).values(values))
            row = connection.execute(_LINKS.where(guest_link.c.digest == digest)).one()
            _record(connection, GuestLinkRow(**row._asdict()), by, now_ms, "create")
            return GuestLinkRow(**row._asdict())

        return secret, self._database.write(work)

    def check(self, secret: str, now_ms: int) -> GuestLinkRow | None:
        """The valid link with this secret; None if there is none."""
        statement = _LINKS.where(guest_link.c.digest == digest_of(secret), *_valid(now_ms))
        with self._database.read() as connection:
            row = connection.execute(statement).first()
        return None if row is None else GuestLinkRow(**row._asdict())

    def problem(self, secret: str, now_ms: int) -> str | None:
        """Why a link with this secret is not valid; None if there never was one, or it is valid."""
        with self._database.read() as connection:
            row = connection.execute(
                select(guest_link.c.expires_ms, guest_link.c.revoked_ms).where(
                    guest_link.c.digest == digest_of(secret)
                )
            ).first()
        if row is None:
            return None
        if row.revoked_ms is not None:
            return "this link was revoked"
        return "this link has expired" if row.expires_ms is not None and row.expires_ms <= now_ms else None

    def all(
        self,
        now_ms: int,
        *,
        project_id: int | None = None,
        run_id: int | None = None,
        report_id: int | None = None,
    ) -> list[GuestLinkRow]:
        """The valid links to a project, to a run, or to a report."""
        if project_id is not None:
            target = guest_link.c.project_id == project_id
        elif run_id is not None:
            target = guest_link.c.run_id == run_id
        else:
            target = guest_link.c.report_id == report_id
        with self._database.read() as connection:
            rows = connection.execute(_LINKS.where(target, *_valid(now_ms)).order_by(guest_link.c.id))
            return [GuestLinkRow(**row._asdict()) for row in rows]

    @in_transaction
    def revoke(self, connection: Connection, link_id: int, by: Actor, now_ms: int) -> None:
        """Revoke a link. Revoking it twice has no effect.

        Raises:
            NotFound: there is no such link.
        """
        mine = guest_link.c.id == link_id
        row = connection.execute(_LINKS.where(mine)).first()
        if row is None:
            raise NotFound(f"there is no link with id {link_id}")
        living = update(guest_link).where(mine, guest_link.c.revoked_ms.is_(None))
        if connection.execute(living.values(revoked_ms=now_ms)).rowcount:
            _record(connection, GuestLinkRow(**row._asdict()), by, now_ms, "revoke")
            rights_changed(connection)

    @in_transaction
    def revoke_of_entity(self, connection: Connection, entity_id: int, by: Actor, now_ms: int) -> int:
        """Revoke the links to all that a team or user has; returns how many."""
        theirs = _to_entity(entity_id)
        return revoke_links(connection, theirs, by, now_ms, name_of(connection, entity_id))

    def revoke_all(self, by: Actor, now_ms: int, *, of_teams: bool = False) -> int:
        """Revoke all links, or only those to what is `of_teams`; returns how many."""
        which = _to_all(of_teams)
        return self._database.write(lambda connection: revoke_links(connection, which, by, now_ms))

    def count(self, now_ms: int, entity_id: int | None = None) -> int:
        """How many links are valid: to what a team or user has, or to anything."""
        which = _to_all(of_teams=False) if entity_id is None else _to_entity(entity_id)
        statement = select(func.count()).select_from(guest_link).where(which, *_valid(now_ms))
        with self._database.read() as connection:
            count: int = connection.execute(statement).scalar_one()
        return count


def _to_entity(entity_id: int) -> ColumnElement[bool]:
    return to_projects(select(project.c.id).where(project.c.entity_id == entity_id))


def _to_all(of_teams: bool) -> ColumnElement[bool]:
    owned = select(project.c.id).join(entity, entity.c.id == project.c.entity_id)
    return to_projects(owned.where(entity.c.kind == "team") if of_teams else owned)


def to_projects(projects: Select[tuple[int]]) -> ColumnElement[bool]:
    """The links to some projects, their runs and their reports."""
    runs = select(run.c.id).where(run.c.project_id.in_(projects))
    reports = select(report.c.id).where(report.c.project_id.in_(projects))
    return or_(
        guest_link.c.project_id.in_(projects),
        guest_link.c.run_id.in_(runs),
        guest_link.c.report_id.in_(reports),
    )


def revoke_links(
    connection: Connection,
    which: ColumnElement[bool],
    by: Actor,
    now_ms: int,
    owner: tuple[int, str] | None = None,
) -> int:
    """Revoke the links that fit; returns how many. `owner`: of what all of them are to."""
    living = update(guest_link).where(which, guest_link.c.revoked_ms.is_(None))
    revoked = connection.execute(living.values(revoked_ms=now_ms)).rowcount
    if revoked:
        record(connection, now_ms, by, "link.revoke", entity=owner, after={"links": revoked})
        rights_changed(connection)
    return revoked


def _record(connection: Connection, link: GuestLinkRow, by: Actor, now_ms: int, verb: str) -> None:
    """Add what was done with a link to the audit log, with the names of what it is to."""
    columns = (project.c.name, project.c.entity_id, entity.c.name.label("entity"))
    statement = select(*columns).outerjoin(entity, entity.c.id == project.c.entity_id)
    uid, target, action = None, str(link.id), f"link.{verb}"
    if link.report_id is not None:
        target, action = str(link.report_id), f"report.link_{verb}"
        of_report = statement.join(report, report.c.project_id == project.c.id)
        row = connection.execute(of_report.where(report.c.id == link.report_id)).one()
    elif link.run_id is not None:
        of_run = statement.add_columns(run.c.uid).join(run, run.c.project_id == project.c.id)
        row = connection.execute(of_run.where(run.c.id == link.run_id)).one()
        uid = row.uid
    else:
        row = connection.execute(statement.where(project.c.id == link.project_id)).one()
    owner = None if row.entity_id is None else (row.entity_id, row.entity)
    record(connection, now_ms, by, action, entity=owner, project=row.name, run=uid, target=target)


def _valid(now_ms: int) -> tuple[ColumnElement[bool], ...]:
    return (
        guest_link.c.revoked_ms.is_(None),
        or_(guest_link.c.expires_ms.is_(None), guest_link.c.expires_ms > now_ms),
    )
