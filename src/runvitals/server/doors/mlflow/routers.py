"""The routes of this door. The last router answers what no other does."""

from __future__ import annotations

from runvitals.server.doors.mlflow import (
    artifact_routes,
    experiment_routes,
    lineage_routes,
    logged_model_routes,
    metric_routes,
    model_version_routes,
    multipart_routes,
    page_artifact_routes,
    registered_model_routes,
    run_routes,
    server_routes,
)
from runvitals.server.http.router import Router

router = Router()
for part in (
    metric_routes.first,
    experiment_routes.router,
    run_routes.router,
    metric_routes.router,
    registered_model_routes.router,
    model_version_routes.router,
    logged_model_routes.router,
    lineage_routes.router,
    artifact_routes.lists,
    page_artifact_routes.router,
    page_artifact_routes.pages,
    multipart_routes.router,
    multipart_routes.addresses,
    artifact_routes.router,
    server_routes.pages,
    server_routes.others,
):
    router.include_router(part)
