"""Usage alerts: which were sent in a billing period, and sending one once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from sqlalchemy import Connection, delete, func, select

from runvitals.server.database.database import StoredTable, in_transaction, insert
from runvitals.server.database.tables.accounts import email, entity, membership, user_account
from runvitals.server.database.tables.usage import usage_alert
from runvitals.server.events.automation_events import USAGE_THRESHOLD, raise_for_team
from runvitals.server.events.outbox import Notification, add
from runvitals.server.usage.storage.plans import ORGANISATION

Recipients = Literal["admins", "billing"]


@dataclass(frozen=True, slots=True)
class UsageAlert:
    """A threshold that was passed in a period.

    Args:
        kind: `percent` of the limit, or `amount` of the currency.
    """

    period: str
    entity_id: int
    category: str
    kind: str
    threshold: int
    value: float
    limit_then: float | None


@dataclass(frozen=True, slots=True)
class UsageAlertReceiver:
    """A user who gets a mail. `manages`: may change plans and limits."""

    user_id: int
    name: str
    manages: bool


class UsageAlertTable(StoredTable):
    """The usage alerts of all periods."""

    @in_transaction
    def send(
        self,
        connection: Connection,
        passed: Sequence[UsageAlert],
        notifications: Sequence[Notification],
        now_ms: int,
    ) -> bool:
        """Note passed thresholds of one category, and send notifications if any of them is new.

        Only the highest threshold counts as sent; the others are noted so that they are not sent later.
        """
        highest = max(passed, key=lambda alert: alert.threshold)
        is_new = False
        for alert in passed:
            row = {**asdict(alert), "sent_ms": now_ms if alert is highest else None}
            noted = insert(connection, usage_alert).values(row).on_conflict_do_nothing()
            added = connection.execute(noted).rowcount > 0
            is_new = is_new or (added and alert is highest)
        if is_new and highest.kind == "percent":
            data = {"percent": highest.threshold, "category": highest.category}
            key = f"{highest.period}:{highest.entity_id}:{highest.category}:{highest.threshold}:{now_ms}"
            raise_for_team(connection, USAGE_THRESHOLD, highest.entity_id, data, now_ms, key)
        for notification in notifications if is_new else ():
            add(connection, notification)
        return is_new

    def of_period(self, period: str) -> list[UsageAlert]:
        """The thresholds that were passed in a period."""
        columns = [usage_alert.c[name] for name in UsageAlert.__dataclass_fields__]
        with self._database.read() as connection:
            rows = connection.execute(select(*columns).where(usage_alert.c.period == period))
            return [UsageAlert(*row) for row in rows]

    def forget(self, alert: UsageAlert) -> None:
        """Forget a threshold, so that it can be passed again."""
        column = usage_alert.c
        names = ("period", "entity_id", "category", "kind", "threshold")
        rows = delete(usage_alert).where(*(column[name] == getattr(alert, name) for name in names))
        self._database.write(lambda connection: connection.execute(rows))

    def billing_administrators(self) -> dict[str, str]:
        """The names of the billing administrators, with their addresses; "": not confirmed."""
        mine = (email.c.user_id == user_account.c.id) & email.c.is_primary & email.c.verified_ms.is_not(None)
        statement = (
            select(entity.c.name, func.coalesce(email.c.address, ""))
            .join(user_account, entity.c.id == user_account.c.entity_id)
            .outerjoin(email, mine)
            .where(user_account.c.state == "active", user_account.c.billing_role == "admin")
            .order_by(entity.c.name)
        )
        with self._database.read() as connection:
            return dict(connection.execute(statement).all())

    def receivers(self, entity_id: int, recipients: Recipients = "admins") -> list[UsageAlertReceiver]:
        """Who gets a mail: administrators of the organisation, all or the billing ones, and of the team."""
        account = user_account.c
        names = select(account.id, entity.c.name, account.org_role).join(
            entity, entity.c.id == account.entity_id
        )
        chosen = account.billing_role == "admin" if recipients == "billing" else account.org_role == "admin"
        with self._database.read() as connection:
            rows = connection.execute(names.where(account.state == "active", chosen)).all()
            if entity_id != ORGANISATION:
                of_team = (membership.c.team_id == entity_id) & (membership.c.role == "admin")
                members = names.join(membership, membership.c.user_id == account.id)
                rows = [*rows, *connection.execute(members.where(account.state == "active", of_team))]
        by_id = {number: UsageAlertReceiver(number, name, role == "admin") for number, name, role in rows}
        return [by_id[number] for number in sorted(by_id)]
