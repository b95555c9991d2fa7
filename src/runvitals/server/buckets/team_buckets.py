"""The file stores in the buckets of teams: opened once, and left alone for a while when they fail."""

from __future__ import annotations

import json
import logging
import math
import os
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import BinaryIO, Final, NamedTuple

from runvitals.server.buckets.check import CheckStep, check_bucket
from runvitals.server.buckets.storage.buckets import BucketRow, BucketTable
from runvitals.server.database.secret_box import SecretBox, SecretUnreadable
from runvitals.server.files.disk_space import FileNotStored
from runvitals.server.outbound.fetcher import Fetcher, FetchFailed
from runvitals.server.outbound.forward_proxy import ForwardProxy
from runvitals.server.outbound.policy import Blocked
from runvitals.store.files.bucket_location import BucketLocation
from runvitals.store.files.buckets import open_store
from runvitals.store.files.interface import FileStore, Method, StoredContent

_PAUSE_S: Final = 30.0
_READ_AGAIN_S: Final = 30.0
"""After this time it is looked whether another server has changed the credentials of a bucket."""
AT_ONCE: Final = 12
"""Requests that one bucket may keep waiting: there are 40 threads for all."""
_CONNECTIONS: Final = 256
_LOOK_UP_S: Final = 5.0

log = logging.getLogger("runvitals.server")


class BucketAway(FileNotStored):
    """503: the bucket of a team cannot be used now."""

    def __init__(self, text: str, retry_after_s: float = _PAUSE_S) -> None:
        super().__init__(text)
        self.retry_after_s = max(1, round(retry_after_s))


class _Opened(NamedTuple):
    """The store of a team, what it was opened with, and until when that is not looked at again."""

    store: TeamStore
    origin: tuple[BucketLocation, bytes | None, bool]
    until: float


def secret_purpose(name: str) -> str:
    """Return the purpose of the credentials of a bucket, for the box that seals them."""
    return f"bucket:{name}"


class TeamBuckets:
    """The file stores of teams. Thread-safe.

    Args:
        box: opens credentials.
        clock: the time now, ms UTC.
        monotonic: seconds that only grow.
        folders: those below which a bucket may be a folder: whoever may add buckets may not write elsewhere.
        fetcher: what may be reached; None: everything, for commands of who runs the server.
    """

    def __init__(
        self,
        table: BucketTable,
        box: SecretBox,
        clock: Callable[[], int],
        monotonic: Callable[[], float],
        folders: Collection[str] = (),
        fetcher: Fetcher | None = None,
    ) -> None:
        self._table = table
        self._box = box
        self._clock = clock
        self._monotonic = monotonic
        self._folders = [os.path.realpath(folder) for folder in folders]
        self._fetcher = fetcher
        self._proxy: ForwardProxy | None = None
        self._stores: dict[int, _Opened] = {}
        self._changes = 0
        self._states: dict[int, BucketState] = {}
        self._lock = threading.Lock()

    def of(self, team_id: int) -> TeamStore:
        """Return the store of a team.

        Raises:
            BucketAway: it cannot be opened.
        """
        with self._lock:
            opened, changes = self._stores.get(team_id), self._changes
        now = self._monotonic()
        if opened is not None and now < opened.until:
            return opened.store
        row = self._table.of_team(team_id)
        if row is None:
            raise BucketAway("the bucket of the team is not known to this server")
        sealed = self._table.sealed_secret(row.id)
        origin = row.location, sealed, row.signs
        state = self._state_of(row)
        with state.using():
            location = self._opened_location(row, sealed).below(str(team_id))
            if opened is None or opened.origin != origin:
                store = TeamStore(open_store(location), state, row.signs)
                opened = _Opened(store, origin, now)
        with self._lock:
            if changes == self._changes:  # else it was perhaps read before a change
                self._stores[team_id] = opened._replace(until=now + _READ_AGAIN_S)
        return opened.store

    def read_again(self, bucket_id: int) -> None:
        """Use the credentials that a bucket has now; what is being sent goes on with those before."""
        with self._lock:
            self._stores.clear()
            self._changes += 1
            state = self._states.get(bucket_id)
        if state is not None:
            state.end_pause()

    def _state_of(self, row: BucketRow) -> BucketState:
        with self._lock:
            new = BucketState(row.id, row.name, self._note, self._monotonic, row.away_ms is not None)
            return self._states.setdefault(row.id, new)

    def _note(self, bucket_id: int, reason: str | None) -> None:
        self._table.note_away(bucket_id, reason, self._clock())

    def location(self, row: BucketRow) -> BucketLocation:
        """Return where a bucket is, with its credentials.

        Raises:
            OSError: they cannot be decrypted.
        """
        return self._opened_location(row, self._table.sealed_secret(row.id))

    def _opened_location(self, row: BucketRow, sealed: bytes | None) -> BucketLocation:
        try:
            location = self.guarded(row.location)
        except ValueError as error:
            raise OSError(str(error)) from None
        if sealed is None:
            return location
        try:
            secret = json.loads(self._box.open(sealed, secret_purpose(row.name)))
        except SecretUnreadable as error:
            raise OSError(f"the credentials of the bucket {row.name!r} cannot be read: {error}") from None
        return location.with_secret(secret)

    def guarded(self, location: BucketLocation) -> BucketLocation:
        """Return a location whose own endpoint is reached as other sites are: at allowed addresses only.

        Its requests go through a proxy of this process, which checks each connection: the library for buckets
        looks names up itself, and follows redirects.

        Raises:
            ValueError: the endpoint must not be reached.
        """
        if not location.endpoint or self._fetcher is None:
            return location
        try:
            self._fetcher.check_addresses(location.endpoint, _LOOK_UP_S)
        except (Blocked, FetchFailed) as error:
            raise ValueError(f"the server may not reach the endpoint {location.endpoint}: {error}") from None
        with self._lock:
            if self._proxy is None:
                self._proxy = ForwardProxy(
                    self._fetcher, max_bytes=math.inf, max_connections=_CONNECTIONS, has_http=True
                )
                self._proxy.__enter__()
            return replace(location, proxy=self._proxy.url)

    def close(self) -> None:
        """End the connections to endpoints."""
        with self._lock:
            if self._proxy is not None:
                self._proxy.__exit__()

    def seal(self, name: str, secret: dict[str, str]) -> bytes | None:
        """Return credentials as they are stored; None: there are none."""
        return self._box.seal(json.dumps(secret).encode(), secret_purpose(name)) if secret else None

    def check_folder(self, folder: str) -> None:
        """Raise ValueError unless a bucket may be in a folder."""
        real = os.path.realpath(folder)
        if not any(real == root or real.startswith(root.rstrip("/") + "/") for root in self._folders):
            allowed = " or ".join(self._folders) or "no folder: start it with --team-folders PATH"
            raise ValueError(f"this server keeps files of teams below {allowed}")

    def try_bucket(self, row: BucketRow, origin: str) -> list[CheckStep]:
        """Return the steps of a check of a bucket."""
        try:
            location = self.location(row)
        except OSError as error:
            return [CheckStep("open", "failed", str(error), 0)]
        steps = check_bucket(location, origin)
        if all(step.state != "failed" for step in steps):
            self.read_again(row.id)
        return steps

    def check(self) -> None:
        """Try buckets that failed again, and notify administrators of teams about those that still do."""
        for row in self._table.all():
            if row.away_ms is None:
                continue
            try:
                location = self.location(row)
                with self._state_of(row).using():
                    next(iter(open_store(location).contents()), None)
            except (BucketAway, OSError) as error:
                log.warning(
                    "a bucket cannot be used", extra={"fields": {"bucket": row.name, "reason": str(error)}}
                )
        self._table.report_away(self._clock())


