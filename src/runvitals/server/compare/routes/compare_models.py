"""The JSON body of `/compare`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from runvitals.server.compare.comparison import Goal, Section
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.runs.routes.models import Number, RunRowSchema
from runvitals.server.runs.routes.usual_columns import GoalMetric


class FactRowSchema(ResponseBody):
    """A fact of all runs."""

    section: Section
    name: str
    differs: bool = Field(description="Whether the runs differ in it, or some do not have it.")
    values: list[Any] = Field(description="Of each run; one value if it does not differ.")
    absent: list[int] = Field(description="Places of the runs that do not have it.")


class StatisticRowSchema(ResponseBody):
    """A number of each run."""

    name: str = Field(description="`summary.…`, `system.…`, or `duration` in seconds.")
    unit: str = Field(description="Empty if it is not known.")
    goal: Goal | None = Field(description="Which is better, as the runs declare by `define_metric`.")
    values: list[Number]
    best: list[int] = Field(description="Places of the best runs; empty without a goal.")


class ComparedRuns(ResponseBody):
    """Some runs side by side."""

    runs: list[RunRowSchema] = Field(description="In the requested order.")
    missing: list[str] = Field(description="Requested ids of runs that do not exist or may not be read.")
    facts: list[FactRowSchema]
    left_out: int = Field(description="Facts that are not listed, because there are too many.")
    statistics: list[StatisticRowSchema]
    goal: GoalMetric | None = Field(description="The metric by which the runs are judged.")
