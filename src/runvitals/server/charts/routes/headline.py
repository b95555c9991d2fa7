"""`/runs/{run}/headline`: how a run is going, in a few numbers."""

from __future__ import annotations

from typing import Literal

from fastapi import Request
from fastapi.responses import Response
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.charts.headline import headline
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.responses import RUN_ERRORS, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import RunView
from runvitals.server.runs.routes.parameters import TheLibrary, TheRun


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


router = Router(responses=RUN_ERRORS)


@router.get("/runs/{run}/headline", needs("run:read"), response_model=Headline)
async def run_headline(request: Request, library: TheLibrary, run: TheRun) -> Response:
    """How a run is going: its goal metric, its progress, its throughput and the use of its devices.

    The goal metric is the one with a goal of `define_metric`, else a loss or an accuracy on held-out data,
    else of the training.
    """

    def read(view: RunView) -> bytes:
        return json_bytes(headline(view, library.clock()))

    return await json_response(request, await run.use(read))
