"""The HTTP API under `/api/v1`. The page uses nothing else, so everything it shows can be scripted.

Each resource is a module with a `router`, listed here. They share `parameters`, `responses`, `models` and
`tables/`.
"""

from __future__ import annotations

from runvitals.server.artifacts.routes import run_artifacts as artifacts
from runvitals.server.charts.routes import groups, headline, history, overlay, plan, series
from runvitals.server.compare.routes import compare, differences, fields, importance
from runvitals.server.files.routes import media
from runvitals.server.findings.routes import rules as finding_rules
from runvitals.server.findings.routes import run_findings
from runvitals.server.hosts.routes import fleet, hosts
from runvitals.server.http.router import Router
from runvitals.server.http.routes import about
from runvitals.server.projects.routes import projects
from runvitals.server.runs.routes import (
    bulk,
    console,
    live,
    metric_definitions,
    records,
    run_lists,
    runs,
    usual_columns,
)

router = Router(prefix="/api/v1")
for resource in (
    about,
    projects,
    usual_columns,
    run_lists,  # before the routes of one run, whose id could be `groups`
    runs,
    bulk,
    console,
    records,
    media,
    artifacts,
    metric_definitions,
    headline,
    plan,
    series,
    differences,
    finding_rules,
    run_findings,
    history,
    live,
    overlay,
    groups,
    fleet,
    hosts,
    compare,
    fields,
    importance,
):
    router.include_router(resource.router)
