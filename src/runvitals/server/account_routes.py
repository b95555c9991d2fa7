"""The routes that only a shared server has: they load the tables of accounts."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from runvitals.server import scim
from runvitals.server.api import accounts, alerts, entities, organisation, single_sign_on, teams, usage

ACCOUNT_ROUTERS: Final[tuple[APIRouter, ...]] = (
    *(part.router for part in (accounts, single_sign_on, teams, organisation, entities, alerts, usage)),
    accounts.shown_images,
    scim.router,
)
