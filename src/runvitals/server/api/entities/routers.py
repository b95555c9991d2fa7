"""The routes of this package. They load its modules: see `server/account_routes.py`."""

from __future__ import annotations

from runvitals.server.api.entities import (
    artifacts,
    defaults,
    links,
    members,
    projects,
    routing_rules,
    runs,
    shared,
    sweep_runs,
    sweeps,
    views,
)
from runvitals.server.router import Router

router = Router(prefix="/api/v1")
for resource in (
    artifacts,
    projects,
    members,
    links,
    shared,
    runs,
    defaults,
    views,
    routing_rules,
    sweep_runs,
    sweeps,
):
    router.include_router(resource.router)
