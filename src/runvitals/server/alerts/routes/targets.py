"""Who rules can notify: the author and members of a team, and its channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from runvitals.server.alerts.storage.destinations import KINDS
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.errors import NotFound

_SERVICES: Final = {"slack": "Slack", "webhook": "Webhook"}
"""Of the other kind, each destination has its own."""


def target_errors(store: MetadataStore, entity_id: int, targets: Sequence[str], field: str) -> dict[str, str]:
    """What is wrong with targets such as `slack:3`: the team or user does not have them."""
    wrong = {}
    for index, target in enumerate(targets):
        kind, _, number = target.partition(":")
        try:
            if kind in KINDS:
                store.alerts.destinations.get(kind, entity_id, int(number))
        except NotFound as error:
            wrong[f"{field}[{index}]"] = str(error)
    return wrong


def targets_of(store: MetadataStore, team_id: int) -> list[dict[str, Any]]:
    """What rules of a team can name, and what it is called."""
    channels = [
        (f"{kind}:{row.id}", f"{_SERVICES.get(kind) or row.settings['shown']}: {row.name}")
        for kind in KINDS
        for row in store.alerts.destinations.of_team(kind, team_id)
    ]
    users = [("author", "The author of the run"), ("members", "All members of the team")]
    return [{"target": target, "name": name} for target, name in (*users, *channels)]
