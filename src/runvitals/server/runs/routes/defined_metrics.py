"""`/defined-metrics`: how the metrics of many runs are shown."""

from __future__ import annotations

from typing import Any

from runvitals.model.run_sort import RunSort
from runvitals.server.access.permission import needs
from runvitals.server.http.responses import INVALID_PARAMETER
from runvitals.server.http.router import Router
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.parameters import TheFilter, TheLibrary

router = Router()
_RUNS = 50


@router.get(
    "/defined-metrics",
    response_model=dict[str, models.DefinedMetric],
    response_model_exclude_none=True,
    responses=INVALID_PARAMETER,
    dependencies=[needs("filtered run:read")],
)
async def defined_metrics(library: TheLibrary, run_filter: TheFilter) -> Any:
    """What the newest 50 runs that match a filter chose with `define_metric`, by name or pattern. The newest
    choice for a name counts.
    """
    page = await library.page(run_filter, RunSort("started_ms", True), _RUNS, None, lambda key: False)
    found: dict[str, Any] = {}
    for run in reversed(page.runs):
        found.update(run.defined_metrics)
    return found
