"""What teams reach by Apprise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, insert, select

from runvitals.server.alerts.storage.integrations import check_count, check_free, locked_team
from runvitals.server.alerts.storage.slack_destinations import SealedUrl
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import Database
from runvitals.server.database.tables.alerts import apprise_destination
from runvitals.server.database.text import checked_name
from runvitals.store.errors import NotFound

MAX_DESTINATIONS: Final = 20
MAX_NAME: Final = 80
_row = apprise_destination.c


@dataclass(frozen=True, slots=True)
class AppriseDestinationRow:
    """A destination, without its URL. `shown`: the service that it leads to."""

    id: int
    name: str
    shown: str
    created_ms: int


_DESTINATIONS = select(*[_row[name] for name in AppriseDestinationRow.__dataclass_fields__])


class AppriseDestinationTable:
    """The table of destinations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_team(self, team_id: int) -> list[AppriseDestinationRow]:
        """All destinations of a team, in the order in which they were created."""
        mine = _DESTINATIONS.where(_row.team_id == team_id).order_by(_row.id)
        with self._database.read() as connection:
            return [AppriseDestinationRow(**row._asdict()) for row in connection.execute(mine)]

    def sealed(self, team_id: int, destination_id: int) -> bytes:
        """The encrypted URL.

        Raises:
            NotFound: the team has no such destination.
        """
        wanted = select(_row.sealed).where(_row.id == destination_id, _row.team_id == team_id)
        with self._database.read() as connection:
            found: bytes | None = connection.execute(wanted).scalar()
        if found is None:
            raise NotFound("the team has no such Apprise destination")
        return found

    def create(
        self, team_id: int, name: str, url: SealedUrl, by: Actor, now_ms: int
    ) -> AppriseDestinationRow:
        """
        Raises:
            ValueError: an invalid name.
            NameTaken: the team has a destination of this name.
            LimitReached: the team has too many.
        """
        name = checked_name("name", name.strip(), MAX_NAME)
        values = {
            "team_id": team_id,
            "name": name,
            "sealed": url.sealed,
            "shown": url.shown,
            "created_by": by.user_id,
            "created_ms": now_ms,
        }

        def work(connection: Connection) -> AppriseDestinationRow:
            team = locked_team(connection, team_id)
            check_free(connection, _row.name, team_id, name, "Apprise destination")
            check_count(connection, apprise_destination, team_id, MAX_DESTINATIONS, "Apprise destinations")
            connection.execute(insert(apprise_destination).values(values))
            record(connection, now_ms, by, "apprise.create", entity=team, target=name)
            mine = (_row.team_id == team_id, _row.name == name)
            return AppriseDestinationRow(**connection.execute(_DESTINATIONS.where(*mine)).one()._asdict())

        return self._database.write(work)

    def delete(self, team_id: int, destination_id: int, by: Actor, now_ms: int) -> None:
        """
        Raises:
            NotFound: the team has no such destination.
        """
        mine = (_row.id == destination_id, _row.team_id == team_id)

        def work(connection: Connection) -> None:
            team = locked_team(connection, team_id)
            name = connection.execute(select(_row.name).where(*mine)).scalar()
            if name is None:
                raise NotFound("the team has no such Apprise destination")
            connection.execute(delete(apprise_destination).where(*mine))
            record(connection, now_ms, by, "apprise.delete", entity=team, target=name)

        self._database.write(work)
