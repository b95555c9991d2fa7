"""The JSON bodies of groups of runs, of their goals and of completion."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from runvitals.server.http.bodies import ResponseBody


class GoalLineSchema(ResponseBody):
    """The metric by which a run is judged, and its course."""

    name: str
    goal: Literal["minimize", "maximize"] | None = Field(
        description="As `define_metric` says, else as its name suggests; None if that is not known."
    )
    last: float | None = Field(description="As the summary has it.")
    line: list[float | None] = Field(description="Means in equal parts of the run's time; None is a gap.")


class ColumnSummarySchema(ResponseBody):
    """The numbers of a column in the runs of a group."""

    n: int = Field(description="How many runs have a number.")
    min: float | None
    mean: float | None
    max: float | None
    sum: float | None


class RunGroupSchema(ResponseBody):
    """Runs with the same values."""

    values: dict[str, str | float | None] = Field(
        description="By the names in `by`; None where the runs have no value."
    )
    runs: int
    states: dict[str, int] = Field(description="How many runs are in each state; none is left out.")
    started_ms: list[int | None] = Field(description="When the first and the last of the runs started.")
    duration_ms: ColumnSummarySchema = Field(description="How long the runs took, or have taken so far.")
    columns: dict[str, ColumnSummarySchema]


class RunGroupsSchema(ResponseBody):
    """A page of groups of runs."""

    groups: list[RunGroupSchema]
    total: int = Field(description="Groups on all pages.")
    next: str | None = Field(description="The `after` of the next page; None on the last.")


class FieldChoiceSchema(ResponseBody):
    """A name that a filter can compare."""

    name: str
    kind: Literal["text", "number", "duration", "time"]
    values: list[str | float | None] = Field(description="Up to 20 values, the most frequent first.")


class FieldChoicesSchema(ResponseBody):
    """The fields that a filter can name."""

    fields: list[FieldChoiceSchema]
