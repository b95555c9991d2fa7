"""The settings of alerts of users and teams, in the database."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import Connection, Table, and_, delete, or_, select

from runvitals.server.alerts.storage.checks import locked_team
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, among, in_transaction, insert
from runvitals.server.database.limits import check_room, take_turns
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.events import alert_exception, team_alerts, user_alerts
from runvitals.server.database.tables.runs import project, run

MAX_EXCEPTIONS: Final = 500
"""Of one user."""
Scope = Literal["team", "project", "run"]
SCOPES: Final[tuple[Scope, ...]] = ("run", "project", "team")
"""The most specific one first."""
Mode = Literal["off", "all"]


@dataclass(frozen=True, slots=True)
class AlertException:
    """The choice of a user for one team, project or run, in place of the settings.

    Args:
        target_id: its id.
        name: `team`, `entity/project` or `entity/project/run id`.
    """

    scope: Scope
    target_id: int
    mode: str
    name: str


@dataclass(frozen=True, slots=True)
class AlertSubject:
    """A team, project or run."""

    scope: Scope
    id: int


class AlertSettingTable(StoredTable):
    """The tables of settings."""

    def of_users(self, user_ids: Collection[int]) -> dict[int, dict[str, Any]]:
        """Return the choices of users; those who chose nothing are left out."""
        with self._database.read() as connection:
            mine = among(connection, user_alerts.c.user_id, user_ids)
            rows = connection.execute(select(user_alerts.c.user_id, user_alerts.c.data).where(mine))
            return {user_id: json.loads(data) for user_id, data in rows}

    def put_user(self, user_id: int, data: Mapping[str, Any], now_ms: int) -> None:
        """Replace the choices of a user."""
        self._database.write(
            lambda connection: _put(connection, user_alerts, "user_id", user_id, data, now_ms)
        )

    def of_team(self, team_id: int) -> dict[str, Any]:
        """Return the choices of a team."""
        with self._database.read() as connection:
            mine = select(team_alerts.c.data).where(team_alerts.c.team_id == team_id)
            data = connection.execute(mine).scalar()
        return {} if data is None else json.loads(data)

    @in_transaction
    def put_team(
        self, connection: Connection, team_id: int, data: Mapping[str, Any], by: Actor, now_ms: int
    ) -> None:
        """Replace the choices of a team.

        Raises:
            NotFound: the team was deleted meanwhile.
        """
        team = locked_team(connection, team_id)
        before = connection.execute(
            select(team_alerts.c.data).where(team_alerts.c.team_id == team_id)
        ).scalar()
        _put(connection, team_alerts, "team_id", team_id, data, now_ms)
        old = json.loads(before or "{}")
        record(connection, now_ms, by, "team.alerts", entity=team, before=old, after=dict(data))

    def modes(self, user_ids: Collection[int], targets: Mapping[Scope, int]) -> dict[int, dict[Scope, str]]:
        """Return what users chose for the given run, its project and its team: the mode by user and scope."""
        table = alert_exception.c
        fits = or_(*[_column(scope) == target_id for scope, target_id in targets.items()])
        modes: dict[int, dict[Scope, str]] = {}
        with self._database.read() as connection:
            statement = select(alert_exception).where(among(connection, table.user_id, user_ids), fits)
            for row in connection.execute(statement):
                scope = next(scope for scope in SCOPES if getattr(row, f"{scope}_id") is not None)
                modes.setdefault(row.user_id, {})[scope] = row.mode
        return modes

    def exceptions(self, user_id: int) -> list[AlertException]:
        """Return all exceptions of a user, by name."""
        table = alert_exception.c
        of_run = project.alias()
        owner, run_owner, team = entity.alias(), entity.alias(), entity.alias()
        statement = (
            select(alert_exception, team.c.name, owner.c.name, project.c.name)
            .add_columns(run_owner.c.name, of_run.c.name, run.c.uid)
            .outerjoin(team, team.c.id == table.team_id)
            .outerjoin(project, project.c.id == table.project_id)
            .outerjoin(owner, owner.c.id == project.c.entity_id)
            .outerjoin(run, run.c.id == table.run_id)
            .outerjoin(of_run, of_run.c.id == run.c.project_id)
            .outerjoin(run_owner, run_owner.c.id == of_run.c.entity_id)
            .where(table.user_id == user_id)
        )
        exceptions = []
        with self._database.read() as connection:
            for _, _, team_id, project_id, run_id, mode, *names in connection.execute(statement):
                if team_id is not None:
                    exceptions.append(AlertException("team", team_id, mode, names[0]))
                elif project_id is not None:
                    exceptions.append(
                        AlertException("project", project_id, mode, "/".join(filter(None, names[1:3])))
                    )
                else:
                    exceptions.append(AlertException("run", run_id, mode, "/".join(filter(None, names[3:]))))
        return sorted(exceptions, key=lambda exception: (exception.scope, exception.name))

    @in_transaction
    def except_from(
        self, connection: Connection, user_id: int, target: AlertSubject, mode: Mode | None
    ) -> None:
        """Set what a user wants to be notified of one team, project or run; None: what the settings say.

        Raises:
            LimitReached: the user has too many exceptions.
        """
        table = alert_exception.c
        mine = and_(table.user_id == user_id, _column(target.scope) == target.id)
        take_turns(connection, "alert_exception", user_id)
        connection.execute(delete(alert_exception).where(mine))
        if mode is None:
            return
        refusal = f"you have {MAX_EXCEPTIONS} exceptions, which is the most that are allowed"
        theirs = table.user_id == user_id
        check_room(connection, alert_exception, MAX_EXCEPTIONS, refusal, theirs, owner_id=user_id)
        values = {"user_id": user_id, f"{target.scope}_id": target.id, "mode": mode}
        connection.execute(insert(connection, alert_exception).values(values))


def _column(scope: Scope) -> Any:
    return alert_exception.c[f"{scope}_id"]


def _put(
    connection: Connection, table: Table, key: str, number: int, data: Mapping[str, Any], now_ms: int
) -> None:
    values = {"data": json.dumps(data), "changed_ms": now_ms}
    added = insert(connection, table).values({key: number, **values})
    connection.execute(added.on_conflict_do_update(index_elements=[key], set_=values))
