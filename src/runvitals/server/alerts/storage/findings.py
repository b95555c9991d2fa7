"""Findings about runs, as alert rules look at them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Select, or_, select

from runvitals.model.state import MONITOR
from runvitals.server.alerts.storage.rules import WatchedLane
from runvitals.server.database.database import StoredTable, among
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.alert_rules import alert_firing
from runvitals.server.database.tables.findings import finding, judgement
from runvitals.server.database.tables.runs import project, run, writer


@dataclass(frozen=True, slots=True)
class WatchedFinding:
    """A finding about a run.

    Args:
        id: of the finding, such as `hang`.
        place: among those of its run, the most important first.
        to_ms: None while it goes on.
        up_to_ms: up to when its run was judged.
        run_has_ended: nothing more is expected of it.
    """

    run_id: int
    uid: str
    entity_id: int | None
    project: str
    place: int
    id: str
    severity: str
    text: str
    hosts: tuple[str, ...]
    from_ms: int
    to_ms: int | None
    opened_ms: int
    up_to_ms: int
    run_has_ended: bool
    advice: str = ""

    @property
    def lasted_ms(self) -> int:
        """For how long it holds, or held."""
        return (self.up_to_ms if self.to_ms is None else self.to_ms) - self.from_ms


@dataclass(frozen=True, slots=True)
class FindingFiring:
    """A time at which a rule fired for the findings of one id about a run.

    `ended_ms`: None while it fires.
    """

    rule_id: int
    run_id: int
    lane_id: int
    id: str
    host: str
    fired_ms: int
    ended_ms: int | None


class FindingReading(StoredTable):
    """Reads what the rules of runs' findings need."""

    def runs_judged_since(self, since_ms: int, with_running: bool = False) -> set[int]:
        """Return the ids of runs that were judged since a time.

        Args:
            with_running: also all others that were not judged after their end.
        """
        is_new = judgement.c.judged_ms >= since_ms
        chosen = or_(is_new, judgement.c.is_final.is_(False)) if with_running else is_new
        with self._database.read() as connection:
            return set(connection.execute(select(judgement.c.run_id).where(chosen)).scalars())

    def of_runs(self, run_ids: Collection[int]) -> list[WatchedFinding]:
        """Return the findings about runs, the most important of each run first; not of those in the trash."""
        with self._database.read() as connection:
            mine = among(connection, finding.c.run_id, run_ids)
            return [_watched(row) for row in connection.execute(_findings().where(mine))]

    def with_advice(self, watched: WatchedFinding) -> WatchedFinding:
        """Return the finding with what to do about it."""
        body = select(judgement.c.body).where(judgement.c.run_id == watched.run_id)
        with self._database.read() as connection:
            text = connection.execute(body).scalar()
        listed = stored_object(text or "{}", f"the findings about the run {watched.run_id}").get(
            "findings", []
        )
        same = listed[watched.place] if watched.place < len(listed) else {}
        return replace(watched, advice=str(same.get("advice", "")) if same.get("id") == watched.id else "")

    def firings(
        self, rule_ids: Collection[int], run_ids: Collection[int] | None = None
    ) -> list[FindingFiring]:
        """Return the times at which rules fired for runs, the oldest first; without runs, what fires now."""
        column = alert_firing.c
        columns = (column.rule_id, column.run_id, column.lane_id, column.key, column.host)
        statement = select(*columns, column.fired_ms, column.ended_ms).order_by(column.fired_ms)
        with self._database.read() as connection:
            statement = statement.where(among(connection, column.rule_id, rule_ids))
            if run_ids is None:
                statement = statement.where(column.ended_ms.is_(None))
            else:
                statement = statement.where(among(connection, column.run_id, run_ids))
            return [FindingFiring(*row) for row in connection.execute(statement)]

    def lane(self, watched: WatchedFinding) -> WatchedLane | None:
        """Return the lane of the first host of a finding, or else of its run; None if the run has none."""
        columns = (writer.c.lane_id, writer.c.host, writer.c.role, writer.c.rank, run.c.project_id)
        statement = (
            select(*columns)
            .join(run, run.c.id == writer.c.run_id)
            .where(writer.c.run_id == watched.run_id)
            .order_by(writer.c.lane_id)
        )
        with self._database.read() as connection:
            lanes = connection.execute(statement).all()
        if not lanes:
            return None
        row = min(lanes, key=lambda lane: (lane.host not in watched.hosts[:1], lane.role != MONITOR))
        where = (watched.entity_id, watched.project, row.project_id, row.rank)
        return WatchedLane(row.lane_id, watched.run_id, watched.uid, row.host, row.role, *where)


def _findings() -> Select[Any]:
    names = ("run_id", "place", "severity", "text", "places", "from_ms", "to_ms", "opened_ms")
    return (
        select(
            *(finding.c[name] for name in names),
            finding.c.rule.label("id"),
            judgement.c.up_to_ms,
            judgement.c.is_final.label("run_has_ended"),
            run.c.uid,
            run.c.entity_id,
            project.c.name.label("project"),
        )
        .join(judgement, judgement.c.run_id == finding.c.run_id)
        .join(run, run.c.id == finding.c.run_id)
        .join(project, project.c.id == run.c.project_id)
        .where(run.c.deleted_ms.is_(None))
        .order_by(finding.c.run_id, finding.c.place)
    )


def _watched(row: Any) -> WatchedFinding:
    values = row._asdict()
    hosts = json.loads(values.pop("places")).get("hosts", [])
    return WatchedFinding(**values, hosts=tuple(map(str, hosts)))


def open_of(findings: Iterable[WatchedFinding]) -> list[WatchedFinding]:
    """Return those that go on."""
    return [watched for watched in findings if watched.to_ms is None]
