"""Usage alerts: which were sent in a billing period, and sending one once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, select

from runvitals.store.metadata.accounts.tables import entity, membership, user_account
from runvitals.store.metadata.alerts.outbox import Notification, add
from runvitals.store.metadata.database import Database, insert
from runvitals.store.metadata.usage.plans import ORGANISATION
from runvitals.store.metadata.usage.tables import usage_alert


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
class Receiver:
    """A user who gets a mail. `manages`: may change plans and limits."""

    user_id: int
    name: str
    manages: bool


class UsageAlertTable:
    """The usage alerts of all periods."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def send(self, passed: Sequence[UsageAlert], notifications: Sequence[Notification], now_ms: int) -> bool:
        """Note passed thresholds of one category, and send notifications if any of them is new.

        Only the highest threshold counts as sent; the others are noted so that they are not sent later.
        """

        def work(connection: Connection) -> bool:
            highest = max(passed, key=lambda one: one.threshold)
            is_new = False
            for one in passed:
                row = {**asdict(one), "sent_ms": now_ms if one is highest else None}
                noted = insert(connection, usage_alert).values(row).on_conflict_do_nothing()
                added = connection.execute(noted).rowcount > 0
                is_new = is_new or (added and one is highest)
            for notification in notifications if is_new else ():
                add(connection, notification)
            return is_new

        return self._database.write(work)

    def of_period(self, period: str) -> list[UsageAlert]:
        """The thresholds that were passed in a period."""
        columns = [usage_alert.c[name] for name in UsageAlert.__dataclass_fields__]
        with self._database.read() as connection:
            rows = connection.execute(select(*columns).where(usage_alert.c.period == period))
            return [UsageAlert(*row) for row in rows]

    def receivers(self, entity_id: int) -> list[Receiver]:
        """Who gets a mail: administrators of the organisation, and of the team."""
        active = user_account.c.state == "active"
        names = select(user_account.c.id, entity.c.name, user_account.c.org_role).join(
            entity, entity.c.id == user_account.c.entity_id
        )
        with self._database.read() as connection:
            found = connection.execute(names.where(active, user_account.c.org_role == "admin")).all()
            if entity_id != ORGANISATION:
                of_team = (membership.c.team_id == entity_id) & (membership.c.role == "admin")
                members = names.join(membership, membership.c.user_id == user_account.c.id)
                found = [*found, *connection.execute(members.where(active, of_team))]
        by_id = {number: Receiver(number, name, role == "admin") for number, name, role in found}
        return [by_id[number] for number in sorted(by_id)]
