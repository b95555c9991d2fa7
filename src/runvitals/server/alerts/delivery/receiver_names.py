"""What the receivers of notifications are called."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from runvitals.server.alerts.storage.destinations import KINDS
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
    for destination_kind in KINDS:
        for team_id in {team_id for team_id, _ in by_kind.get(destination_kind, ()) if team_id is not None}:
            rows = store.alerts.destinations.of_team(destination_kind, team_id)
            found |= {f"{destination_kind}:{row.id}": row.name for row in rows}
    return found
