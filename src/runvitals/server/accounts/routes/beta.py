"""`/account/beta`: features under development, which each user may try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import HTTPException

from runvitals.server.access.permission import needs
from runvitals.server.accounts.routes.own_account import TheOwner
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheServices

router = Router()


def is_on(feature: str, own: Mapping[str, bool], forced: Mapping[str, str]) -> bool:
    """Whether a feature is on for a user.

    Args:
        own: what the user chose.
        forced: `on` or `off`, where the organisation decides for all.
    """
    return forced[feature] == "on" if feature in forced else bool(own.get(feature, False))


class Switch(RequestBody):
    on: bool


@router.get("/account/beta", dependencies=[needs("account:read")])
def features(access: TheAccess, services: TheServices, owner: TheOwner, page: ThePage) -> Any:
    """The features, and which of them are on for the user: by choice, or because the organisation says so."""
    own = access.accounts.profiles.get(owner.id).fields.get("beta", {})
    forced = services.settings()["beta_features"]
    rows = [
        {
            "name": feature.name,
            "text": feature.text,
            "since": feature.since,
            "stage": feature.stage,
            "on": is_on(feature.name, own, forced),
            "forced": forced.get(feature.name),
        }
        for feature in services.beta_features
    ]
    return page_in_order("features", rows, page)


@router.put("/account/beta/{name}", dependencies=[needs("account:update")])
def switch(
    name: str,
    body: Switch,
    access: TheAccess,
    services: TheServices,
    owner: TheOwner,
) -> Any:
    """Switch a feature on or off for oneself."""
    known = {feature.name for feature in services.beta_features}
    if name not in known:
        raise HTTPException(404, f"there is no beta feature {name[:64]!r}")
    if name in services.settings()["beta_features"]:
        raise HTTPException(409, f"the organisation decides about {name}")
    profiles = access.accounts.profiles
    before = profiles.get(owner.id).fields.get("beta", {})
    # Switches of features that no longer exist go.
    kept = {feature: on for feature, on in before.items() if feature in known}
    profiles.put(owner.id, {"beta": {**kept, name: body.on}}, owner.actor, access.clock())
    return {"name": name, "on": body.on}
