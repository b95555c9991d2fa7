"""The webhook of the audit log, and how far it was delivered. The events wait in the audit log itself.

Ids of events are assigned before their transactions end, so an event may appear after one with a higher id.
Ids that were passed over are looked for again until that can no longer happen.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, delete, func, or_, select, update

from runvitals.server.audit.storage.audit import Actor, AuditEvent, AuditTable, host_of, record
from runvitals.server.database.database import Database, StoredTable, in_transaction, put_rows
from runvitals.server.database.tables.accounts import audit_event
from runvitals.server.database.tables.requests import audit_webhook

MAX_EVENTS: Final = 100
"""In one request."""
SETTLED_MS: Final = 60_000
"""How long an id that was passed over is looked for: longer than any transaction."""
_MAX_GAPS: Final = 1000
_MAX_PROBLEM: Final = 300
_ONLY: Final = 1
"""The id of the row: there is one webhook."""


@dataclass(frozen=True, slots=True)
class AuditWebhookRow:
    """The webhook of the audit log.

    Attributes:
        sealed: the encrypted secret of the signatures.
        sent_id: the newest event that was delivered.
        gaps: ids below it that have not appeared, with the time when they were passed over.
        delivered_ms: of the last delivery; None: there was none.
        problem: why the last attempt failed; None if it did not.
    """

    url: str
    sealed: bytes
    created_ms: int
    sent_id: int
    gaps: dict[int, int]
    delivered_ms: int | None
    problem: str | None


_COLUMNS = [audit_webhook.c[name] for name in AuditWebhookRow.__dataclass_fields__]
_MINE = audit_webhook.c.id == _ONLY


class AuditWebhookTable(StoredTable):
    """The table of the webhook."""

    def __init__(self, database: Database, audit: AuditTable) -> None:
        super().__init__(database)
        self._audit = audit

    def get(self) -> AuditWebhookRow | None:
        """Return the webhook; None if there is none."""
        with self._database.read() as connection:
            return _row(connection)

    @in_transaction
    def put(self, connection: Connection, url: str, sealed: bytes, by: Actor, now_ms: int) -> None:
        """Send the audit log to a URL that the caller has checked: the events from now on.

        Another URL in place of the present one gets what that one has not got.
        """
        before = _row(connection)
        values = {
            "id": _ONLY,
            "url": url,
            "sealed": sealed,
            "created_ms": now_ms,
            "sent_id": _newest_id(connection) if before is None else before.sent_id,
            "gaps": json.dumps({} if before is None else before.gaps),
            "claimed_by": None,
            "claimed_until_ms": None,
            "delivered_ms": None,
            "problem": None,
        }
        put_rows(connection, audit_webhook, [values])
        old = None if before is None else {"url": host_of(before.url)}
        record(connection, now_ms, by, "org.audit_webhook", before=old, after={"url": host_of(url)})

    @in_transaction
    def remove(self, connection: Connection, by: Actor, now_ms: int) -> None:
        """Send the audit log nowhere. It has no effect if there is no webhook."""
        before = _row(connection)
        if before is not None:
            connection.execute(delete(audit_webhook).where(_MINE))
            old = {"url": host_of(before.url)}
            record(connection, now_ms, by, "org.audit_webhook", before=old)

    def waiting(self, webhook: AuditWebhookRow, limit: int = MAX_EVENTS) -> list[AuditEvent]:
        """Return the oldest events that were not delivered."""
        late = self._audit.with_ids(sorted(webhook.gaps))[:limit]
        rest = limit - len(late)
        return late + (self._audit.since(webhook.sent_id, rest) if rest else [])

    def claim(self, server: str, now_ms: int, until_ms: int) -> AuditWebhookRow | None:
        """Claim the webhook until a time; None: another server has it, or there is none."""
        free = or_(
            audit_webhook.c.claimed_by.is_(None),
            audit_webhook.c.claimed_by == server,
            audit_webhook.c.claimed_until_ms <= now_ms,
        )

        def work(connection: Connection) -> AuditWebhookRow | None:
            lease = update(audit_webhook).where(_MINE, free)
            claimed = connection.execute(lease.values(claimed_by=server, claimed_until_ms=until_ms))
            return _row(connection) if claimed.rowcount else None

        return self._database.write(work, durable=False)

    def mark_delivered(
        self, server: str, webhook: AuditWebhookRow, events: Sequence[AuditEvent], now_ms: int
    ) -> None:
        """Note that events were delivered, if the server still has the webhook.

        Without events, forget the ids that can no longer appear.
        """
        sent = {event.id for event in events}
        newest = max(sent, default=webhook.sent_id)
        gaps = {
            missing: passed_ms
            for missing, passed_ms in webhook.gaps.items()
            if missing not in sent and now_ms - passed_ms < SETTLED_MS
        }
        first = max(webhook.sent_id + 1, newest - _MAX_GAPS)
        gaps |= {missing: now_ms for missing in range(first, newest) if missing not in sent}
        values: dict[str, Any] = {
            "sent_id": max(newest, webhook.sent_id),
            "gaps": json.dumps(gaps),
            "problem": None,
        }
        if events:
            values["delivered_ms"] = now_ms
        self._note(server, values)

    def mark_failed(self, server: str, problem: str) -> None:
        """Note why a delivery failed."""
        self._note(server, {"problem": problem[:_MAX_PROBLEM]})

    def _note(self, server: str, values: dict[str, Any]) -> None:
        mine = update(audit_webhook).where(_MINE, audit_webhook.c.claimed_by == server)
        self._database.write(lambda connection: connection.execute(mine.values(values)))


def _row(connection: Connection) -> AuditWebhookRow | None:
    row = connection.execute(select(*_COLUMNS).where(_MINE)).first()
    if row is None:
        return None
    gaps = {int(missing): passed_ms for missing, passed_ms in json.loads(row.gaps).items()}
    return AuditWebhookRow(**{**row._asdict(), "gaps": gaps})


def _newest_id(connection: Connection) -> int:
    return int(connection.execute(select(func.max(audit_event.c.id))).scalar() or 0)
