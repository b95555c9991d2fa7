"""`/account/beta`: features under development, which each user may try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from fastapi import HTTPException
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.accounts.routes.own_account import TheOwner
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheServices

router = Router()


def is_on(feature: str, own: Mapping[str, bool], forced: Mapping[str, str]) -> bool:
    """Return whether a feature is on: as the organisation forces it, else as the user chose."""
    return forced[feature] == "on" if feature in forced else bool(own.get(feature, False))


class Switch(RequestBody):
    """Whether a user wants a feature."""

    on: bool


class BetaFeatureSchema(ResponseBody):
    """A feature under development."""

    name: str
    text: str = Field(description="What it does.")
    since: str = Field(description="The version that has it first.")
    stage: Literal["beta", "retiring"]
    on: bool
    forced: Literal["on", "off"] | None = Field(description="What the organisation decided for all.")


BetaFeaturesPage = page_body("BetaFeaturesPage", "A page of features.", features=list[BetaFeatureSchema])


class SwitchedFeature(ResponseBody):
    """A user's choice for a feature."""

    name: str
    on: bool


@router.get("/account/beta", needs("account:read"), response_model=BetaFeaturesPage)
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


@router.put("/account/beta/{name}", needs("account:update"))
def switch(
    name: str,
    body: Switch,
    access: TheAccess,
    services: TheServices,
    owner: TheOwner,
) -> SwitchedFeature:
    """Switch a feature on or off for oneself."""
    names = {feature.name for feature in services.beta_features}
    if name not in names:
        raise HTTPException(404, f"there is no beta feature {name[:64]!r}")
    if name in services.settings()["beta_features"]:
        raise HTTPException(409, f"the organisation decides about {name}")
    profiles = access.accounts.profiles
    before = profiles.get(owner.id).fields.get("beta", {})
    # Drop the switches of features that no longer exist.
    own = {feature: on for feature, on in before.items() if feature in names}
    profiles.put(owner.id, {"beta": {**own, name: body.on}}, owner.actor, access.clock())
    return SwitchedFeature(name=name, on=body.on)
