"""`/catalogue`: the definition of every metric."""

from __future__ import annotations

from typing import Any

from runvitals.metrics import SUBJECTS
from runvitals.server.access.permission import needs
from runvitals.server.api import models
from runvitals.server.router import Router

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
