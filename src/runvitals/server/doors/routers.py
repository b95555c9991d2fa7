"""The routes of all doors, which only a shared server has."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from runvitals.server.doors import client_links
from runvitals.server.doors.mlflow.routers import MLFLOW_ROUTERS
from runvitals.server.doors.promql import routes as promql
from runvitals.server.doors.wandb import artifact_files, uploads
from runvitals.server.doors.wandb import file_reads as run_files
from runvitals.server.doors.wandb import routes as wandb

DOOR_ROUTERS: Final[tuple[APIRouter, ...]] = (
    client_links.router,
    promql.router,
    wandb.router,
    artifact_files.router,
    uploads.router,
    run_files.router,
    *MLFLOW_ROUTERS,
)
