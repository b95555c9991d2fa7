"""`/catalogue` and `/defined-metrics`: definitions of metrics, and how runs chose to show theirs."""

from __future__ import annotations

from typing import Any

from runvitals.model.filter import Filter
from runvitals.model.metrics import SUBJECTS
from runvitals.model.run_sort import RunSort
from runvitals.server.access.permission import needs
from runvitals.server.http.responses import INVALID_PARAMETER
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import Library
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.parameters import TheFilter, TheLibrary

router = Router()
_RUNS = 50


@router.get("/catalogue", needs("public"), response_model=list[models.MetricDefinition])
async def metric_definitions() -> Any:
    """Every defined metric: key, unit, kind, chart and meaning."""
    return [
        {
            **{
                name: getattr(metric, name)
                for name in models.MetricDefinition.model_fields
                if name != "subject"
            },
            "subject": subject,
        }
        for subject, metrics in SUBJECTS.items()
        for metric in metrics
    ]


@router.get(
    "/defined-metrics",
    needs("filtered run:read"),
    response_model=dict[str, models.DefinedMetric],
    response_model_exclude_none=True,
    responses=INVALID_PARAMETER,
)
async def defined_metrics(library: TheLibrary, run_filter: TheFilter) -> Any:
    """Return the choices of `define_metric` in the newest 50 matching runs, by name or pattern.

    The newest choice for a name counts.
    """
    return await newest_definitions(library, run_filter)


async def newest_definitions(library: Library, run_filter: Filter) -> dict[str, Any]:
    """Return the definitions of the newest matching runs; the newest for a name counts."""
    page = await library.page(run_filter, RunSort("started_ms", True), _RUNS, None, lambda key: False)
    metrics: dict[str, Any] = {}
    for run in reversed(page.runs):
        metrics.update(run.defined_metrics)
    return metrics
