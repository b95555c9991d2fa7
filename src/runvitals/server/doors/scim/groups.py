"""SCIM groups: teams, with their members."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runvitals.model.account_names import MAX_ENTITY_NAME
from runvitals.server.audit.storage.audit import Actor
from runvitals.server.doors.scim.messages import (
    GROUP,
    PREFIX,
    ScimError,
    equality,
    member_of_path,
    operations,
    user_number,
)
from runvitals.server.doors.scim.storage.scim import ScimNames
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.teams.storage.members import MemberRow
from runvitals.server.teams.storage.teams import TeamRow
from runvitals.store.errors import NameTaken, NotFound


class ScimGroups:
    """Creates, changes and finds teams for an identity provider.

    Args:
        by: the identity provider, for the audit log.
    """

    def __init__(self, store: MetadataStore, by: Actor, now_ms: int, url: str) -> None:
        self._store = store
        self._accounts = store.accounts
        self._by = by
        self._now_ms = now_ms
        self._url = url

    def find(self, expression: str | None) -> list[TeamRow]:
        """Return the teams that fit a filter, or all."""
        rows = [row for row in self._accounts.teams.all() if row.deleted_ms is None]
        if expression is None:
            return rows
        attribute, value = equality(expression, ["displayName", "externalId", "id"])
        if attribute == "id":
            return [row for row in rows if str(row.id) == value]
        if attribute == "displayName":
            return [row for row in rows if value.casefold() in (row.display_name.casefold(), row.name)]
        provisioned = self._accounts.scim.by_external_id(value)
        return [row for row in rows if row.id in provisioned]

    def get(self, group_id: str) -> TeamRow:
        """Return the team as a group, or raise ScimError 404."""
        for row in self._accounts.teams.all():
            if str(row.id) == group_id and row.deleted_ms is None:
                return row
        raise ScimError(404, f"there is no group with id {group_id[:40]!r}")

    def create(self, body: Mapping[str, Any]) -> TeamRow:
        """Create a team with its members.

        Raises:
            ScimError: 400 for an invalid group; 409 if its name is taken.
        """
        display_name = body.get("displayName")
        if not isinstance(display_name, str) or not display_name.strip():
            raise ScimError(400, "displayName is missing", "invalidValue")
        name = re.sub(r"[^a-z0-9]+", "-", display_name.lower()).strip("-")[:MAX_ENTITY_NAME]
        try:
            team = self._accounts.teams.create(name, self._by, self._now_ms, display_name=display_name)
        except NameTaken as error:
            raise ScimError(409, str(error), "uniqueness") from None
        except ValueError as error:
            raise ScimError(400, str(error), "invalidValue") from None
        external_id = body.get("externalId")
        self._accounts.scim.put(team.id, None, None if external_id is None else str(external_id))
        self._add(team, _ids(body.get("members", [])))
        return self.get(str(team.id))

    def replace(self, team: TeamRow, body: Mapping[str, Any]) -> TeamRow:
        """Give a team the values of a whole SCIM group: others than its members are removed."""
        self._rename(team, body.get("displayName"))
        self._set_members(team, _ids(body.get("members", [])))
        return self.get(str(team.id))

    def patch(self, team: TeamRow, body: dict[str, Any]) -> TeamRow:
        """Carry out the operations of a PATCH: members, displayName and externalId."""
        for kind, path, value in operations(body):
            member_id = member_of_path(path)
            attribute = "members" if member_id is not None else path.casefold()
            ids = [member_id] if member_id is not None else _ids(value if value is not None else [])
            if attribute == "displayname":
                self._rename(team, value)
            elif attribute == "externalid":
                self._accounts.scim.put(team.id, None, None if value is None else str(value))
            elif attribute == "members" and kind == "add":
                self._add(team, ids)
            elif attribute == "members" and kind == "replace":
                self._set_members(team, ids)
            elif attribute == "members":
                self._remove(
                    team, ids if member_id is not None or value is not None else self._member_ids(team)
                )
        return self.get(str(team.id))

    def delete(self, team: TeamRow) -> None:
        """Move a team to the trash; raise LinkedVersions while others have versions of it."""
        teams = self._accounts.teams
        self._store.artifacts.dependents.delete_team(
            team.id, lambda: teams.delete(team.name, self._by, self._now_ms)
        )
        self._accounts.scim.forget(team.id)

    def json(self, teams: Sequence[TeamRow]) -> list[dict[str, Any]]:
        """Return teams as SCIM has them."""
        ids = [team.id for team in teams]
        names = self._accounts.scim.names_of(ids)
        members = self._accounts.members.of_teams(ids)
        return [self._json(team, names.get(team.id), members.get(team.id, [])) for team in teams]

    def _json(self, team: TeamRow, names: ScimNames | None, members: Sequence[MemberRow]) -> dict[str, Any]:
        return {
            "schemas": [GROUP],
            "id": str(team.id),
            **({"externalId": names.external_id} if names and names.external_id else {}),
            "displayName": team.display_name,
            "members": [{"value": str(row.user_id), "display": row.display_name} for row in members],
            "meta": {"resourceType": "Group", "location": f"{self._url}{PREFIX}/Groups/{team.id}"},
        }

    def _member_ids(self, team: TeamRow) -> list[str]:
        return [str(row.user_id) for row in self._accounts.members.of_team(team.name)]

    def _set_members(self, team: TeamRow, ids: list[str]) -> None:
        self._add(team, ids)
        self._remove(team, [user_id for user_id in self._member_ids(team) if user_id not in ids])

    def _add(self, team: TeamRow, ids: Iterable[str]) -> None:
        """Add users as members. Who is in the team already keeps the role."""
        present = set(self._member_ids(team))
        for user_id in ids:
            if user_id not in present:
                name = self._user_name(user_id)
                self._accounts.members.add(team.name, name, "member", self._by, self._now_ms)
                present.add(user_id)

    def _remove(self, team: TeamRow, ids: Iterable[str]) -> None:
        present = set(self._member_ids(team))
        for user_id in ids:
            if user_id in present:
                self._accounts.members.remove(team.name, self._user_name(user_id), self._by, self._now_ms)

    def _user_name(self, user_id: str) -> str:
        try:
            return self._accounts.users.get(user_number(user_id)).name
        except (ValueError, NotFound):
            raise ScimError(400, f"there is no user with id {user_id[:40]!r}", "invalidValue") from None

    def _rename(self, team: TeamRow, display_name: Any) -> None:
        if display_name is None or display_name == team.display_name:
            return
        try:
            self._accounts.teams.update(team.name, self._by, self._now_ms, display_name=str(display_name))
        except ValueError as error:
            raise ScimError(400, str(error), "invalidValue") from None


def _ids(members: Any) -> list[str]:
    """Return the user ids of a list of members; one member may come without a list."""
    rows = [members] if isinstance(members, dict) else members
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "value" in row for row in rows):
        return []
    return [str(row["value"]) for row in rows]
