"""`/compare/fields`: fields of all runs that match, to place the runs by them."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any, Final

from fastapi import Query
from fastapi.responses import Response
from pydantic import Field
from starlette.requests import Request

from runvitals.server.access.permission import needs
from runvitals.server.charts.headline_names import choose_goal
from runvitals.server.charts.routes.overlay import in_time
from runvitals.server.compare.run_rows import MAX_RUNS, newest_runs
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.responses import INVALID_PARAMETER, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.runs.routes.list_parameters import fields_of
from runvitals.server.runs.routes.metric_definitions import newest_definitions
from runvitals.server.runs.routes.parameters import TheFilter, TheLibrary
from runvitals.server.runs.routes.usual_columns import GoalMetric
from runvitals.server.runs.usual_columns import SUMMARY, differing_config, logged_names

MAX_FIELDS: Final = 24
_NAN: Final = "NaN"
"""As fields of runs have it."""
router = Router(responses=INVALID_PARAMETER)


class FieldColumn(ResponseBody):
    """A field of each run."""

    name: str
    values: list[float | str | None] = Field(description="In the order of `runs`; None: a run has none.")
    not_finite: int = Field(description="In how many runs it is NaN or infinite, which is None here.")


class RunWithFields(ResponseBody):
    """A run whose fields are listed."""

    id: str
    name: str
    entity: str | None
    project: str


class ComparedFields(ResponseBody):
    """Fields of runs."""

    runs: list[RunWithFields] = Field(description=f"The newest {MAX_RUNS:,} that match, the newest first.")
    more: bool = Field(description="Whether there may be older ones, which are left out.")
    goal: GoalMetric | None = Field(description="The metric by which the runs are judged.")
    fields: list[FieldColumn]


@router.get("/compare/fields", needs("filtered run:read"), response_model=ComparedFields)
async def compared_fields(
    request: Request,
    library: TheLibrary,
    run_filter: TheFilter,
    fields: Annotated[
        list[str],
        Query(
            description="`config.…`, `summary.…`, `system.…`; none: what differs in the configuration, "
            "and the goal.",
            max_length=MAX_FIELDS,
        ),
    ] = [],  # noqa: B006
) -> Response:
    """Fields of the newest 1,000 runs that match, for scatter plots and parallel coordinates."""
    choices = await library.choices(run_filter)
    goal = choose_goal(logged_names(choices), await newest_definitions(library, run_filter))
    of_goal = [] if goal is None else [SUMMARY + goal[0]]
    names = fields_of(fields or [*differing_config(choices), *of_goal])
    rows = await newest_runs(library, run_filter, tuple(dict.fromkeys([*names.values()])))

    def encode() -> bytes:
        return json_bytes(
            {
                "runs": [
                    {name: getattr(run, name) for name in RunWithFields.model_fields} for run, _ in rows
                ],
                "more": len(rows) >= MAX_RUNS,
                "goal": None if goal is None else {"name": goal[0], "goal": goal[1]},
                "fields": [
                    _column(name, [row.get(field) for _, row in rows]) for name, field in names.items()
                ],
            }
        )

    return await json_response(request, await in_time(encode))


def _column(name: str, values: list[str | float | None]) -> dict[str, Any]:
    unusual = [_is_not_finite(value) for value in values]
    finite_values = [None if is_unusual else value for value, is_unusual in zip(values, unusual, strict=True)]
    return {"name": name, "values": finite_values, "not_finite": sum(unusual)}


def _is_not_finite(value: str | float | None) -> bool:
    return value == _NAN if isinstance(value, str) else value is not None and not isfinite(value)
