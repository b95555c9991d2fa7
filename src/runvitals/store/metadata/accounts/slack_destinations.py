"""Slack destinations of teams: incoming webhooks of channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, select, update

from runvitals.store.errors import UnknownAccount
from runvitals.store.metadata.accounts.audit import Actor, record
from runvitals.store.metadata.accounts.integration_tables import slack_destination
from runvitals.store.metadata.accounts.integrations import check_count, check_free, locked_team
from runvitals.store.metadata.database import Database
from runvitals.store.metadata.text import checked_name

MAX_DESTINATIONS: Final = 20
MAX_CHANNEL: Final = 80


@dataclass(frozen=True, slots=True)
class SealedUrl:
    """The URL of an incoming webhook. `shown`: what of it may be read."""

    sealed: bytes
    shown: str


@dataclass(frozen=True, slots=True)
class SlackDestinationRow:
    """A destination, without its URL. `channel`: what the team calls it."""

    id: int
    channel: str
    shown: str
    created_ms: int


_DESTINATIONS = select(*[slack_destination.c[name] for name in SlackDestinationRow.__dataclass_fields__])


class SlackDestinationTable:
    """The table of Slack destinations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_team(self, team_id: int) -> list[SlackDestinationRow]:
        """All destinations of a team, in the order in which they were created."""
        mine = _DESTINATIONS.where(slack_destination.c.team_id == team_id).order_by(slack_destination.c.id)
        with self._database.read() as connection:
            return [SlackDestinationRow(**row._asdict()) for row in connection.execute(mine)]

    def sealed(self, team_id: int, destination_id: int) -> bytes:
        """The encrypted URL.

        Raises:
            UnknownAccount: the team has no such destination.
        """
        mine = (slack_destination.c.id == destination_id, slack_destination.c.team_id == team_id)
        with self._database.read() as connection:
            found: bytes | None = connection.execute(select(slack_destination.c.sealed).where(*mine)).scalar()
        if found is None:
            raise UnknownAccount("the team has no such Slack destination")
        return found

    def create(
        self, team_id: int, channel: str, url: SealedUrl, by: Actor, now_ms: int
    ) -> SlackDestinationRow:
        """
        Raises:
            ValueError: an invalid channel.
            NameTaken: the team has a destination of this name.
            LimitReached: the team has too many.
        """
        channel = _checked_channel(channel)
        values = {
            "team_id": team_id,
            "channel": channel,
            "sealed": url.sealed,
            "shown": url.shown,
            "created_by": by.user_id,
            "created_ms": now_ms,
        }

        def work(connection: Connection) -> SlackDestinationRow:
            team = locked_team(connection, team_id)
            check_free(connection, slack_destination.c.channel, team_id, channel, "Slack destination")
            check_count(connection, slack_destination, team_id, MAX_DESTINATIONS, "Slack destinations")
            connection.execute(insert(slack_destination).values(values))
            record(connection, now_ms, by, "slack.create", entity=team, target=channel)
            mine = (slack_destination.c.team_id == team_id, slack_destination.c.channel == channel)
            return SlackDestinationRow(**connection.execute(_DESTINATIONS.where(*mine)).one()._asdict())

        return self._database.write(work)

    def update(
        self,
        team_id: int,
        destination_id: int,
        by: Actor,
        now_ms: int,
        *,
        channel: str | None = None,
        url: SealedUrl | None = None,
    ) -> SlackDestinationRow:
        """Change what is given. Raises as `create`, or if there is no such destination."""
        values: dict[str, Any] = {} if url is None else {"sealed": url.sealed, "shown": url.shown}
        if channel is not None:
            values["channel"] = _checked_channel(channel)

        def work(connection: Connection) -> SlackDestinationRow:
            team = locked_team(connection, team_id)
            before = _destination(connection, team_id, destination_id)
            name = values.get("channel", before.channel)
            if name != before.channel:
                check_free(connection, slack_destination.c.channel, team_id, name, "Slack destination")
            elif url is None:
                return before
            mine = slack_destination.c.id == destination_id
            connection.execute(update(slack_destination).where(mine).values(values))
            old, new = {"channel": before.channel}, {"channel": name, "url_replaced": url is not None}
            record(connection, now_ms, by, "slack.update", entity=team, target=name, before=old, after=new)
            return _destination(connection, team_id, destination_id)

        return self._database.write(work)

    def delete(self, team_id: int, destination_id: int, by: Actor, now_ms: int) -> None:
        """
        Raises:
            UnknownAccount: the team has no such destination.
        """

        def work(connection: Connection) -> None:
            team = locked_team(connection, team_id)
            row = _destination(connection, team_id, destination_id)
            connection.execute(delete(slack_destination).where(slack_destination.c.id == destination_id))
            record(connection, now_ms, by, "slack.delete", entity=team, target=row.channel)

        self._database.write(work)


def _checked_channel(channel: str) -> str:
    return checked_name("channel", channel.strip(), MAX_CHANNEL)


def _destination(connection: Connection, team_id: int, destination_id: int) -> SlackDestinationRow:
    mine = (slack_destination.c.id == destination_id, slack_destination.c.team_id == team_id)
    row = connection.execute(_DESTINATIONS.where(*mine)).first()
    if row is None:
        raise UnknownAccount("the team has no such Slack destination")
    return SlackDestinationRow(**row._asdict())
