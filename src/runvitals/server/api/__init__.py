"""The HTTP API under `/api/v1`. The page uses nothing else, so everything it shows can be scripted.

Each resource is a module with a `router`, listed here. They share `parameters`, `responses`, `models` and
`tables/`.
"""

from __future__ import annotations

from runvitals.server.api import (
    about,
    artifacts,
    bulk,
    compare,
    console,
    defined_metrics,
    differences,
    events,
    fleet,
    history,
    hosts,
    live,
    media,
    metric_definitions,
    overlay,
    plan,
    projects,
    run_lists,
    runs,
    series,
)
from runvitals.server.router import Router

router = Router(prefix="/api/v1")
for resource in (
    about,
    projects,
    run_lists,  # before the routes of one run, whose id could be `groups`
    runs,
    bulk,
    events,
    console,
    media,
    artifacts,
    metric_definitions,
    defined_metrics,
    plan,
    series,
    differences,
    history,
    live,
    overlay,
    fleet,
    hosts,
    compare,
):
    router.include_router(resource.router)
