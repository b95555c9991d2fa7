"""`/fields/usual` and `/fields/check`: the columns that suit runs, and whether a filter can be read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from runvitals.model.filter_text import MAX_LENGTH, FilterError, parse
from runvitals.server.access.permission import needs
from runvitals.server.charts.headline_names import choose_goal
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.responses import INVALID_PARAMETER
from runvitals.server.http.router import Router
from runvitals.server.runs.routes.metric_definitions import newest_definitions
from runvitals.server.runs.routes.parameters import TheFilter, TheLibrary
from runvitals.server.runs.usual_columns import differing_config, logged_names

router = Router()


class GoalMetric(ResponseBody):
    """The metric by which runs are judged."""

    name: str = Field(description="Its column is `summary.<name>`.")
    goal: Literal["minimize", "maximize"] | None = Field(description="None: not known.")


class UsualColumns(ResponseBody):
    """What a list of runs shows until the user chooses."""

    goal: GoalMetric | None
    config: list[str] = Field(description="Fields of the configuration in which the newest runs differ.")


class FilterCheck(ResponseBody):
    """Whether a filter can be read."""

    error: str | None = Field(description="What is wrong with it; None if it is valid.")


@router.get(
    "/fields/usual", needs("filtered run:read"), response_model=UsualColumns, responses=INVALID_PARAMETER
)
async def usual_columns(library: TheLibrary, run_filter: TheFilter) -> Any:
    """Return the columns that suit the runs that match a filter.

    The goal is one of `define_metric`, otherwise the loss or accuracy on held-out data, otherwise that of the
    training.
    """
    choices = await library.choices(run_filter)
    goal = choose_goal(logged_names(choices), await newest_definitions(library, run_filter))
    return {
        "goal": None if goal is None else {"name": goal[0], "goal": goal[1]},
        "config": differing_config(choices),
    }


@router.get("/fields/check", needs("filtered run:read"), response_model=FilterCheck)
async def check_filter(
    filter_text: Annotated[str, Query(alias="filter", max_length=MAX_LENGTH)] = "",
) -> FilterCheck:
    """Say what is wrong with a filter, while it is typed."""
    try:
        parse(filter_text)
    except FilterError as error:
        return FilterCheck(error=str(error))
    return FilterCheck(error=None)
