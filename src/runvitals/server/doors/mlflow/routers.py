"""The routes of this door. The last router answers what no other does."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from runvitals.server.doors.mlflow import experiment_routes, metric_routes, run_routes, server_routes

MLFLOW_ROUTERS: Final[tuple[APIRouter, ...]] = (
    experiment_routes.router,
    run_routes.router,
    metric_routes.router,
    server_routes.pages,
    server_routes.others,
)
