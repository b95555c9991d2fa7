"""The JSON body of `/runs/{run}/plan`, as the OpenAPI document describes it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from runvitals.server.http.bodies import ResponseBody


class PlannedPlace(ResponseBody):
    """A host, and the role of the writers there."""

    host: str
    role: str


class PlannedKey(ResponseBody):
    """The series of one key."""

    key: str
    mlflow: str | None = Field(description="MLflow's name; None if it has none.")
    places: list[int] = Field(description="The hosts and roles that have it: indexes of `places`.")
    zero: list[int] = Field(
        description="Where all values so far are 0. Not looked up for gauges, of which it is empty."
    )


class MlflowUnit(ResponseBody):
    """MLflow's unit of a metric."""

    unit: str
    factor: float = Field(description="Converts a value to MLflow's unit.")


class PlannedMetric(ResponseBody):
    """A metric definition and its series."""

    template: str = Field(description="The key template of the metric; the key itself if no metric matches.")
    unit: str
    kind: Literal["gauge", "counter", "rate"] | None = Field(
        description="None for a key without a metric definition."
    )
    subject: str = Field(description="CPU, Memory, …; `Other` for a key without a metric definition.")
    chart: str = Field(description="Title of its chart; the series of a chart have the same unit.")
    text: str
    source: str
    mlflow: MlflowUnit | None
    series: list[PlannedKey]


class RunPlanSchema(ResponseBody):
    """The series of a run by metric, without their values."""

    run: str
    cursor: str = Field(description="The position in the run: an event stream after it misses nothing.")
    newest_ms: int = Field(description="Time of the newest sample; 0 without samples.")
    total: int = Field(description="Series that match, on all pages.")
    next: int | None = Field(description="The `skip` of the next page; None on the last.")
    places: list[PlannedPlace]
    metrics: list[PlannedMetric]
    problems: list[str] = Field(description="Parts that could not be read.")
