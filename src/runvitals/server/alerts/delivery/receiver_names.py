"""What the receivers of notifications are called."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from runvitals.server.events.outbox import StoredNotification
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.errors import NotFound


def receiver_names(store: MetadataStore, sent: Iterable[StoredNotification]) -> dict[str, str]:
    """The names of receivers, by the targets of notifications; what was deleted has none."""
    by_kind: dict[str, set[tuple[int | None, str]]] = {}
    for one in sent:
        kind, _, receiver = one.target.partition(":")
        by_kind.setdefault(kind, set()).add((one.team_id, receiver))
    found = {f"member:{name}": name for _, name in by_kind.get("member", ())}
    for kind in ("user", "user-slack"):
        for _, number in by_kind.get(kind, ()):
            with suppress(NotFound):
                found[f"{kind}:{number}"] = store.accounts.users.get(int(number)).name
    for team_id in {team_id for team_id, _ in by_kind.get("slack", ()) if team_id is not None}:
        rows = store.accounts.slack_destinations.of_team(team_id)
        found |= {f"slack:{row.id}": row.channel for row in rows}
    for team_id in {team_id for team_id, _ in by_kind.get("webhook", ()) if team_id is not None}:
        found |= {f"webhook:{row.id}": row.name for row in store.accounts.webhooks.of_team(team_id)}
    for team_id in {team_id for team_id, _ in by_kind.get("apprise", ()) if team_id is not None}:
        found |= {f"apprise:{row.id}": row.name for row in store.alerts.apprise.of_team(team_id)}
    return found
