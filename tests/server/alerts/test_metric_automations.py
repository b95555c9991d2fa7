"""When automations about metrics are raised: their conditions, and which points count."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sqlalchemy import delete

from runvitals.model.durations import HOUR_MS
from runvitals.model.names import STEP
from runvitals.server.alerts.automations import (
    MetricChange,
    MetricEvent,
    MetricThreshold,
    MetricZScore,
    as_json,
    automation_of,
)
from runvitals.server.alerts.evaluation import EvaluatedSeries, Evaluation, Slot
from runvitals.server.alerts.metric_automations import condition_of
from runvitals.server.alerts.rule_watch import REST_MS, RuleWatch
from runvitals.server.alerts.rules import AlertRule
from runvitals.server.audit.storage.audit import Actor
from runvitals.server.database.tables.alerts import raised_event
from runvitals.server.runs.storage.writer_registration import RegisteredWriter
from runvitals.store.samples.interface import SampleBatch
from tests.server.alerts.conftest import Team
from tests.server.mail.conftest import T0

STEADY = [1.0, 2.0] * 15
LOSS = {"kind": "metric.threshold", "metric": "loss", "value": 10}


def begins(event: MetricEvent, values: list[float]) -> list[float]:
    """The values of a metric with which the condition of an automation begins to be met."""
    condition = condition_of(event)
    assert condition.feature is not None
    slot = Slot(EvaluatedSeries(1, 0, "", "loss"), condition.feature, (AlertRule("a", condition, id=-1),))
    evaluation, at, same_time = Evaluation([slot]), np.array([0]), np.array([T0])
    events = [one for value in values for one in evaluation.add(at, same_time, np.array([value]))]
    return [transition.value for transition in events if transition.firing]


@pytest.mark.parametrize(
    ("event", "values", "expected"),
    [
        (MetricThreshold("loss", 10.0), [1.0, 10.0, 11.0, 12.0], 11.0),
        (MetricThreshold("loss", 10.0), [1.0, 10.0], None),
        (MetricThreshold("loss", 1.0, "<="), [2.0, 1.0], 1.0),
        (MetricThreshold("loss", 1.0, "="), [2.0, 0.5, 1.0], 1.0),
        (MetricThreshold("loss", 1.0, "!="), [1.0, float("inf")], float("inf")),
        (MetricThreshold("loss", 2.0, ">", "mean", 2), [9.0], None),
        (MetricThreshold("loss", 2.0, ">", "mean", 2), [1.0, 2.0, 3.0], 2.5),
        (MetricThreshold("loss", 2.0, ">", "min", 2), [3.0, 1.0, 3.0, 4.0], 3.0),
        (MetricThreshold("loss", 2.0, "<", "max", 2), [3.0, 1.0, 1.5], 1.5),
        (MetricThreshold("loss", 2.0, "!=", "mean", 100), [2.0] * 99 + [3.0], 2.01),
        (MetricThreshold("loss", 2.0, "!=", "mean", 100), [3.0] * 99, None),
        (MetricChange("loss", 0.5, window=2, before=2), [2.0, 2.0, 2.0, 3.0], None),
        (MetricChange("loss", 0.5, window=2, before=2), [2.0, 2.0, 3.0, 3.0], 3.0),
        (MetricChange("loss", 0.07, window=1, before=1), [100.0, 107.0], 107.0),
        (MetricChange("loss", 0.5, direction="down", window=2, before=2), [2.0, 2.0, 3.0, 3.0], None),
        (MetricChange("loss", 0.5, direction="down", window=1, before=1), [2.0, 1.0], 1.0),
        (MetricChange("loss", 0.5, window=2, before=2), [0.0, 0.0, 3.0, 3.0], None),
        (MetricChange("loss", 2.0, False, "up", 1, 1), [0.0, 2.0], 2.0),
        (MetricZScore("loss"), [*STEADY, 2.9], None),
        (MetricZScore("loss"), [*STEADY, 3.1], 3.1),
        (MetricZScore("loss", direction="up"), [*STEADY, -9.0], None),
        (MetricZScore("loss", direction="down"), [*STEADY, -9.0], -9.0),
        (MetricZScore("loss"), [0.1] * 40, None),
        (MetricZScore("loss"), [1.0, 9.0], None),
    ],
)
def test_conditions(event: MetricEvent, values: list[float], expected: float | None) -> None:
    assert begins(event, values) == ([] if expected is None else [expected])


def test_a_condition_that_stays_met_is_reported_once() -> None:
    assert begins(MetricThreshold("loss", 10.0), [11.0, 12.0, 1.0, 13.0]) == [11.0, 13.0]


def test_a_condition_that_has_no_result_is_not_met() -> None:
    values = [1.0, 2.0, 0.0, 0.0, 1.0, 2.0]  # there is no part of 0
    assert begins(MetricChange("loss", 0.5, direction="up", window=1, before=1), values) == [2.0, 2.0]


class Logged:
    """What runs log, and the events that automations of the team vision get."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.start()

    def start(self) -> None:
        """Start anew, as a server does."""
        self.watch = RuleWatch(self.team.store, None, lambda *_: None, self.team.clock)
        self.watch.evaluate()

    def automate(self, event: dict[str, Any]) -> int:
        form = as_json(automation_of({"event": event, "actions": [{"kind": "stop"}]}))
        by, automations = Actor("user", "ada", self.team.ada.id), self.team.store.alerts.automations
        name = f"automation {len(automations.of_team(self.team.team.id))}"
        return automations.create(self.team.team.id, name, True, form, by, T0).id

    def training(self, uid: str = "otter-1", rank: int = 0) -> RegisteredWriter:
        return self.team.run(uid, writer=f"train.node{rank}.{rank}", rank=rank)

    def log(
        self, writer: RegisteredWriter, *losses: float, age_ms: int = 0, key: str = "loss", steps: bool = True
    ) -> None:
        """Store rows; the newest is as old as `age_ms`."""
        names = [key, *([STEP] if steps else [])]
        ids = self.team.store.metrics.ids(names)
        count = len(losses)
        t = self.team.clock() - age_ms - np.arange(count, 0, -1) * 1000
        columns = [losses, range(count)][: len(names)]
        values = np.array(list(zip(*columns, strict=True)), np.float64)
        metrics = tuple(ids[name] for name in names)
        self.watch.queue.add([SampleBatch(writer.lane_id, writer.writer_id, 0, metrics, t, values)])

    def raised(self) -> list[tuple[int, float]]:
        """The runs and values of new events."""
        self.team.wait(6_000)  # new runs are looked at together
        self.watch.evaluate()
        rows = self.team.store.write(
            lambda connection: connection.execute(delete(raised_event).returning(raised_event)).all()
        )
        in_order = sorted(rows, key=lambda row: row.id)
        return [(row.run_id, json.loads(row.data)["metric_value"]) for row in in_order]


