"""SCIM users: users of the server, with what the identity provider calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from runvitals.model.account_names import MAX_ENTITY_NAME, address_key, display_name, suggested_name
from runvitals.model.names import plain_text
from runvitals.server.accounts.storage.emails import EmailRow
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.audit.storage.audit import Actor
from runvitals.server.doors.scim.messages import (
    PREFIX,
    USER,
    ScimError,
    as_boolean,
    equality,
    operations,
    user_number,
)
from runvitals.server.doors.scim.storage.scim import ScimNames
from runvitals.server.mail import messages
from runvitals.server.mail.notices import Notices
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.errors import NameTaken, NotFound

SCIM = Actor("system", "scim", via="provider")
_NAMED_BY_ADMINISTRATORS: Final = ("cli", "setup")
"""How users were created who did not choose their name."""
"""An identity provider, for the audit log."""
_MAX_NAMES = 100


class ScimUsers:
    """Creates, changes and finds users for an identity provider.

    Args:
        by: the identity provider, for the audit log.
    """

    def __init__(self, store: MetadataStore, by: Actor, now_ms: int, url: str) -> None:
        self._accounts = store.accounts
        self._by = by
        self._now_ms = now_ms
        self._url = url

    def find(self, expression: str | None) -> list[UserRow]:
        """Return the users that fit a filter, or all.

        A filter also finds users who were not provisioned yet.
        """
        if expression is None:
            return [row.user for row in self._accounts.users.listed()]
        attribute, value = equality(expression, ["userName", "externalId", "id"])
        if attribute == "userName":
            user = self._find(value)
            return [] if user is None else [user]
        if attribute == "externalId":
            return self._accounts.users.of_entities(self._accounts.scim.by_external_id(value))
        try:
            return [self.get(value)]
        except ScimError:
            return []

    def get(self, user_id: str) -> UserRow:
        """Return the user, or raise ScimError 404."""
        try:
            return self._accounts.users.get(user_number(user_id))
        except (ValueError, NotFound):
            raise ScimError(404, f"there is no user with id {user_id[:40]!r}") from None

    def create(self, body: Mapping[str, Any]) -> UserRow:
        """Create a user. The provider has verified the address.

        Raises:
            ScimError: 400 for an invalid user; 409 if there is such a user already.
        """
        user_name = _text(body, "userName")
        if user_name is None:
            raise ScimError(400, "userName is missing", "invalidValue")
        if self._find(user_name) is not None:
            raise ScimError(409, f"there is already a user with the userName {user_name!r}", "uniqueness")
        address = _address(body) or (user_name if "@" in user_name else None)
        try:
            if address is not None and self._accounts.users.by_address(address_key(address)) is not None:
                raise ScimError(409, "there is already a user with this address", "uniqueness")
            user = self._create(user_name, address, _display_name(body))
        except ValueError as error:
            raise ScimError(400, str(error), "invalidValue") from None
        self._accounts.scim.put(user.entity_id, user_name, _text(body, "externalId"))
        return self._set_active(user, as_boolean(body.get("active", True)))

    def replace(self, user: UserRow, body: Mapping[str, Any]) -> UserRow:
        """Give a user the values of a whole SCIM user."""
        names = self._accounts.scim.names_of([user.entity_id]).get(user.entity_id)
        user_name = _text(body, "userName") or (names.user_name if names else None)
        self._put_names(user, user_name, _text(body, "externalId"))
        return self._change(user, _display_name(body), body.get("active", True))

    def patch(self, user: UserRow, body: dict[str, Any]) -> UserRow:
        """Carry out the operations of a PATCH. Attributes that are not kept here are passed over."""
        names = self._accounts.scim.names_of([user.entity_id]).get(user.entity_id)
        user_name, external_id = (names.user_name, names.external_id) if names else (None, None)
        new_name: str | None = None
        active: Any = None
        for _kind, path, value in operations(body):
            attribute = path.casefold()
            if attribute == "active":
                active = value
            elif attribute == "username":
                user_name = str(value)
            elif attribute == "externalid":
                external_id = None if value is None else str(value)
            elif attribute in ("displayname", "name.formatted"):
                new_name = user.name if value is None else str(value)
            elif attribute == "name" and isinstance(value, dict):
                new_name = _display_name({"name": value})
        self._put_names(user, user_name, external_id)
        return self._change(user, new_name, active)

    def delete(self, user: UserRow) -> None:
        """Delete an account for good; runs in teams stay.

        Raises:
            LastAdministrator: the last administrator of the organisation.
        """
        # A provider may delete many users at once: a server sends the mail later.
        notices = Notices(self._accounts, self._accounts.mail_drafts, self._now_ms)
        message = messages.account_deleted(user.name)
        address = notices.address_of(user.id, message)
        self._accounts.users.delete(user.id, self._by, self._now_ms, leave_teams=True)
        if address is not None:
            notices.to_address(address, message)

    def json(self, users: Sequence[UserRow]) -> list[dict[str, Any]]:
        """Return users as SCIM has them."""
        names = self._accounts.scim.names_of([user.entity_id for user in users])
        emails = self._accounts.emails.of_users([user.id for user in users])
        return [self._json(user, names.get(user.entity_id), emails.get(user.id, [])) for user in users]

    def _json(self, user: UserRow, names: ScimNames | None, emails: Sequence[EmailRow]) -> dict[str, Any]:
        primary = next((row.address for row in emails if row.is_primary), None)
        user_name = (names.user_name if names else None) or primary or user.name
        return {
            "schemas": [USER],
            "id": str(user.id),
            **({"externalId": names.external_id} if names and names.external_id else {}),
            "userName": user_name,
            "displayName": user.display_name,
            "name": {"formatted": user.display_name},
            "active": user.state != "suspended",
            "emails": [{"value": row.address, "primary": row.is_primary} for row in emails],
            "meta": {"resourceType": "User", "location": f"{self._url}{PREFIX}/Users/{user.id}"},
        }

    def _find(self, user_name: str) -> UserRow | None:
        """Return the user whom the provider calls so, or else who has this verified address or name.

        A name that users chose themselves says nothing: they would get the teams of somebody else.
        """
        entity_id = self._accounts.scim.by_user_name(user_name)
        if entity_id is not None and (users := self._accounts.users.of_entities([entity_id])):
            return users[0]
        if entity_id is None and "@" in user_name:
            try:
                return self._accounts.users.by_address(address_key(user_name))
            except ValueError:
                return None
        try:
            user = self._accounts.users.by_name(user_name)
        except NotFound:
            return None
        return user if user.created_via in _NAMED_BY_ADMINISTRATORS else None

    def _create(self, user_name: str, address: str | None, new_name: str | None) -> UserRow:
        base = suggested_name(user_name)
        for number in range(1, _MAX_NAMES):
            ending = "" if number == 1 else f"-{number}"
            try:
                return self._accounts.users.create(
                    base[: MAX_ENTITY_NAME - len(ending)] + ending,
                    self._by,
                    self._now_ms,
                    display_name=new_name or base,
                    address=address,
                    verified=True,
                    via="scim",
                )
            except NameTaken:
                continue
        raise ScimError(409, f"no name like {base!r} is free", "uniqueness")

    def _put_names(self, user: UserRow, user_name: str | None, external_id: str | None) -> None:
        try:
            self._accounts.scim.put(user.entity_id, user_name, external_id)
        except NameTaken as error:
            raise ScimError(409, str(error), "uniqueness") from None

    def _change(self, user: UserRow, new_name: str | None, active: Any) -> UserRow:
        if new_name is not None and new_name != user.display_name:
            try:
                name = display_name(new_name)
            except ValueError as error:
                raise ScimError(400, str(error), "invalidValue") from None
            user = self._accounts.users.update(user.id, self._by, self._now_ms, display_name=name)
        return user if active is None else self._set_active(user, as_boolean(active))

    def _set_active(self, user: UserRow, active: bool) -> UserRow:
        if active == (user.state != "suspended"):
            return user
        state = "active" if active else "suspended"
        return self._accounts.users.update(user.id, self._by, self._now_ms, state=state)


def _text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= 254:
        raise ScimError(400, f"invalid {name}; expected a text of at most 254 characters", "invalidValue")
    return plain_text(value)


def _address(body: Mapping[str, Any]) -> str | None:
    """Return the primary address, or else the first one."""
    emails = body.get("emails")
    rows = [row for row in emails if isinstance(row, dict)] if isinstance(emails, list) else []
    email = next((row for row in rows if row.get("primary")), rows[0] if rows else {})
    value = email.get("value")
    return value if isinstance(value, str) else None


def _display_name(body: Mapping[str, Any]) -> str | None:
    """Return the name to show: as given, or of its parts."""
    display_name = body.get("displayName")
    name = body.get("name")
    if isinstance(display_name, str) and display_name.strip():
        return display_name
    if not isinstance(name, dict):
        return None
    parts = [str(name[part]) for part in ("givenName", "familyName") if name.get(part)]
    return str(name.get("formatted") or " ".join(parts)) or None
