"""Alert rules of teams and users, and the state of their series."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, and_, case, delete, func, insert, select, update

from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, among, in_transaction
from runvitals.server.database.limits import check_room
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.alert_rules import alert_firing, alert_rule, alert_rule_state
from runvitals.server.database.tables.runs import project, run, writer
from runvitals.store.errors import NameTaken, NotFound

MAX_RULES: Final = 1000
"""Of one team or user."""
_MAX_STATES: Final = 100_000


@dataclass(frozen=True, slots=True)
class StoredRule:
    """A rule of a team or user.

    Attributes:
        definition: see `alerts.rules`.
        creator_id: who decided last what it does; None: deleted, or an operator of the server.
    """

    id: int
    entity_id: int
    name: str
    definition: Mapping[str, Any]
    enabled: bool
    muted_until_ms: int | None
    created_ms: int
    changed_ms: int
    creator_id: int | None


@dataclass(frozen=True, slots=True)
class RuleState:
    """The state of a rule for one series."""

    rule_id: int
    run_id: int
    lane_id: int
    key: str
    host: str
    state: int
    since_ms: int
    fired_ms: int | None


@dataclass(frozen=True, slots=True)
class WatchedLane:
    """A host of a run, as rules choose it. `role` and `rank`: of the writers that share the lane."""

    lane_id: int
    run_id: int
    uid: str
    host: str
    role: str
    entity_id: int | None
    project: str
    project_id: int
    rank: int | None = None


class AlertRuleTable(StoredTable):
    """The tables of rules."""

    def all(self) -> list[StoredRule]:
        """Return the rules of all teams and users, by id."""
        return self._read(select(alert_rule).order_by(alert_rule.c.id))

    def version(self) -> tuple[int, int, int]:
        """Something that differs after each change of a rule."""
        newest = select(func.count(), func.max(alert_rule.c.changed_ms), func.max(alert_rule.c.id))
        with self._database.read() as connection:
            count, changed_ms, last = connection.execute(newest).one()
        return count, changed_ms or 0, last or 0

    def of_entity(self, entity_id: int) -> list[StoredRule]:
        """Return the rules of a team or user, by name."""
        mine = alert_rule.c.entity_id == entity_id
        return self._read(select(alert_rule).where(mine).order_by(alert_rule.c.name))

    def get(self, entity_id: int, rule_id: int) -> StoredRule:
        """Return a rule of a team or user.

        Raises:
            NotFound: the team or user has no such rule.
        """
        mine = and_(alert_rule.c.entity_id == entity_id, alert_rule.c.id == rule_id)
        rules = self._read(select(alert_rule).where(mine))
        if not rules:
            raise NotFound("there is no such rule")
        return rules[0]

    @in_transaction
    def create(
        self,
        connection: Connection,
        entity_id: int,
        definition: Mapping[str, Any],
        enabled: bool,
        by: Actor,
        now_ms: int,
    ) -> StoredRule:
        """Add a rule, and return it.

        Raises:
            NameTaken: a rule has this name.
            LimitReached: there are too many.
            NotFound: the team or user was deleted meanwhile.
        """
        owner = _lock_owner(connection, entity_id)
        name = str(definition["name"])
        _check_name(connection, entity_id, name)
        refusal = f"there are {MAX_RULES} rules, which is the most that are allowed"
        theirs = alert_rule.c.entity_id == entity_id
        check_room(connection, alert_rule, MAX_RULES, refusal, theirs, owner_id=entity_id)
        values = {
            "entity_id": entity_id,
            "name": name,
            "definition": json.dumps(definition),
            "enabled": enabled,
            "created_by": by.user_id,
            "created_ms": now_ms,
            "changed_ms": now_ms,
        }
        connection.execute(insert(alert_rule).values(values))
        record(connection, now_ms, by, "alert_rule.create", entity=owner, target=name)
        mine = and_(alert_rule.c.entity_id == entity_id, alert_rule.c.name == name)
        return _rule(connection.execute(select(alert_rule).where(mine)).one())

    @in_transaction
    def update(
        self,
        connection: Connection,
        entity_id: int,
        rule_id: int,
        by: Actor,
        now_ms: int,
        *,
        definition: Mapping[str, Any] | None = None,
        enabled: bool | None = None,
        muted_until_ms: int | None = -1,
    ) -> StoredRule:
        """Change what is given (of `muted_until_ms`, -1 is not). Raises as `create`, or if there is none.

        Whoever changes what it does becomes its creator.
        """
        owner = _lock_owner(connection, entity_id)
        mine = and_(alert_rule.c.entity_id == entity_id, alert_rule.c.id == rule_id)
        row = connection.execute(select(alert_rule).where(mine)).first()
        if row is None:
            raise NotFound("there is no such rule")
        # Times of changes only grow, whatever the clock does, so that `version` differs.
        newest = connection.execute(select(func.max(alert_rule.c.changed_ms))).scalar_one()
        values: dict[str, Any] = {"changed_ms": max(now_ms, newest + 1)}
        if definition is not None:
            values |= {"definition": json.dumps(definition), "name": str(definition["name"])}
            values["created_by"] = by.user_id
            if values["name"] != row.name:
                _check_name(connection, entity_id, values["name"])
        if enabled is not None:
            values["enabled"] = enabled
        if muted_until_ms != -1:
            values["muted_until_ms"] = muted_until_ms
        connection.execute(update(alert_rule).where(mine).values(values))
        if definition is not None or enabled is False:  # its series begin anew
            connection.execute(delete(alert_rule_state).where(alert_rule_state.c.rule_id == rule_id))
            still = and_(alert_firing.c.rule_id == rule_id, alert_firing.c.ended_ms.is_(None))
            connection.execute(update(alert_firing).where(still).values(ended_ms=now_ms))
        record(connection, now_ms, by, "alert_rule.update", entity=owner, target=row.name)
        return _rule(connection.execute(select(alert_rule).where(mine)).one())

    @in_transaction
    def delete(self, connection: Connection, entity_id: int, rule_id: int, by: Actor, now_ms: int) -> None:
        """Delete a rule, with its history.

        Raises:
            NotFound: the team or user has no such rule.
        """
        owner = _lock_owner(connection, entity_id)
        mine = and_(alert_rule.c.entity_id == entity_id, alert_rule.c.id == rule_id)
        name = connection.execute(select(alert_rule.c.name).where(mine)).scalar()
        if name is None:
            raise NotFound("there is no such rule")
        connection.execute(delete(alert_rule).where(mine))
        record(connection, now_ms, by, "alert_rule.delete", entity=owner, target=name)

    def lanes(self, lane_ids: Collection[int]) -> dict[int, WatchedLane]:
        """Return the hosts and runs of lanes; those of runs in the trash are left out."""
        statement = (
            select(
                writer.c.lane_id,
                run.c.id,
                run.c.uid,
                writer.c.host,
                writer.c.role,
                run.c.entity_id,
                project.c.name,
                project.c.id,
                writer.c.rank,
            )
            .join(run, run.c.id == writer.c.run_id)
            .join(project, project.c.id == run.c.project_id)
        )
        with self._database.read() as connection:
            mine = (among(connection, writer.c.lane_id, lane_ids), run.c.deleted_ms.is_(None))
            return {row[0]: WatchedLane(*row) for row in connection.execute(statement.where(*mine))}

    def states(self) -> list[RuleState]:
        """Return the states of all series that are not at rest."""
        with self._database.read() as connection:
            return [RuleState(**row._asdict()) for row in connection.execute(select(alert_rule_state))]

    def last_heard(self, lane_ids: Collection[int]) -> dict[int, int]:
        """Return when lanes were heard last, by whichever server."""
        newest = select(writer.c.lane_id, func.max(writer.c.heard_ms)).group_by(writer.c.lane_id)
        with self._database.read() as connection:
            return dict(connection.execute(newest.where(among(connection, writer.c.lane_id, lane_ids))).all())

    def ended_lanes(self, lane_ids: Collection[int]) -> set[int]:
        """Return the lanes all of whose writers have ended: nothing more is expected of them."""
        open_writers = func.sum(case((writer.c.end_state.is_(None), 1), else_=0))
        with self._database.read() as connection:
            mine = select(writer.c.lane_id).where(among(connection, writer.c.lane_id, lane_ids))
            ended = mine.group_by(writer.c.lane_id).having(open_writers == 0)
            return set(connection.execute(ended).scalars())

    def heard_since(self, since_ms: int) -> dict[int, int]:
        """Return the lanes that any server has heard since a time, and when.

        Writers that have ended are left out.
        """
        newest = (
            select(writer.c.lane_id, func.max(writer.c.heard_ms))
            .join(run, run.c.id == writer.c.run_id)
            .where(run.c.alive_until_ms >= since_ms, writer.c.heard_ms >= since_ms)
            .where(writer.c.end_state.is_(None))
            .group_by(writer.c.lane_id)
        )
        with self._database.read() as connection:
            return dict(connection.execute(newest).all())

    def save_states(self, states: Sequence[RuleState], lane_ids: Collection[int]) -> None:
        """Replace the states of the series of some lanes. Other servers keep those of others."""
        names = RuleState.__dataclass_fields__
        rows = [{name: getattr(state, name) for name in names} for state in states[:_MAX_STATES]]

        def work(connection: Connection) -> None:
            mine = among(connection, alert_rule_state.c.lane_id, lane_ids)
            connection.execute(delete(alert_rule_state).where(mine))
            known_rules = set(connection.execute(select(alert_rule.c.id)).scalars())
            run_ids = {row["run_id"] for row in rows}
            known_runs = set(
                connection.execute(select(run.c.id).where(among(connection, run.c.id, run_ids))).scalars()
            )
            current_rows = [
                row for row in rows if row["rule_id"] in known_rules and row["run_id"] in known_runs
            ]
            if current_rows:
                connection.execute(insert(alert_rule_state), current_rows)

        self._database.write(work, durable=False)

    def _read(self, statement: Select[Any]) -> list[StoredRule]:
        with self._database.read() as connection:
            return [_rule(row) for row in connection.execute(statement)]


def _rule(row: Row[Any]) -> StoredRule:
    values = row._asdict()
    values |= {
        "creator_id": values.pop("created_by"),
        "definition": stored_object(row.definition, f"the rule {row.id}"),
    }
    return StoredRule(**values)


def _lock_owner(connection: Connection, entity_id: int) -> tuple[int, str]:
    """Id and name of a team or user, which other changes of its rules wait for."""
    mine = select(entity.c.id, entity.c.name).where(entity.c.id == entity_id, entity.c.deleted_ms.is_(None))
    row = connection.execute(mine.with_for_update()).first()
    if row is None:
        raise NotFound(f"there is no team or user with id {entity_id}")
    return row.id, row.name


def _check_name(connection: Connection, entity_id: int, name: str) -> None:
    mine = and_(alert_rule.c.entity_id == entity_id, alert_rule.c.name == name)
    if connection.execute(select(alert_rule.c.id).where(mine)).first() is not None:
        raise NameTaken(f"there is a rule {name!r} already")