class BucketState:
    """Whether a bucket can be used, and by how many at the same time. Thread-safe.

    After a failure it is left alone for a while: nobody waits for it, and no thread is kept by it.

    Args:
        note: is called with the id and the reason when it begins to fail, and with None when it works again.
        was_away: whether it failed before this server started.
    """

    def __init__(
        self,
        bucket_id: int,
        name: str,
        note: Callable[[int, str | None], None],
        monotonic: Callable[[], float],
        was_away: bool,
    ) -> None:
        self._id = bucket_id
        self._name = name
        self._note = note
        self._monotonic = monotonic
        self._failing = was_away
        self._reason = ""
        self._until = float("-inf")
        self._slots = threading.Semaphore(AT_ONCE)
        self._lock = threading.Lock()

    @contextmanager
    def using(self) -> Iterator[None]:
        """While the bucket is used.

        Raises:
            BucketAway: it failed a moment ago or now, or too many use it.
            FileNotFoundError: what was looked for is not there.
        """
        wait_s = self._until - self._monotonic()
        if wait_s > 0:
            raise BucketAway(f"the bucket {self._name!r} of the team cannot be used: {self._reason}", wait_s)
        if not self._slots.acquire(blocking=False):
            raise BucketAway(f"the bucket {self._name!r} of the team is busy", 2)
        try:
            yield
        except FileNotFoundError:
            self._note_end(None)
            raise
        except OSError as error:
            reason = error.strerror or str(error)
            self._note_end(reason)
            raise BucketAway(f"the bucket {self._name!r} of the team cannot be used: {reason}") from error
        finally:
            self._slots.release()
        self._note_end(None)

    def end_pause(self) -> None:
        """Let it be used at once: a check has found that it works."""
        self._until = float("-inf")

    def _note_end(self, reason: str | None) -> None:
        with self._lock:
            changes = (reason is not None) != self._failing
            self._failing = reason is not None
            if reason is not None:
                self._reason, self._until = reason, self._monotonic() + _PAUSE_S
        if changes:
            self._note(self._id, reason)


class TeamStore:
    """A `FileStore` of a team in its bucket. What fails there raises BucketAway.

    Args:
        signs: whether clients get signed addresses.
    """

    def __init__(self, store: FileStore, state: BucketState, signs: bool) -> None:
        self._store = store
        self._state = state
        self._signs = signs

    def take(self, sha256: str, path: str) -> None:
        """Keep the content of a file on this machine, which no longer exists afterwards."""
        with self._state.using():
            self._store.take(sha256, path)

    def open(self, sha256: str) -> BinaryIO:
        """Open a content at its beginning; the caller closes it."""
        with self._state.using():
            return self._store.open(sha256)

    def remove(self, digests: Collection[str]) -> None:
        """Remove those of some contents that are there."""
        if digests:
            with self._state.using():
                self._store.remove(digests)

    def contents(self) -> Iterator[StoredContent]:
        """Iterate over all contents, in any order."""
        with self._state.using():
            yield from self._store.contents()

    def signed_address(self, sha256: str, method: Method, seconds: int) -> str | None:
        """Return an address where anybody may read or write one content for a time; None: there are none."""
        if not self._signs:
            return None
        with self._state.using():
            return self._store.signed_address(sha256, method, seconds)
