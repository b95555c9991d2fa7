"""Who sends envelopes, and what they may send: the `IngestAccess` of a server that may have accounts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Final, Protocol

import anyio
from starlette.types import Scope

from runvitals.accounts.directory import Directory
from runvitals.accounts.principals import Operator, Principal, ServiceAccount, User
from runvitals.server.access.envelope_rights import Attribution, KeyRights
from runvitals.server.access.requester import SCOPE_KEY, Requester
from runvitals.server.ingest.envelope_access import UNLIMITED, EnvelopeAccess
from runvitals.server.ingest.errors import HttpRejection
from runvitals.store.metadata import MetadataStore

_MAX_KEYS: Final = 10_000
_THREADS: Final = 4
_MAX_NAME: Final = 256
_USERNAME: Final = (b"x-runvitals-username", b"x-wandb-username")
_ADDRESS: Final = (b"x-runvitals-user-email", b"x-wandb-user-email")
_NOBODY: Final = Attribution()
Headers = Iterable[tuple[bytes, bytes]]


class KeyOwner(Protocol):
    """The owner of a valid key."""

    @property
    def principal(self) -> Principal: ...
    @property
    def name(self) -> str: ...


class AccountIngestAccess:
    """Keeps what each key may send, until rights change or the key is looked up anew.

    Args:
        known_owner: the owner of the key in the headers of a request, if it is known without a look-up in the
            database. It returns the same principal until rights may have changed.
        accounts_exist: whether requests need the key of an account.
        clock: the time now, ms UTC.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        directory: Directory,
        known_owner: Callable[[Headers], KeyOwner | None],
        accounts_exist: Callable[[], bool],
        clock: Callable[[], int],
    ) -> None:
        self._metadata_store = metadata_store
        self._directory = directory
        self._known_owner = known_owner
        self._accounts_exist = accounts_exist
        self._clock = clock
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._rights: dict[Hashable, KeyRights] = {}

    def known(self, headers: Headers) -> EnvelopeAccess | None:
        """What a request may send, if it is known without a look-up in the database."""
        if not self._accounts_exist():
            return UNLIMITED
        owner = self._known_owner(headers)
        if owner is None or not isinstance(owner.principal, (User, ServiceAccount)):
            return None
        return self._of(owner.principal, owner.name, headers)

    def of_request(self, scope: Scope) -> EnvelopeAccess:
        """What an authenticated request may send.

        Raises:
            HttpRejection: 401 if it came without a key.
        """
        requester: Requester | None = scope.get(SCOPE_KEY)
        if requester is None or isinstance(requester.principal, Operator):
            if not self._accounts_exist():
                return UNLIMITED
            raise _key_required()
        if not isinstance(requester.principal, (User, ServiceAccount)):
            raise _key_required()
        return self._of(requester.principal, requester.name, scope["headers"])

    def _of(self, principal: User | ServiceAccount, name: str, headers: Headers) -> KeyRights:
        attribution = _attribution(headers) if isinstance(principal, ServiceAccount) else _NOBODY
        key = (type(principal), principal.id, principal.key, attribution)
        rights = self._rights.get(key)
        # Another principal of the same key: its rights were read again.
        if rights is None or rights.principal is not principal:
            if len(self._rights) >= _MAX_KEYS:
                self._rights.clear()
            rights = self._rights[key] = KeyRights(
                principal,
                name,
                attribution,
                self._metadata_store,
                self._directory,
                self._clock,
                self._threads,
            )
        return rights


def _key_required() -> HttpRejection:
    return HttpRejection(401, "a key is required: send `Authorization: Bearer rvt-…`")


def _attribution(headers: Headers) -> Attribution:
    """The user whom a request names. Our headers take precedence over those of wandb's clients."""
    found: dict[bytes, str] = {}
    for name, value in headers:
        if name in _USERNAME or name in _ADDRESS:
            found[name] = value.decode("utf-8", "replace").strip()[:_MAX_NAME]
    return Attribution(_first(found, _USERNAME), _first(found, _ADDRESS))


def _first(found: dict[bytes, str], names: tuple[bytes, ...]) -> str:
    return next((found[name] for name in names if found.get(name)), "")
