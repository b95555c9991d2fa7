"""Sign-ins of a command line by a browser: `runvitals login URL` shows a code, and a user confirms it.

The device has a secret and the user a short code. A confirmed sign-in is exchanged for an API key once, by
whoever has the secret.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from runvitals.model.durations import DAY_MS
from runvitals.server.accounts.storage.random_secrets import digest_of, new_secret
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.limits import check_room
from runvitals.server.database.tables.accounts import device_login
from runvitals.store.errors import NoLongerValid

LIFE_MS: Final = 10 * 60_000
MAX_WAITING: Final = 1000
"""Of all clients together."""
_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels: no words
_CODE_CHARACTERS: Final = 8


@dataclass(frozen=True, slots=True)
class DeviceLogin:
    """A sign-in of a device that waits for a user.

    `name`: of the device. `user_id` null: nobody has decided yet. `scope`: of the key that it gets.
    """

    id: int
    code: str
    name: str
    ip: str
    created_ms: int
    expires_ms: int
    user_id: int | None
    scope: str
    denied: bool


_LOGINS = select(*[device_login.c[name] for name in DeviceLogin.__dataclass_fields__])


class DeviceLoginTable(StoredTable):
    """The table of sign-ins that wait for a browser."""

    def begin(self, name: str, ip: str, now_ms: int) -> tuple[str, DeviceLogin]:
        """Begin a sign-in; returns the device's secret with it.

        Raises:
            ValueError: too many are waiting.
        """
        secret, digest = new_secret()

        def work(connection: Connection) -> DeviceLogin:
            connection.execute(delete(device_login).where(device_login.c.expires_ms <= now_ms))
            refusal = "too many devices are waiting for their users; try again later"
            check_room(connection, device_login, MAX_WAITING, refusal)
            code = _new_code()
            values = {
                "digest": digest,
                "code": code,
                "name": name,
                "ip": ip,
                "created_ms": now_ms,
                "expires_ms": now_ms + LIFE_MS,
                "scope": "",
                "denied": False,
            }
            connection.execute(insert(device_login).values(values))
            return _login(connection, device_login.c.digest == digest)

        return secret, self._database.write(work)

    def by_code(self, code: str, now_ms: int) -> DeviceLogin:
        """Return the sign-in that waits with this code in any case and dashes, or raise NoLongerValid."""
        with self._database.read() as connection:
            return _login(connection, *_waiting(code, now_ms))

    @in_transaction
    def answer(
        self, connection: Connection, code: str, user_id: int, scope: str, allow: bool, by: Actor, now_ms: int
    ) -> DeviceLogin:
        """Confirm or deny a sign-in.

        Raises:
            NoLongerValid: as of `by_code`.
        """
        login = _login(connection, *_waiting(code, now_ms))
        values = {"user_id": user_id, "scope": scope, "denied": not allow}
        open_ = (device_login.c.id == login.id, *_waiting(code, now_ms))
        if not connection.execute(update(device_login).where(*open_).values(values)).rowcount:
            raise NoLongerValid(_ENDED)
        about = {"device": login.name, "ip": login.ip, "allowed": allow}
        record(connection, now_ms, by, "user.device_login", target=by.name, after=about)
        return _login(connection, device_login.c.id == login.id)

    def of_device(self, secret: str, now_ms: int) -> DeviceLogin:
        """Return the sign-in of a device.

        Raises:
            NoLongerValid: it has expired, was denied, or its key was fetched.
        """
        mine = (device_login.c.digest == digest_of(secret), device_login.c.expires_ms > now_ms)
        with self._database.read() as connection:
            login = _login(connection, *mine)
        if login.denied:
            raise NoLongerValid("the sign-in was denied in the browser")
        return login

    def finish(self, login_id: int) -> None:
        """End a sign-in before its key is made; raise NoLongerValid if another request was faster."""
        mine = delete(device_login).where(device_login.c.id == login_id)
        if not self._database.write(lambda connection: connection.execute(mine).rowcount):
            raise NoLongerValid(_ENDED)


_ENDED: Final = "this code is wrong, was used or has expired"


def _new_code() -> str:
    letters = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_CHARACTERS))
    return f"{letters[:4]}-{letters[4:]}"


def _waiting(code: str, now_ms: int) -> tuple[ColumnElement[bool], ...]:
    letters = "".join(letter for letter in code.upper() if letter in _LETTERS)
    return (
        device_login.c.code == f"{letters[:4]}-{letters[4:]}",
        device_login.c.expires_ms.between(now_ms + 1, now_ms + DAY_MS),  # nor by a clock that was years ahead
        device_login.c.user_id.is_(None),
    )


def _login(connection: Connection, *conditions: ColumnElement[bool]) -> DeviceLogin:
    row = connection.execute(_LOGINS.where(*conditions)).first()
    if row is None:
        raise NoLongerValid(_ENDED)
    return DeviceLogin(**row._asdict())
