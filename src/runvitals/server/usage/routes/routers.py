"""The routes of this package. They load its modules: see `server/account_routes.py`."""

from __future__ import annotations

from runvitals.server.http.router import Router
from runvitals.server.usage.routes import (
    administrators,
    alerts,
    cost_centres,
    own_usage,
    payments,
    plans,
    rates,
    settlement,
    statements,
    storage,
    team_usage,
    usage,
)

router = Router(prefix="/api/v1")
for resource in (
    usage,
    own_usage,
    team_usage,
    rates,
    plans,
    alerts,
    administrators,
    cost_centres,
    settlement,
    payments,
    statements,
    storage,
):
    router.include_router(resource.router)
