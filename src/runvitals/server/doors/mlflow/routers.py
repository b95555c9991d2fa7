"""The routes of this door. The last router answers what no other does."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from runvitals.server.doors.mlflow import (
    artifact_routes,
    experiment_routes,
    lineage_routes,
    logged_model_routes,
    metric_routes,
    model_version_routes,
    registered_model_routes,
    run_routes,
    server_routes,
)

MLFLOW_ROUTERS: Final[tuple[APIRouter, ...]] = (
    experiment_routes.router,
    run_routes.router,
    metric_routes.router,
    registered_model_routes.router,
    model_version_routes.router,
    logged_model_routes.router,
    lineage_routes.router,
    artifact_routes.lists,
    artifact_routes.router,
    server_routes.pages,
    server_routes.others,
)
