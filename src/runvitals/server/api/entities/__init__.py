"""`/entities/…`: projects by whose they are. For shared servers only: it loads the tables of accounts."""

from __future__ import annotations

from fastapi import APIRouter

from runvitals.server.api.entities import (
    artifacts,
    defaults,
    links,
    members,
    projects,
    routing_rules,
    runs,
    shared,
    sweeps,
    views,
)

router = APIRouter(prefix="/api/v1")
for resource in (artifacts, projects, members, links, shared, runs, defaults, views, routing_rules, sweeps):
    router.include_router(resource.router)
