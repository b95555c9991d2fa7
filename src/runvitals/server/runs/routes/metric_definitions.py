"""`/catalogue`: the definition of every metric."""

from __future__ import annotations

from typing import Any

from runvitals.model.metrics import SUBJECTS
from runvitals.server.access.permission import needs
from runvitals.server.http.router import Router
from runvitals.server.runs.routes import models

router = Router()


@router.get("/catalogue", response_model=list[models.MetricDefinition], dependencies=[needs("public")])
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
