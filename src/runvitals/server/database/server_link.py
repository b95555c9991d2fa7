"""`ServerLink`: how servers that share a metadata store elect a leader and tell each other what changed.

In PostgreSQL each server keeps one connection, which holds locks for as long as it lives: one on the server's
number, so that others see that it lives, and, of one server, the lock of the leader. If a server dies, its
connection ends, and another one leads within seconds. Messages are notifications of PostgreSQL.

With SQLite there is one server: it leads, and nobody listens.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from runvitals.server.database.database import Database, StoredTable
from runvitals.store.errors import MetadataStoreUnavailable
from runvitals.store.supervised_thread import SupervisedThread

_LEADER = 0x72766C64
_SERVERS = 0x72767376
"""The first of the two keys of the locks on numbers of servers."""
_CHANNEL = "runvitals"
_POLL_S = 0.2
_CHECK_S = 1.0
_TRUSTED_S = 10.0
"""Without a response of the database for this long, a leader does not lead any more."""
_MAX_PAUSE_S = 5.0
_ITEMS_PER_MESSAGE = 200
"""A notification may have 8,000 bytes."""
_KEEPALIVES = {"idle": 10, "interval": 5, "count": 3}
"""For PostgreSQL, in seconds: it notices that a machine has vanished, and lets another server lead."""

Message = Mapping[str, Any]
log = logging.getLogger("runvitals.server")


class ServerLink(StoredTable):
    """The connection of a server to the others. All methods are thread-safe.

    Args:
        on_message: called with what other servers published, in the thread of the link.
        on_gap: called, in that thread, when messages may have been missed.

    Attributes:
        number: of this server, among those that run; 0 with SQLite.
        thread: start and close it.

    Raises:
        MetadataStoreUnavailable: the database cannot be reached.
    """

    def __init__(
        self, database: Database, on_message: Callable[[Message], None], on_gap: Callable[[], None]
    ) -> None:
        super().__init__(database)
        self._on_message = on_message
        self._on_gap = on_gap
        self._connection: Any = None  # of psycopg: SQLAlchemy knows no notifications
        self._leads = database.is_sqlite
        self._checked_s = 0.0
        self._waiting: dict[str, dict[Any, Any]] = {}
        self._lock = threading.Lock()
        self.number = 0 if database.is_sqlite else secrets.randbelow(2**31 - 1) + 1
        self.thread = SupervisedThread("server-link", self._turn, longest_pause_s=_MAX_PAUSE_S)
        if not database.is_sqlite:
            self._connect()
            self._check()

    @property
    def is_leader(self) -> bool:
        """Whether this server does the work that only one may do."""
        if self._database.is_sqlite:
            return True
        return self._leads and time.monotonic() - self._checked_s < _TRUSTED_S

    def publish(self, kind: str, items: Mapping[Any, Any]) -> None:
        """Tell the other servers, within a fraction of a second. Later items replace those of the same key.

        While the database cannot be reached, it waits.
        """
        if self._database.is_sqlite:
            return
        with self._lock:
            self._waiting.setdefault(kind, {}).update(items)

    def close(self) -> None:
        """End the thread and the connection."""
        self.thread.close()
        self._disconnect()

    def _turn(self) -> bool:
        if self._database.is_sqlite:
            self.thread.closing.wait()
            return False
        try:
            if self._connection is None:
                self._connect()
                self._on_gap()
            if time.monotonic() - self._checked_s >= _CHECK_S:
                self._check()
            self._send()
            self._receive()
        except self._database.engine.dialect.loaded_dbapi.Error as error:
            self._disconnect()
            raise _unavailable(error) from error
        except BaseException:
            self._disconnect()
            raise
        return not self.thread.closing.is_set()

    def _connect(self) -> None:
        try:
            pooled = self._database.engine.raw_connection()
            self._connection = pooled.driver_connection
            # Not one of the pool: its locks would go on to the next user of the connection.
            pooled.detach()
            self._connection.autocommit = True
            for name, value in _KEEPALIVES.items():
                self._connection.execute(f"SET tcp_keepalives_{name} = {value:d}")
            self._run("SELECT pg_advisory_lock(%s, %s)", _SERVERS, self.number)
            self._connection.execute(f"LISTEN {_CHANNEL}")
        except (SQLAlchemyError, self._database.engine.dialect.loaded_dbapi.Error) as error:
            self._disconnect()
            raise _unavailable(error) from error

    def _disconnect(self) -> None:
        self._leads = self._database.is_sqlite
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _run(self, sql: str, *values: object) -> Any:
        """The first value of the first row."""
        return self._connection.execute(sql, values).fetchone()[0]

    def _check(self) -> None:
        """Try to lead, or see that the connection, and with it the lock, is still there."""
        if self._leads:
            self._run("SELECT 1")
        else:
            self._leads = bool(self._run("SELECT pg_try_advisory_lock(%s)", _LEADER))
            if self._leads:
                log.info("this server leads", extra={"fields": {"server": self.number}})
        self._checked_s = time.monotonic()

    def _send(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        try:
            self._notify(waiting)
        except BaseException:
            with self._lock:  # messages may be heard twice, which changes nothing
                for kind, items in waiting.items():
                    self._waiting[kind] = {**items, **self._waiting.get(kind, {})}
            raise

    def _notify(self, waiting: Mapping[str, Mapping[Any, Any]]) -> None:
        for kind, items in waiting.items():
            listed = list(items.items())
            for first in range(0, len(listed), _ITEMS_PER_MESSAGE):
                message = {
                    "from": self.number,
                    "kind": kind,
                    "items": listed[first : first + _ITEMS_PER_MESSAGE],
                }
                packed = json.dumps(message, separators=(",", ":"))
                self._run("SELECT pg_notify(%s, %s)", _CHANNEL, packed)

    def _receive(self) -> None:
        for notification in self._connection.notifies(timeout=_POLL_S):
            message = json.loads(notification.payload)
            if message["from"] != self.number:
                self._on_message({"kind": message["kind"], "items": message["items"]})


def _unavailable(error: Exception) -> MetadataStoreUnavailable:
    reason = (str(error) or repr(error)).splitlines()[0]
    return MetadataStoreUnavailable(f"the link to the other servers failed: {reason}")


def ended_servers(connection: Connection, numbers: Sequence[int]) -> list[int]:
    """Those of the servers with these numbers that do not run any more; with SQLite: all."""
    if connection.dialect.name == "sqlite":
        return list(numbers)
    free = text("SELECT pg_try_advisory_xact_lock(:servers, :number)")
    return [
        number
        for number in numbers
        if connection.execute(free, {"servers": _SERVERS, "number": number}).scalar()
    ]


def count_servers(connection: Connection) -> int:
    """How many servers use the metadata store now; 0 with SQLite, where nothing says so."""
    if connection.dialect.name == "sqlite":
        return 0
    return int(connection.execute(_RUNNING, {"servers": _SERVERS}).scalar_one())


_RUNNING = text(
    "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database "
    "WHERE locktype = 'advisory' AND classid = :servers AND granted AND datname = current_database()"
)
