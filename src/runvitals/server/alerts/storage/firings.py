"""When alert rules fired, for which series."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, func, insert, select, update

from runvitals.model.durations import DAY_MS
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.tables.alert_rules import alert_firing, alert_rule, alert_rule_state
from runvitals.server.database.tables.runs import project, run
from runvitals.server.events.automation_events import DEVICE_SILENT, FINDING, raise_for_run
from runvitals.server.events.outbox import Notification
from runvitals.server.events.outbox import add as add_notification
from runvitals.server.events.run_events import RunEvent, add_events
from runvitals.server.runs.storage.events import StoredEvent, add_event
from runvitals.store.errors import NotFound

KEPT_MS: Final = 365 * DAY_MS
_PENDING: Final = 1
"""As `alerts.evaluation` numbers the states."""


@dataclass(frozen=True, slots=True)
class Firing:
    """A time at which a rule fired for a series. `ended_ms`: None while it fires."""

    rule_id: int
    run_id: int
    lane_id: int
    key: str
    host: str
    severity: str
    value: float | None
    fired_ms: int
    ended_ms: int | None = None
    told: str = ""
    id: int = 0
    rule: str = ""
    run: str = ""
    project: str = ""

    @property
    def key_prefix(self) -> str:
        """The beginning of the `dedupe_key` of each notification about it."""
        return f"rule.fired:{self.rule_id}:{self.lane_id}:{self.key}:{self.fired_ms}:"

    @property
    def event_key(self) -> str:
        """The `key` of the event of the run by which users get it."""
        return f"rule:{self.rule_id}:{self.lane_id}:{self.key}:{self.fired_ms}"


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """For how many series a rule fires, and for how many its condition holds, but not for long enough yet."""

    firing: int = 0
    pending: int = 0


class FiringTable(StoredTable):
    """The table of firings."""

    @in_transaction
    def add(
        self,
        connection: Connection,
        firing: Firing,
        event: StoredEvent,
        run_event: RunEvent | None,
        notifications: Sequence[Notification],
        rule_name: str = "",
        is_silence: bool = False,
    ) -> None:
        """Write that a rule fired, with an event of the run and notifications.

        Does nothing if the rule or the run is gone, or if it fires for the series already: another server
        wrote it, or this one before it was killed.

        Args:
            rule_name: the name of the rule for automations; "": they are not told.
            is_silence: the rule found that something sends nothing any more.
        """
        # Locked, so that of several servers that find the same one writes it.
        rule_query = select(alert_rule.c.id).where(alert_rule.c.id == firing.rule_id).with_for_update()
        run_query = select(run.c.id).where(run.c.id == firing.run_id)
        if connection.execute(rule_query).first() is None or connection.execute(run_query).first() is None:
            return
        same = and_(
            alert_firing.c.rule_id == firing.rule_id,
            alert_firing.c.lane_id == firing.lane_id,
            alert_firing.c.key == firing.key,
            alert_firing.c.ended_ms.is_(None),
        )
        if connection.execute(select(alert_firing.c.id).where(same)).first() is not None:
            return
        values = {name: getattr(firing, name) for name in Firing.__dataclass_fields__ if name not in _SHOWN}
        connection.execute(insert(alert_firing).values(values))
        add_event(connection, event)
        if run_event is not None:
            add_events(connection, [run_event])
        if rule_name:
            key = f"{firing.rule_id}:{firing.lane_id}:{firing.key}:{firing.fired_ms}"
            data = {"finding": rule_name, "host": firing.host, "metric_name": firing.key}
            for kind in (FINDING, DEVICE_SILENT) if is_silence else (FINDING,):
                raise_for_run(connection, kind, firing.run_id, data, firing.fired_ms, key)
        for notification in notifications:
            add_notification(connection, notification)

    @in_transaction
    def end(
        self,
        connection: Connection,
        rule_id: int,
        lane_id: int,
        key: str,
        now_ms: int,
        notifications: Sequence[Notification] = (),
        run_event: RunEvent | None = None,
    ) -> None:
        """Write that a rule does not fire for a series any more."""
        mine = and_(
            alert_firing.c.rule_id == rule_id,
            alert_firing.c.lane_id == lane_id,
            alert_firing.c.key == key,
            alert_firing.c.ended_ms.is_(None),
        )
        if connection.execute(update(alert_firing).where(mine).values(ended_ms=now_ms)).rowcount:
            if run_event is not None:
                add_events(connection, [run_event])
            for notification in notifications:
                add_notification(connection, notification)

    def open(self) -> list[Firing]:
        """Return what fires now."""
        return self._firings(select(*_FIRINGS).where(alert_firing.c.ended_ms.is_(None)))

    def of_entity(
        self,
        entity_id: int,
        limit: int,
        before: int | None = None,
        rule_id: int | None = None,
        project_id: int | None = None,
        project_ids: Collection[int] | None = None,
        only_open: bool = False,
    ) -> list[Firing]:
        """Return when rules of a team or user fired, the newest first.

        Args:
            before: only those with a smaller id.
            project_ids: only of runs in these projects; None: all.
        """
        conditions = _conditions(entity_id, rule_id, project_id, project_ids, only_open)
        if before is not None:
            conditions.append(alert_firing.c.id < before)
        statement = select(*_FIRINGS).where(*conditions).order_by(alert_firing.c.id.desc()).limit(limit)
        return self._firings(statement)

    def count(
        self,
        entity_id: int,
        rule_id: int | None = None,
        project_id: int | None = None,
        project_ids: Collection[int] | None = None,
        only_open: bool = False,
    ) -> int:
        """Return how many `of_entity` has without `limit` and `before`."""
        conditions = _conditions(entity_id, rule_id, project_id, project_ids, only_open)
        statement = _join_rules(select(func.count())).where(*conditions)
        with self._database.read() as connection:
            return int(connection.execute(statement).scalar_one())

    def forget(self, before_ms: int) -> int:
        """Remove what fired and ended before a time; returns how many."""
        old = delete(alert_firing).where(
            alert_firing.c.fired_ms < before_ms, alert_firing.c.ended_ms.is_not(None)
        )
        return self._database.write(lambda connection: connection.execute(old).rowcount)

    def get(self, entity_id: int, firing_id: int, project_ids: Collection[int] | None = None) -> Firing:
        """Return a time at which a rule of a team or user fired.

        Raises:
            NotFound: there is none, or it is of a run in another project.
        """
        conditions = [*_conditions(entity_id, None, None, project_ids, False), alert_firing.c.id == firing_id]
        firings = self._firings(select(*_FIRINGS).where(*conditions))
        if not firings:
            raise NotFound("there is no such firing of a rule")
        return firings[0]

    def counts(self, entity_id: int, project_ids: Collection[int] | None = None) -> dict[int, RuleCounts]:
        """For how many series the rules of a team or user fire now, or are about to; without those at rest.

        Args:
            project_ids: only of runs in these projects; None: all.
        """
        readable = [] if project_ids is None else [run.c.project_id.in_(sorted(project_ids))]
        firing = (
            select(alert_firing.c.rule_id, func.count())
            .join(alert_rule, alert_rule.c.id == alert_firing.c.rule_id)
            .join(run, run.c.id == alert_firing.c.run_id)
            .where(alert_rule.c.entity_id == entity_id, alert_firing.c.ended_ms.is_(None), *readable)
            .group_by(alert_firing.c.rule_id)
        )
        pending = (
            select(alert_rule_state.c.rule_id, func.count())
            .join(alert_rule, alert_rule.c.id == alert_rule_state.c.rule_id)
            .join(run, run.c.id == alert_rule_state.c.run_id)
            .where(alert_rule.c.entity_id == entity_id, alert_rule_state.c.state == _PENDING, *readable)
            .group_by(alert_rule_state.c.rule_id)
        )
        with self._database.read() as connection:
            fire: dict[int, int] = dict(connection.execute(firing).all())
            wait: dict[int, int] = dict(connection.execute(pending).all())
        return {
            rule_id: RuleCounts(fire.get(rule_id, 0), wait.get(rule_id, 0))
            for rule_id in fire.keys() | wait.keys()
        }

    def _firings(self, statement: Select[Any]) -> list[Firing]:
        with self._database.read() as connection:
            return [Firing(**row._asdict()) for row in connection.execute(_join_rules(statement))]


_SHOWN: Final = ("id", "rule", "run", "project")
_FIRINGS: Final = (
    *(alert_firing.c[name] for name in Firing.__dataclass_fields__ if name not in _SHOWN),
    alert_firing.c.id,
    alert_rule.c.name.label("rule"),
    run.c.uid.label("run"),
    project.c.name.label("project"),
)


def _join_rules(statement: Select[Any]) -> Select[Any]:
    return (
        statement.select_from(alert_firing)
        .join(alert_rule, alert_rule.c.id == alert_firing.c.rule_id)
        .join(run, run.c.id == alert_firing.c.run_id)
        .join(project, project.c.id == run.c.project_id)
    )


def _conditions(
    entity_id: int,
    rule_id: int | None,
    project_id: int | None,
    project_ids: Collection[int] | None,
    only_open: bool,
) -> list[ColumnElement[bool]]:
    conditions = [alert_rule.c.entity_id == entity_id]
    if rule_id is not None:
        conditions.append(alert_firing.c.rule_id == rule_id)
    if project_id is not None:
        conditions.append(run.c.project_id == project_id)
    if only_open:
        conditions.append(alert_firing.c.ended_ms.is_(None))
    if project_ids is not None:
        conditions.append(run.c.project_id.in_(sorted(project_ids)))
    return conditions
