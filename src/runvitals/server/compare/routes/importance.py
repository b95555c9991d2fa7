"""`/compare/importance`: which parameters of runs decide a number of theirs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import Query
from fastapi.responses import Response
from pydantic import Field
from starlette.requests import Request

from runvitals.server.access.permission import needs
from runvitals.server.charts.routes.overlay import in_time
from runvitals.server.compare.parameters import LEAST_RUNS, importances
from runvitals.server.compare.run_rows import newest_rows, parameter_names
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.responses import INVALID_PARAMETER, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.runs.routes.list_parameters import fields_of
from runvitals.server.runs.routes.parameters import TheFilter, TheLibrary

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


@router.get("/compare/importance", needs("filtered run:read"), response_model=ImportancesSchema)
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
    names = await parameter_names(library, run_filter)
    rows = await newest_rows(library, run_filter, (target, *names))

    def compute() -> bytes:
        return json_bytes(asdict(importances(rows, names, target)))

    return await json_response(request, await in_time(compute))
