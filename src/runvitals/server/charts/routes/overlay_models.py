"""The JSON bodies of `/overlay`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from runvitals.model.run_state import State
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.runs.routes.models import Number


class OverlayRun(ResponseBody):
    """A run whose values are shown."""

    id: str
    name: str
    state: State
    started_ms: int
    end_ms: int = Field(description="When it ended; while it is running, when it was last heard of.")


class OverlayMetric(ResponseBody):
    """A sampled metric that at least one of the runs has."""

    key: str = Field(
        description="The template of the metric, as `keys` takes it; the key if it has no definition."
    )
    unit: str
    kind: Literal["gauge", "counter", "rate"] | None
    subject: str
    chart: str
    text: str
    source: str


class OverlayPlan(ResponseBody):
    """Some runs, and which metrics they have."""

    runs: list[OverlayRun]
    missing: list[str] = Field(description="Requested ids of runs that do not exist or may not be read.")
    logged: list[str] = Field(description="The names under which numbers were logged, at most 10,000.")
    system: list[OverlayMetric] = Field(description="Totals of which there are rates are left out.")


class OverlayLine(ResponseBody):
    """One metric of one run."""

    run: str
    y: list[Number]
    min: list[Number] | None = Field(
        description="None if each point is one value, or they were not requested."
    )
    max: list[Number] | None
    n: list[int] | None = Field(description="Values of each point; 0 in a gap.")


class OverlayGroup(ResponseBody):
    """The lines that have points at the same x."""

    x: list[float]
    lines: list[OverlayLine]


class OverlayKey(ResponseBody):
    """The lines of one key."""

    key: str
    width: float | None = Field(
        description="Width of the buckets, which begin at multiples of it; None if these are single values, "
        "or samples along a logarithmic axis."
    )
    groups: list[OverlayGroup]


class Overlay(ResponseBody):
    """Values of several runs on one axis."""

    x: str
    runs: list[OverlayRun]
    missing: list[str] = Field(description="Requested ids of runs that do not exist or may not be read.")
    keys: list[OverlayKey]
    problems: list[str] = Field(description="Parts of these series that could not be read.")