@pytest.fixture
def logged(team: Team) -> Logged:
    return Logged(team)


def test_each_run_begins_to_meet_a_condition_on_its_own(logged: Logged) -> None:
    logged.automate(LOSS)
    logged.automate({**LOSS, "comparison": ">="})
    first, second = logged.training("otter-1"), logged.training("otter-2")
    logged.log(first, 1.0, 11.0, 12.0)
    logged.log(second, 12.0)
    assert sorted(logged.raised()) == [(first.run_id, 11.0)] * 2 + [(second.run_id, 12.0)] * 2
    logged.log(first, 13.0)
    assert logged.raised() == []


def test_the_points_of_all_ranks_are_those_of_the_run(logged: Logged) -> None:
    logged.automate({**LOSS, "statistic": "mean", "window": 4})
    ranks = [logged.training(rank=rank) for rank in range(2)]
    for value in (10.0, 14.0):
        for writer in ranks:
            logged.log(writer, value)
    assert logged.raised() == [(ranks[0].run_id, 12.0)]


def test_a_value_is_compared_with_the_points_of_all_runs_of_its_project(logged: Logged) -> None:
    logged.automate({"kind": "metric.z_score", "metric": "loss", "window": 4})
    runs = [logged.training(f"otter-{number}") for number in range(3)]
    for writer in runs[:2]:
        logged.log(writer, 1.0, 2.0)
    logged.log(runs[2], 9.0)
    assert logged.raised() == [(runs[2].run_id, 9.0)]


