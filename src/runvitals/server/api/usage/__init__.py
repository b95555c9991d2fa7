"""`/usage…` and `/billing…`: what runs used, and what it costs. It loads the tables of accounts."""

from __future__ import annotations

from fastapi import APIRouter

from runvitals.server.api.usage import alerts, cost_centres, plans, rates, settlement, statements, usage

router = APIRouter(prefix="/api/v1")
for resource in (usage, rates, plans, alerts, cost_centres, settlement, statements):
    router.include_router(resource.router)
