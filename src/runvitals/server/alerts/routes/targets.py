"""Who rules can notify: the author and members of a team, and its channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runvitals.server.metadata_store import MetadataStore
from runvitals.store.errors import NotFound


def target_errors(store: MetadataStore, entity_id: int, targets: Sequence[str], field: str) -> dict[str, str]:
    """What is wrong with targets such as `slack:3`: the team or user does not have them."""
    wrong = {}
    for index, target in enumerate(targets):
        kind, _, number = target.partition(":")
        try:
            if kind == "slack":
                store.accounts.slack_destinations.sealed(entity_id, int(number))
            elif kind == "webhook":
                store.accounts.webhooks.get(entity_id, int(number))
            elif kind == "apprise":
                store.alerts.apprise.sealed(entity_id, int(number))
        except NotFound as error:
            wrong[f"{field}[{index}]"] = str(error)
    return wrong


def targets_of(store: MetadataStore, team_id: int) -> list[dict[str, Any]]:
    """What rules of a team can name, and what it is called."""
    accounts = store.accounts
    slack = accounts.slack_destinations.of_team(team_id)
    channels = [
        *((f"slack:{row.id}", f"Slack: {row.channel}") for row in slack),
        *((f"webhook:{row.id}", f"Webhook: {row.name}") for row in accounts.webhooks.of_team(team_id)),
        *((f"apprise:{row.id}", f"{row.shown}: {row.name}") for row in store.alerts.apprise.of_team(team_id)),
    ]
    users = [("author", "The author of the run"), ("members", "All members of the team")]
    return [{"target": target, "name": name} for target, name in (*users, *channels)]
