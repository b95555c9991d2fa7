"""Lost device-hours by cause, of many runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Integer,
    Select,
    and_,
    case,
    cast,
    func,
    null,
    select,
)

from runvitals.model.filter import Filter
from runvitals.server.database.database import StoredTable
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.findings import finding, judgement
from runvitals.server.database.tables.runs import project, run
from runvitals.server.runs.storage.filter_sql import plan


@dataclass(frozen=True, slots=True)
class LostTimePeriod:
    """The runs and the time that are asked for; `until_ms` is excluded."""

    runs: Filter
    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class LostTimeCause:
    """What was lost to findings of one id.

    Args:
        hours: of devices.
        runs: how many runs lost them.
    """

    id: str
    hours: float
    runs: int


@dataclass(frozen=True, slots=True)
class LosingRun:
    """A run that lost device-hours to a cause.

    Args:
        text, from_ms, to_ms: of the finding to which it lost most; `to_ms` is None while that goes on.
    """

    run_id: int
    run: str
    name: str
    entity: str | None
    project: str
    cause: str
    hours: float
    text: str
    from_ms: int
    to_ms: int | None


@dataclass(frozen=True, slots=True)
class LosingPlace:
    """A team, user or project whose runs lost device-hours.

    Args:
        entity_id: of the team or user; None if the project has none.
        project_id: None for all projects of the team or user.
    """

    entity_id: int | None
    project_id: int | None
    entity: str | None
    project: str | None
    hours: float
    runs: int


class RunHours(NamedTuple):
    """The hours that a run lost to a cause, and where it is."""

    cause: str
    run_id: int
    entity_id: int | None
    project_id: int
    hours: float


class LostTimeReading(StoredTable):
    """Reads what runs lost. Of a finding that is only in part within a period, that part of it counts."""

    def causes(self, period: LostTimePeriod, now_ms: int) -> list[LostTimeCause]:
        """Return what was lost by cause, the most first."""
        hours = func.sum(_hours(period))
        columns = (finding.c.rule, hours, func.count(func.distinct(finding.c.run_id)))
        with self._database.read() as connection:
            statement = _of_period(connection, select(*columns), period, now_ms)
            rows = connection.execute(statement.group_by(finding.c.rule).order_by(hours.desc())).all()
            return [LostTimeCause(*row) for row in rows]

    def by_run(self, period: LostTimePeriod, now_ms: int, cause: str | None = None) -> list[RunHours]:
        """Return the hours that each run lost to each cause, or to one."""
        grouped = (finding.c.rule, finding.c.run_id, run.c.entity_id, run.c.project_id)
        with self._database.read() as connection:
            statement = _of_period(connection, select(*grouped, func.sum(_hours(period))), period, now_ms)
            rows = connection.execute(statement.where(*_of_cause(cause)).group_by(*grouped))
            return [RunHours(*row) for row in rows]

    def places(
        self,
        period: LostTimePeriod,
        now_ms: int,
        by_project: bool,
        limit: int,
        skip: int,
        cause: str | None = None,
    ) -> tuple[list[LosingPlace], int]:
        """Return teams and users, or projects, that lost something, the most first, and how many."""
        hours, runs = func.sum(_hours(period)).label("hours"), func.count(func.distinct(finding.c.run_id))
        owner = (
            run.c.entity_id,
            run.c.project_id if by_project else cast(null(), Integer).label("project_id"),
        )
        with self._database.read() as connection:
            per_place = (
                _of_period(connection, select(*owner, hours, runs.label("runs")), period, now_ms)
                .where(*_of_cause(cause))
                .group_by(*(owner if by_project else owner[:1]))
                .subquery()
            )
            total = connection.execute(select(func.count()).select_from(per_place)).scalar_one()
            columns = (per_place.c.entity_id, per_place.c.project_id, entity.c.name, project.c.name)
            statement = (
                select(*columns, per_place.c.hours, per_place.c.runs)
                .outerjoin(project, project.c.id == per_place.c.project_id)
                .outerjoin(entity, entity.c.id == per_place.c.entity_id)
                .order_by(per_place.c.hours.desc(), per_place.c.entity_id, per_place.c.project_id)
                .limit(limit)
                .offset(skip)
            )
            return [LosingPlace(*row) for row in connection.execute(statement)], total

    def runs(
        self, period: LostTimePeriod, now_ms: int, limit: int, skip: int, cause: str | None = None
    ) -> tuple[list[LosingRun], int]:
        """Return runs that lost something, the most first, and how many there are.

        A run is there once for each cause.
        """
        hours = func.sum(_hours(period)).label("hours")
        grouped = (finding.c.rule, finding.c.run_id)
        with self._database.read() as connection:
            per_run = (
                _of_period(connection, select(*grouped, hours), period, now_ms)
                .where(*_of_cause(cause))
                .group_by(*grouped)
                .subquery()
            )
            total = connection.execute(select(func.count()).select_from(per_run)).scalar_one()
            columns = (run.c.id, run.c.uid, run.c.name, entity.c.name.label("entity"), project.c.name)
            statement = (
                select(*columns, per_run.c.rule, per_run.c.hours)
                .join(run, run.c.id == per_run.c.run_id)
                .join(project, project.c.id == run.c.project_id)
                .outerjoin(entity, entity.c.id == run.c.entity_id)
                .order_by(per_run.c.hours.desc(), run.c.id.desc(), per_run.c.rule)
                .limit(limit)
                .offset(skip)
            )
            rows = connection.execute(statement).all()
            worst = _worst(connection, [(row[0], row.rule) for row in rows])
        return [LosingRun(*row, *worst[row[0], row.rule]) for row in rows], total

    def counts(self, period: LostTimePeriod, now_ms: int) -> tuple[int, int]:
        """Return how many runs there were in a period, and how many of them were judged."""
        is_judged = case((judgement.c.rules_version > 0, 1), else_=0)
        with self._database.read() as connection:
            conditions = plan(connection, period.runs, now_ms, needed=None).where
            statement = (
                select(func.count(), func.coalesce(func.sum(is_judged), 0))
                .select_from(run)
                .outerjoin(judgement, judgement.c.run_id == run.c.id)
                .where(run.c.last_ms >= period.since_ms, run.c.started_ms < period.until_ms, *conditions)
            )
            total, judged = connection.execute(statement).one()
            return int(total), int(judged)


def _of_period(
    connection: Connection, statement: Select[Any], period: LostTimePeriod, now_ms: int
) -> Select[Any]:
    conditions = plan(connection, period.runs, now_ms, needed=None).where
    return (
        statement.select_from(finding)
        .join(judgement, judgement.c.run_id == finding.c.run_id)
        .join(run, run.c.id == finding.c.run_id)
        .where(
            finding.c.lost_hours > 0,
            judgement.c.up_to_ms > period.since_ms,
            finding.c.from_ms < period.until_ms,
            _end() > period.since_ms,
            *conditions,
        )
    )


def _end() -> ColumnElement[int]:
    return func.coalesce(finding.c.to_ms, judgement.c.up_to_ms)


def _hours(period: LostTimePeriod) -> ColumnElement[float]:
    """The lost hours of a finding that are within a period, as if it lost the same at each moment."""
    end = _end()
    duration_ms = end - finding.c.from_ms
    first = case((finding.c.from_ms > period.since_ms, finding.c.from_ms), else_=period.since_ms)
    last = case((end < period.until_ms, end), else_=period.until_ms)
    part = cast(last - first, Double) / cast(duration_ms, Double)
    within = case((and_(duration_ms > 0, last > first), part), else_=1.0)
    return finding.c.lost_hours * within


def _of_cause(cause: str | None) -> list[ColumnElement[bool]]:
    return [] if cause is None else [finding.c.rule == cause]


def _worst(
    connection: Connection, keys: Collection[tuple[int, str]]
) -> dict[tuple[int, str], tuple[str, int, int | None]]:
    """Return text, begin and end of the finding of a run and cause that costs most."""
    worst: dict[tuple[int, str], tuple[str, int, int | None]] = {}
    run_ids: Sequence[int] = sorted({run_id for run_id, _ in keys})
    columns = (finding.c.run_id, finding.c.rule, finding.c.text, finding.c.from_ms, finding.c.to_ms)
    statement = select(*columns).where(finding.c.run_id.in_(run_ids)).order_by(finding.c.lost_hours)
    for run_id, rule, *facts in connection.execute(statement):
        worst[run_id, rule] = (facts[0], facts[1], facts[2])
    return worst
