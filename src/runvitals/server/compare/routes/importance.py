"""`/compare/importance`: which parameters of runs decide a number of theirs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response
from pydantic import Field
from starlette.requests import Request

from runvitals.model.run_groups import MAX_COLUMNS
from runvitals.model.run_sort import RunSort
from runvitals.server.access.permission import needs
from runvitals.server.charts.routes.overlay import in_time
from runvitals.server.compare.parameters import LEAST_RUNS, Row, importances
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.responses import INVALID_PARAMETER, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import Library
from runvitals.server.runs.routes.list_parameters import fields_of
from runvitals.server.runs.routes.parameters import TheFilter, TheLibrary
from runvitals.server.runs.run_lists import ShownColumns

MAX_RUNS = 1000
_RUNS_AT_ONCE = 500
_CONFIG = "config."
router = Router(responses=INVALID_PARAMETER)


class ParameterImportanceSchema(ResponseBody):
    """How much a parameter decides."""

    name: str = Field(description="A field of the configuration.")
    share: float = Field(description="Of what all parameters decide together, from 0 to 1.")
    correlation: float | None = Field(description="Of ranks (Spearman), from -1 to 1; None for texts.")
    values: int = Field(description="How many different values there are.")


class ImportancesSchema(ResponseBody):
    """Parameters, the most important first."""

    runs: int = Field(description=f"How many have the number; fewer than {LEAST_RUNS} say nothing.")
    score: float | None = Field(
        description="The share of its variance that is predicted for runs that were not learned from."
    )
    parameters: list[ParameterImportanceSchema]


@router.get(
    "/compare/importance", response_model=ImportancesSchema, dependencies=[needs("filtered run:read")]
)
async def parameter_importance(
    request: Request,
    library: TheLibrary,
    run_filter: TheFilter,
    of: Annotated[
        str, Query(description="The number: `summary.loss`, `system.gpu`, …", min_length=1, max_length=600)
    ],
) -> Response:
    """Say how much each parameter decides a number of the newest 1,000 runs that match.

    A random forest learns to predict the number. A parameter is as important as predictions get worse if its
    values are shuffled, for runs that a tree has not learned from.
    """
    target = fields_of([of])[of]
    choices = await library.choices(run_filter)
    names = [choice.name for choice in choices if choice.name.startswith(_CONFIG) and len(choice.values) > 1]
    names = names[: MAX_COLUMNS - 1]
    rows = await _rows(library, run_filter, (target, *names))

    def compute() -> bytes:
        return json_bytes(asdict(importances(rows, names, target)))

    return await json_response(request, await in_time(compute))


async def _rows(library: Library, run_filter: TheFilter, fields: tuple[str, ...]) -> list[Row]:
    rows: list[Row] = []
    after: Any = None
    newest = RunSort("started_ms", True)
    while len(rows) < MAX_RUNS:
        page = await library.page(
            run_filter, newest, _RUNS_AT_ONCE, after, lambda key: False, ShownColumns(fields)
        )
        rows += page.columns
        after = page.next
        if after is None:
            break
    return rows
