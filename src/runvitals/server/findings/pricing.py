"""By which prices lost device-hours become money, and who may see those of the organisation."""

from __future__ import annotations

from dataclasses import dataclass

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Organisation


@dataclass(frozen=True, slots=True)
class Pricing:
    """By which prices lost hours become money.

    Args:
        price: of each device-hour; None: the prices of the organisation.
        is_shown: whether the prices of the organisation may be shown.
    """

    price: float | None = None
    is_shown: bool = False


def may_see_prices(access: AccessControl, requester: Requester, entity: str | None) -> bool:
    """Return whether the requester may see what the runs of a team or user cost; without one, of all."""
    if access.may(requester, Action.BILLING_READ, Organisation()):
        return True
    owner = None if entity is None else access.directory.entity_named(entity)
    return owner is not None and access.may(requester, Action.USAGE_READ_TEAM, owner)
