"""The routes that only a shared server has: they load the tables of accounts."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from runvitals.server.api import accounts, organisation, teams

ACCOUNT_ROUTERS: Final[tuple[APIRouter, ...]] = (
    accounts.router,
    teams.router,
    organisation.router,
)
