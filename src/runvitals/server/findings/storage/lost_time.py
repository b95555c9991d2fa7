"""Lost device-hours by cause, of many runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Double, Select, and_, case, cast, func, select

from runvitals.model.filter import Filter
from runvitals.server.database.database import Database
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
        text: of the finding to which it lost most.
    """

    run_id: int
    run: str
    name: str
    entity: str | None
    project: str
    cause: str
    hours: float
    text: str


class LostTimeReading:
    """Reads what runs lost. Of a finding that is only in part within a period, that part of it counts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def causes(self, period: LostTimePeriod, now_ms: int) -> list[LostTimeCause]:
        """Return what was lost by cause, the most first."""
        hours = func.sum(_hours(period))
        columns = (finding.c.rule, hours, func.count(func.distinct(finding.c.run_id)))
        with self._database.read() as connection:
            statement = _of_period(connection, select(*columns), period, now_ms)
            rows = connection.execute(statement.group_by(finding.c.rule).order_by(hours.desc())).all()
            return [LostTimeCause(*row) for row in rows]

    def by_run(self, period: LostTimePeriod, now_ms: int) -> list[tuple[str, int, float]]:
        """Return cause, run and hours."""
        columns = (finding.c.rule, finding.c.run_id, func.sum(_hours(period)))
        with self._database.read() as connection:
            statement = _of_period(connection, select(*columns), period, now_ms)
            return [
                tuple(row) for row in connection.execute(statement.group_by(finding.c.rule, finding.c.run_id))
            ]

    def runs(
        self, period: LostTimePeriod, now_ms: int, limit: int, skip: int, cause: str | None = None
    ) -> tuple[list[LosingRun], int]:
        """Return runs that lost something, the most first, and how many there are.

        A run is there once for each cause.
        """
        hours = func.sum(_hours(period)).label("hours")
        grouped = (finding.c.rule, finding.c.run_id)
        of_cause = [] if cause is None else [finding.c.rule == cause]
        with self._database.read() as connection:
            per_run = (
                _of_period(connection, select(*grouped, hours), period, now_ms)
                .where(*of_cause)
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
            texts = _texts(connection, [(row[0], row.rule) for row in rows])
        return [LosingRun(*row, texts[row[0], row.rule]) for row in rows], total

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
    whole = end - finding.c.from_ms
    first = case((finding.c.from_ms > period.since_ms, finding.c.from_ms), else_=period.since_ms)
    last = case((end < period.until_ms, end), else_=period.until_ms)
    part = cast(last - first, Double) / cast(whole, Double)
    within = case((and_(whole > 0, last > first), part), else_=1.0)
    return finding.c.lost_hours * within


def _texts(connection: Connection, keys: Collection[tuple[int, str]]) -> dict[tuple[int, str], str]:
    """Return the text of the finding of a run and cause that costs most."""
    texts: dict[tuple[int, str], str] = {}
    run_ids: Sequence[int] = sorted({run_id for run_id, _ in keys})
    columns = (finding.c.run_id, finding.c.rule, finding.c.text)
    statement = select(*columns).where(finding.c.run_id.in_(run_ids)).order_by(finding.c.lost_hours)
    for run_id, rule, text in connection.execute(statement):
        texts[run_id, rule] = text
    return texts
