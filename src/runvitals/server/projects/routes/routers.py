"""The routes of this package. They load its modules: see `server/account_routes.py`."""

from __future__ import annotations

from runvitals.server.artifacts.routes import artifacts
from runvitals.server.http.router import Router
from runvitals.server.projects.routes import defaults, links, members, routing_rules, shared, views
from runvitals.server.projects.routes import owned_projects as projects
from runvitals.server.runs.routes import project_runs as runs
from runvitals.server.sweeps.routes import sweep_runs, sweeps

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
