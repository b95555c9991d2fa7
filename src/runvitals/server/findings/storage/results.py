"""The findings about runs as they are kept: one result for each run, with its findings in rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, and_, delete, exists, func, or_, select

from runvitals.base.json_codec import dumps
from runvitals.findings.finding import Finding, from_json
from runvitals.model import fields
from runvitals.model.fields import NUMBER, Scalar
from runvitals.model.json_values import damage_of
from runvitals.model.names import plain_text
from runvitals.model.run_verdict import FINDING_FIELDS, SEVERITIES, RunVerdict
from runvitals.server.database.database import StoredTable, among, ids_of, put_rows
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.findings import finding, judgement
from runvitals.server.database.tables.runs import field, run, run_field, writer
from runvitals.server.findings.kept_result import (
    KeptFinding,
    KeptResult,
    RetractedFinding,
    nothing_judged,
)
from runvitals.server.runs.storage.run_locks import lock_runs
from runvitals.server.runs.storage.search_columns import write_fields


class DueJudgement(NamedTuple):
    """A run whose findings are missing, of earlier rules, or of less than has arrived; or that failed.

    `judged_ms`: when it was judged; 0: never.
    """

    run_id: int
    uid: str
    judged_ms: int
    is_running: bool


class RunningRun(NamedTuple):
    """A lane of a run that goes on: there is one for each of its writers."""

    run_id: int
    uid: str
    started_ms: int
    lane_id: int


class FindingResults(StoredTable):
    """The findings about all runs. A run that is purged takes its own with it."""

    def lock(self, run_id: int) -> bool:
        """Keep others from judging a run until the joint transaction ends; return whether it exists."""
        return self._database.write(lambda connection: bool(lock_runs(connection, [run_id])))

    def of_run(self, run_id: int) -> KeptResult | None:
        """Return what is kept of a run; None if it was never judged."""
        return self.of_runs([run_id]).get(run_id)

    def of_runs(self, run_ids: Iterable[int]) -> dict[int, KeptResult]:
        """Return what is kept of runs, by id; those that were never judged are left out."""
        ids = list(run_ids)
        with self._database.read() as connection:
            results = connection.execute(
                select(judgement).where(among(connection, judgement.c.run_id, ids))
            ).all()
            numbers: dict[int, list[Any]] = {}
            columns = finding.c.run_id, finding.c.number, finding.c.opened_ms, finding.c.lost_hours
            statement = select(*columns).where(among(connection, finding.c.run_id, ids))
            for row in connection.execute(statement.order_by(finding.c.run_id, finding.c.place)):
                numbers.setdefault(row.run_id, []).append(row)
        return {row.run_id: _result(row, numbers.get(row.run_id, ())) for row in results}

    def verdicts(self, run_ids: Iterable[int]) -> dict[int, RunVerdict]:
        """Return the verdicts about runs, by id; runs that were never judged are left out."""
        ids = list(run_ids)
        columns = [judgement.c[name] for name in _VERDICT]
        with self._database.read() as connection:
            rows = connection.execute(
                select(*columns).where(
                    among(connection, judgement.c.run_id, ids), judgement.c.rules_version > 0
                )
            ).all()
            rules: dict[int, list[str]] = {}
            statement = select(finding.c.run_id, finding.c.rule).where(
                among(connection, finding.c.run_id, ids)
            )
            for run_id, rule in connection.execute(statement.order_by(finding.c.run_id, finding.c.place)):
                rules.setdefault(run_id, []).append(rule)
        return {
            run_id: RunVerdict(
                verdict, text, SEVERITIES[severity], hours, tuple(rules.get(run_id, ())), judged_ms
            )
            for run_id, verdict, text, severity, hours, judged_ms in rows
        }

    def put(self, results: Sequence[KeptResult]) -> None:
        """Replace what is kept of runs; those that do not exist any more are skipped."""

        def work(connection: Connection) -> None:
            existing = set(lock_runs(connection, [result.run_id for result in results]))
            kept = [result for result in results if result.run_id in existing]
            put_rows(connection, judgement, [_row(result) for result in kept])
            connection.execute(delete(finding).where(among(connection, finding.c.run_id, existing)))
            put_rows(connection, finding, [row for result in kept for row in _finding_rows(result)])
            after = {
                result.run_id: {
                    name: fields.of_number(value) for name, value in result.verdict.fields.items()
                }
                for result in kept
                if result.rules_version
            }
            write_fields(connection, _fields_before(connection, after), after)

        if results:
            self._database.write(work)

    def note_failure(self, run_id: int, error: str, rules_version: int, judged_ms: int) -> None:
        """Keep that a run could not be judged, beside what an earlier judgement found."""
        before = self.of_run(run_id) or nothing_judged(run_id, error)
        self.put([replace(before, error=error, rules_version=rules_version, judged_ms=judged_ms)])

    def due(
        self,
        rules_version: int,
        now_ms: int,
        limit: int,
        among_runs: Iterable[int] | None = None,
        *,
        only_ended: bool = False,
    ) -> list[DueJudgement]:
        """Return runs that must be judged: those that go on first, then the newest.

        A run that goes on is among them if anything of it arrived since it was judged.

        Args:
            rules_version: results of later rules are left as they are: another server has them.
            among_runs: only these; None: all, which reads a row of each.
            only_ended: without those that go on.
        """
        running = and_(run.c.alive_until_ms.is_not(None), run.c.alive_until_ms >= now_ms)
        newer = select(writer.c.id).where(
            writer.c.run_id == run.c.id, writer.c.heard_ms > judgement.c.judged_ms
        )
        is_due = or_(
            judgement.c.run_id.is_(None),
            judgement.c.rules_version < rules_version,
            judgement.c.error.is_not(None),
            exists(newer.correlate(run, judgement)),
            and_(judgement.c.is_final.is_(False), ~running),
        )
        statement = (
            select(run.c.id, run.c.uid, func.coalesce(judgement.c.judged_ms, 0), running.label("is_running"))
            .outerjoin(judgement, judgement.c.run_id == run.c.id)
            .where(
                run.c.deleted_ms.is_(None),
                func.coalesce(judgement.c.rules_version, 0) <= rules_version,
                is_due,
            )
            .order_by(running.desc(), run.c.id.desc())
            .limit(limit)
        )
        if only_ended:
            statement = statement.where(or_(run.c.alive_until_ms.is_(None), run.c.alive_until_ms < now_ms))
        with self._database.read() as connection:
            if among_runs is not None:
                statement = statement.where(among(connection, run.c.id, among_runs))
            return [DueJudgement(*row) for row in connection.execute(statement)]

    def running(self, rules_version: int, now_ms: int, limit: int) -> list[RunningRun]:
        """Return the lanes of the runs that go on, of the newest first.

        Args:
            rules_version: runs that were judged by later rules are left out: another server has them.
        """
        statement = (
            select(run.c.id, run.c.uid, run.c.started_ms, writer.c.lane_id)
            .join(writer, writer.c.run_id == run.c.id)
            .outerjoin(judgement, judgement.c.run_id == run.c.id)
            .where(
                run.c.alive_until_ms >= now_ms,
                run.c.deleted_ms.is_(None),
                func.coalesce(judgement.c.rules_version, 0) <= rules_version,
            )
            .order_by(run.c.id.desc(), writer.c.lane_id)
            .limit(limit)
        )
        with self._database.read() as connection:
            return [RunningRun(*row) for row in connection.execute(statement)]

    def heard_since(self, since_ms: int) -> set[int]:
        """Return the ids of the runs of which anything arrived since a time."""
        with self._database.read() as connection:
            statement = select(writer.c.run_id).where(writer.c.heard_ms >= since_ms).distinct()
            return set(connection.execute(statement).scalars())


_HELD, _RETRACTED = "held", "retracted"
"""In the body, beside what the API tells: until when findings were seen by number, and what may come back."""
_VERDICT = ("run_id", "verdict", "text", "severity", "lost_hours", "judged_ms")


def _result(row: Row[Any], numbers: Sequence[Any]) -> KeptResult:
    body = stored_object(row.body, f"the findings about the run {row.run_id}")
    if damage_of(body) is not None:
        return replace(nothing_judged(row.run_id, "damaged"), numbered=row.numbered)
    findings = from_json(body)
    held_states = body.get(_HELD, {})
    kept = tuple(
        _kept(each, run_finding, row.up_to_ms, held_states.get(str(each.number)))
        for each, run_finding in zip(numbers, findings.findings, strict=False)
    )
    return KeptResult(
        run_id=row.run_id,
        rules_version=row.rules_version,
        judged_ms=row.judged_ms,
        from_ms=row.from_ms,
        up_to_ms=row.up_to_ms,
        is_final=row.is_final,
        findings=findings,
        kept=kept,
        lost_hours=row.lost_hours,
        numbered=row.numbered,
        error=row.error,
        retracted=tuple(
            RetractedFinding(number, rule, tuple(hosts), tuple(devices), seen_ms)
            for number, rule, hosts, devices, seen_ms in body.get(_RETRACTED, ())
        ),
    )


def _kept(
    row: Row[Any], run_finding: Finding, up_to_ms: int, held_state: tuple[int, bool] | None
) -> KeptFinding:
    seen_ms, has_returned = held_state or (up_to_ms if run_finding.to_ms is None else 0, False)
    return KeptFinding(row.number, row.opened_ms, run_finding, row.lost_hours, seen_ms, has_returned)


def _row(result: KeptResult) -> dict[str, Any]:
    return {
        "run_id": result.run_id,
        "rules_version": result.rules_version,
        "judged_ms": result.judged_ms,
        "from_ms": result.from_ms,
        "up_to_ms": result.up_to_ms,
        "is_final": result.is_final,
        "verdict": plain_text(result.findings.verdict),
        "text": plain_text(result.findings.text),
        "severity": SEVERITIES.index(result.findings.severity),
        "lost_hours": result.lost_hours,
        "body": dumps(_body(result)).decode("ascii"),
        "error": None if result.error is None else plain_text(result.error),
        "numbered": result.numbered,
    }


def _body(result: KeptResult) -> dict[str, Any]:
    """Return findings as in the API, but without prices and with device-hours that are not rounded."""
    body = result.findings.to_json()
    for finding_fields, run_finding in zip(body["findings"], result.findings.findings, strict=True):
        finding_fields["cost"] = {"device_hours": run_finding.device_hours, "money": None}
    held_states = {
        str(each.number): (each.seen_ms, each.has_returned)
        for each in result.kept
        if each.has_returned or (each.finding.to_ms is None and each.seen_ms < result.up_to_ms)
    }
    if held_states:
        body[_HELD] = held_states
    if result.retracted:
        body[_RETRACTED] = [
            (each.number, each.rule, each.hosts, each.devices, each.seen_ms) for each in result.retracted
        ]
    return body


def _finding_rows(result: KeptResult) -> list[dict[str, Any]]:
    return [
        {
            "run_id": result.run_id,
            "number": kept.number,
            "place": position,
            "opened_ms": kept.opened_ms,
            "lost_hours": kept.lost_hours,
            **_facts(kept.finding),
        }
        for position, kept in enumerate(result.kept)
    ]


def _facts(run_finding: Finding) -> dict[str, Any]:
    sources = {
        "hosts": list(run_finding.hosts),
        "devices": list(run_finding.devices),
        "ranks": list(run_finding.ranks),
    }
    return {
        "rule": plain_text(run_finding.id),
        "severity": run_finding.severity,
        "confidence": run_finding.confidence,
        "from_ms": run_finding.from_ms,
        "to_ms": run_finding.to_ms,
        "share": run_finding.share,
        "device_hours": run_finding.device_hours,
        "text": plain_text(run_finding.text),
        "places": json.dumps(sources),
    }


def _fields_before(
    connection: Connection, after: Mapping[int, Mapping[str, Scalar]]
) -> dict[int, dict[str, Scalar]]:
    by_number = {number: name for name, number in ids_of(connection, field.c.name, FINDING_FIELDS).items()}
    statement = select(run_field.c.run_id, run_field.c.field_id, run_field.c.number).where(
        among(connection, run_field.c.run_id, after),
        among(connection, run_field.c.field_id, by_number),
        run_field.c.kind == NUMBER,
    )
    values: dict[int, dict[str, Scalar]] = {run_id: {} for run_id in after}
    for run_id, number, value in connection.execute(statement):
        values[run_id][by_number[number]] = fields.of_number(value)
    return values
