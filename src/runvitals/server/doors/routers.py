"""The routes of all doors, which only a shared server has."""

from __future__ import annotations

from typing import Final

from runvitals.server.http.router import RouterModule

DOOR_ROUTERS: Final = (
    RouterModule("doors.client_links", ("/api/v1/client-links",)),
    RouterModule("doors.promql.routes", ("/prometheus/api/v1/", "/prometheus/federate")),
    RouterModule("doors.wandb.routes", ("/graphql", "/files/", "/artifactsV2/", "/wandb/signed/")),
    RouterModule(
        "doors.mlflow.routes",
        (
            "/api/2.0/mlflow",
            "/mlflow/signed/",
            "/get-artifact",
            "/model-versions/get-artifact",
            "/health",
            "/version",
        ),
    ),
    RouterModule(  # the last: paths that no other has
        "doors.unknown_paths",
        (
            "/files",
            "/artifactsV2",
            "/wandb",
            "/graphql",
            "/mlflow",
            "/ajax-api",
            "/get-artifact",
            "/model-versions",
            "/prometheus",
            "/scim",
        ),
    ),
)