def test_only_what_runs_log_counts(logged: Logged) -> None:
    logged.automate(LOSS)
    logged.automate({**LOSS, "metric": "l*s"})
    logged.log(logged.team.run("otter-1"), 12.0, steps=False)
    logged.log(logged.training(), 12.0, steps=False)
    assert logged.raised() == []


def test_rows_without_a_value_are_no_points(logged: Logged) -> None:
    logged.automate({**LOSS, "statistic": "min", "window": 2})
    writer = logged.training()
    logged.log(writer, 11.0, float("nan"), 12.0)
    assert logged.raised() == [(writer.run_id, 11.0)]


def test_points_that_arrive_late_count_in_the_order_in_which_they_arrive(logged: Logged) -> None:
    logged.automate({**LOSS, "statistic": "mean", "window": 2})
    writer = logged.training()
    logged.log(writer, 1.0)
    logged.log(writer, 21.0, age_ms=30 * HOUR_MS)
    assert logged.raised() == [(writer.run_id, 11.0)]


def test_the_points_of_a_run_that_has_ended_count(logged: Logged) -> None:
    logged.automate({**LOSS, "statistic": "mean", "window": 2})
    writer = logged.training()
    logged.log(writer, 1.0)
    logged.team.end(writer, "finished")
    assert logged.raised() == []
    logged.log(writer, 21.0)
    assert logged.raised() == [(writer.run_id, 11.0)]


@pytest.mark.parametrize(("silent_ms", "is_kept"), [(5 * HOUR_MS, True), (REST_MS + HOUR_MS, False)])
def test_the_last_points_are_kept_while_a_run_logs_nothing(
    logged: Logged, silent_ms: int, is_kept: bool
) -> None:
    logged.automate({**LOSS, "statistic": "mean", "window": 2})
    writer = logged.training()
    logged.log(writer, 1.0)
    assert logged.raised() == []
    for _ in range(silent_ms // HOUR_MS):
        logged.team.wait(HOUR_MS)
        logged.watch.evaluate()
    logged.log(writer, 21.0)
    assert logged.raised() == ([(writer.run_id, 11.0)] if is_kept else [])


def test_an_automation_that_is_changed_begins_anew(logged: Logged) -> None:
    number = logged.automate(LOSS)
    writer = logged.training()
    logged.log(writer, 30.0)
    assert logged.raised() == [(writer.run_id, 30.0)]
    form = as_json(automation_of({"event": {**LOSS, "value": 20}, "actions": [{"kind": "stop"}]}))
    by, automations = Actor("user", "ada", logged.team.ada.id), logged.team.store.alerts.automations
    automations.update(logged.team.team.id, number, {"definition": form}, by, T0)
    logged.log(writer, 31.0)
    assert logged.raised() == [(writer.run_id, 31.0)]
    automations.update(logged.team.team.id, number, {"enabled": False}, by, T0)
    logged.log(writer, 1.0, 32.0)
    assert logged.raised() == []


def test_points_of_another_team_do_not_count(logged: Logged) -> None:
    other = logged.team.store.accounts.teams.create("other", Actor("system", ""), T0)
    logged.automate(LOSS)
    logged.team.team = other
    logged.log(logged.training(), 12.0)
    assert logged.raised() == []
