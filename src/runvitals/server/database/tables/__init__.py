"""The definitions of all tables. They name each other in foreign keys, so they are loaded together."""

from runvitals.server.database.table_base import metadata
from runvitals.server.database.tables import (
    accounts,
    alert_rules,
    alerts,
    artifacts,
    content,
    destinations,
    events,
    findings,
    projects,
    registry,
    reports,
    requests,
    runs,
    sign_in,
    sign_on,
    sweeps,
    usage,
)

__all__ = [
    "accounts",
    "alert_rules",
    "alerts",
    "artifacts",
    "content",
    "destinations",
    "events",
    "findings",
    "metadata",
    "projects",
    "registry",
    "reports",
    "requests",
    "runs",
    "sign_in",
    "sign_on",
    "sweeps",
    "usage",
]
