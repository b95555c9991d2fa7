"""The JSON body of `/runs/{run}/headline`, as the OpenAPI document describes it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from runvitals.server.http.bodies import ResponseBody


class HeadlineGoal(ResponseBody):
    """The metric by which the run is judged."""

    name: str
    goal: Literal["minimize", "maximize"] | None = Field(
        description="As `define_metric` says, else as its name suggests; None if that is not known."
    )
    last: float
    best: float | None
    best_step: float | None
    line: list[float] = Field(description="Some of its values, in the order of time.")


class HeadlineProgress(ResponseBody):
    """How far the run is."""

    unit: Literal["step", "epoch"]
    value: float
    total: float | None = Field(description="As the configuration says, such as `max_steps` or `epochs`.")
    step: float
    steps_per_second: float | None = Field(description="Lately, if the run is running; else in all.")
    eta_ms: int | None = Field(description="Milliseconds that are left, while it is running.")


class HeadlineThroughput(ResponseBody):
    """A logged metric of what is processed in a second."""

    name: str
    last: float
    median: float


class HeadlineDevices(ResponseBody):
    """The use of the accelerators, over the whole run."""

    kind: str
    count: int
    mean: float = Field(description="Percent.")
    idle: float = Field(description="Percent of the time of all devices with less than 5% use.")


class Headline(ResponseBody):
    """How a run is going, in a few numbers."""

    run: str
    logged: bool = Field(description="Whether the program logged any numbers.")
    goal: HeadlineGoal | None
    progress: HeadlineProgress | None
    throughput: HeadlineThroughput | None
    devices: HeadlineDevices | None
    problems: list[str]
