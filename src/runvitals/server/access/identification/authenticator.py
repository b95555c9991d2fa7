"""Finds out who makes a request. Credentials are looked up in threads, and the results are cached."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Final, NamedTuple, NoReturn, TypeVar

import anyio
import anyio.to_thread
from starlette.types import Scope

from runvitals.server.access.decisions.decision_cache import Missing
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.identification.credentials import MAX_SECRET, credential_of
from runvitals.server.access.identification.identity import Credential, CredentialKind, Identity
from runvitals.server.access.identification.request_ids import request_id_of
from runvitals.server.access.principals import Anonymous
from runvitals.server.access.requester import Requester, Via
from runvitals.server.accounts.attempt_limits import WRONG_KEYS, FailedAttempts, network_of
from runvitals.server.http.request_errors import HttpRejection, unavailable
from runvitals.store.errors import MetadataStoreError

KNOWN_WHILE_AWAY_S: Final = 3600.0
"""How long keys that were valid are accepted for known runs while the metadata store is away."""
_MAX_VERIFIED = 10_000
_IN_USE_S = 60.0
_VERIFIED_AT_ONCE = 50
_MAX_LOOKUPS = 4
_MAX_WAITING = 200
_MAX_AGENT = 200
_VIA: Final[dict[CredentialKind, Via]] = {"key": "key", "session": "session", "link": "link"}
_WRONG: Final[dict[CredentialKind, str]] = {
    "key": "this key is not valid: it was revoked, has expired or never existed",
    "link": "this link is not valid: it was revoked, has expired or never existed",
}

T = TypeVar("T")


class _Verified(NamedTuple):
    """The owner of a key, by the rights of a generation, when the key was looked up last."""

    owner: Identity
    generation: int | None
    looked_up_s: float


class Authenticator:
    """Turns the headers of a request into a `Requester`.

    Only the first request with a credential reads the database; from then on its owner is known, until the
    credential is `directory.KEY_LIFE_MS` old or rights change.

    Args:
        monotonic: seconds that only grow.
    """

    def __init__(self, directory: Directory, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._monotonic = monotonic
        self._verified: dict[str, _Verified] = {}
        self._all_verified: int | None = None
        directory.after_check = self._verify_again
        self._lookups = anyio.CapacityLimiter(_MAX_LOOKUPS)
        self._wrong_keys = FailedAttempts(WRONG_KEYS, monotonic)

    @property
    def accounts_exist(self) -> bool:
        """Whether requests need an account or a key."""
        return self._directory.accounts_exist

    @property
    def generation(self) -> int | None:
        """A number that every change of rights raises."""
        return self._directory.generation

    async def requester(self, scope: Scope, while_away: bool = False) -> Requester:
        """Return who makes a request; a visitor if it has no credential, or a session that has ended.

        Args:
            while_away: accept a key that was valid a while ago if the metadata store is away.

        Raises:
            HttpRejection: 401 for an invalid key or link; 429 after too many invalid keys from one network;
                503 if it cannot be checked.
        """
        ip, agent = client_of(scope), _header(scope, b"user-agent")[:_MAX_AGENT]
        visitor = Requester(Anonymous(), ip=ip, agent=agent, request_id=request_id_of(scope))
        credential = credential_of(scope["headers"], scope["scheme"] == "https")
        if credential is None:
            return visitor
        identity = await (self._identify_key if while_away else self._identify)(credential)
        if identity is None:
            if credential.kind == "session":
                return visitor
            await self._reject(credential, ip)
        return Requester(
            identity.principal,
            identity.name,
            _VIA[credential.kind],
            identity.session,
            identity.key_public_id,
            ip,
            agent,
            visitor.request_id,
        )

    def known_key(self, headers: Iterable[tuple[bytes, bytes]]) -> Identity | None:
        """Return the owner of a request's key if they are known without a look-up in the database.

        While the metadata store is away, the owner of before.
        """
        credential = credential_of(headers, secure=True)
        if credential is None or credential.kind != "key" or len(credential.secret) > MAX_SECRET:
            return None
        owner = self._directory.known(credential)
        if isinstance(owner, Missing):
            return self._verified_before(credential)
        return self._note(credential, owner)

    def _note(self, credential: Credential, owner: Identity | None) -> Identity | None:
        """Note the owner of a key, as it is now."""
        if owner is None:
            self._verified.pop(credential.secret, None)
        else:
            if len(self._verified) >= _MAX_VERIFIED:
                self._verified.clear()
            self._verified[credential.secret] = _Verified(
                owner, self._directory.generation, self._monotonic()
            )
        return owner

    def _verify_again(self) -> None:
        """Look up keys in use again after a change of rights.

        The metadata store may go away before they are used the next time.
        """
        generation = self._directory.generation
        if generation == self._all_verified:
            return
        since_s = self._monotonic() - _IN_USE_S
        old = [
            secret
            for secret, verified in list(self._verified.items())
            if verified.generation != generation and verified.looked_up_s >= since_s
        ]
        for secret in old[:_VERIFIED_AT_ONCE]:
            credential = Credential("key", secret)
            self._note(credential, self._directory.identify(credential))
        if len(old) <= _VERIFIED_AT_ONCE:
            self._all_verified = generation

    def _verified_before(self, credential: Credential) -> Identity | None:
        """Return the owner that a key had before the metadata store went away.

        None if it is there, or away for too long.
        """
        verified = self._verified.get(credential.secret)
        if verified is None or not self._directory.away_s():
            return None
        age_s = self._monotonic() - verified.looked_up_s
        if age_s > KNOWN_WHILE_AWAY_S or verified.generation != self._directory.generation:
            return None
        return None if self._directory.has_expired(verified.owner) else verified.owner

    async def _identify_key(self, credential: Credential) -> Identity | None:
        """As `_identify`; a key that cannot be looked up belongs to its owner of before."""
        if credential.kind != "key":
            return await self._identify(credential)
        before = self._verified_before(credential)
        if before is not None:
            return before
        try:
            owner = await self._identify(credential)
        except HttpRejection:
            before = self._verified_before(credential)  # now it is known that the database is away
            if before is None:
                raise
            return before
        return self._note(credential, owner)

    async def _identify(self, credential: Credential) -> Identity | None:
        if not credential.secret or len(credential.secret) > MAX_SECRET:
            return None
        identity = self._directory.known(credential)
        if isinstance(identity, Missing):
            return await self._look_up(partial(self._directory.identify, credential))
        return identity

    async def _look_up(self, read: Callable[[], T]) -> T:
        if self._lookups.statistics().tasks_waiting >= _MAX_WAITING:
            raise unavailable("too many keys and sessions are being checked: try again later")
        try:
            return await anyio.to_thread.run_sync(read, limiter=self._lookups)
        except MetadataStoreError as error:
            raise unavailable(
                "keys and sessions cannot be checked: see /readyz and the server log"
            ) from error

    async def _reject(self, credential: Credential, ip: str) -> NoReturn:
        network = network_of(ip)
        wait_s = self._wrong_keys.wait_s(network)
        if credential.kind == "link" and wait_s <= 0 and len(credential.secret) <= MAX_SECRET:
            why = await self._look_up(partial(self._directory.link_problem, credential.secret))
            if why is not None:  # whoever has the secret did not guess it
                raise HttpRejection(401, why)
        self._wrong_keys.note_failure(network)
        if wait_s > 0:
            text = "too many invalid keys came from your network: try again later"
            raise HttpRejection(429, text, retry_after_s=max(1, round(wait_s)))
        raise HttpRejection(401, _WRONG[credential.kind])


def client_of(scope: Scope) -> str:
    """Return the client's address, also behind a trusted proxy; "" if that is no address."""
    client = scope.get("client")
    return _address(str(client[0])) if client else ""


@lru_cache(maxsize=1024)
def _address(text: str) -> str:
    try:
        return "" if "%" in text else str(ipaddress.ip_address(text))
    except ValueError:
        return ""


def is_loopback_client(scope: Scope) -> bool:
    """Return whether a request comes from a program on this machine, and not through a proxy."""
    try:
        return ipaddress.ip_address(client_of(scope)).is_loopback
    except ValueError:
        return False


def _header(scope: Scope, header: bytes) -> str:
    for name, value in scope["headers"]:
        if name == header:
            text: str = value.decode("latin-1")
            return text
    return ""
