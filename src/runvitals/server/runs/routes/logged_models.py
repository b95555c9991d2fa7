"""The JSON bodies of what runs log, by step."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from runvitals.server.http.bodies import ResponseBody
from runvitals.server.runs.routes.models import Number, Values


class LoggedGroup(ResponseBody):
    """Values that one process logged under several names at the same steps."""

    host: str
    rank: int | None
    replaced: bool = Field(
        description="The training was resumed at an earlier step: other values of these steps were logged "
        "later. Such groups are apart, unless `resolution` is `raw`."
    )
    step: list[float]
    t: list[Number] = Field(description="ms UTC; of a bucket of steps, the time of its newest call.")
    n: list[int] | None
    series: Values
    min: Values | None
    max: Values | None


class LoggedOther(ResponseBody):
    """A text, a list, an object, null or a boolean that a process logged under a name at a step."""

    host: str
    rank: int | None
    key: str
    step: float
    time_ms: int
    value: Any


class ResumeSchema(ResponseBody):
    """A training went on after a restart."""

    after_t: float = Field(description="ms UTC: of the last value before it.")
    after_step: float = Field(description="Of that value; may be higher than `step`.")
    t: float = Field(description="ms UTC: of the first value after it.")
    step: float


class Logged(ResponseBody):
    """Logged values of a run, in groups of the same steps."""

    run: str
    cursor: str
    groups: list[LoggedGroup]
    others: list[LoggedOther] = Field(
        description="What is not a number, by step; the newest if there are more than `max_points`."
    )
    resumes: list[ResumeSchema] = Field(description="Empty if `resolution` is `raw`.")
    unmatched: list[str] = Field(description="Those of `keys` under which nothing was logged.")
    problems: list[str] = Field(description="Parts that could not be read.")
