"""What the sender of a request may send: with accounts what its key may, without accounts everything."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

import anyio
from starlette.types import Scope

from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.enforcement.refusals import Refusals
from runvitals.server.access.principals import Operator, Principal, ServiceAccount, User
from runvitals.server.access.requester import SCOPE_KEY, Requester
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.ingest.envelope import AdmittedEnvelope, Envelope, SentEnvelope
from runvitals.server.ingest.envelope_decisions import Attribution, KeyIngestRights
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.writer_registration import UNKNOWN_SENDER

_MAX_KEYS: Final = 10_000
_LIFE_S: Final = 30.0
_RECENT_S: Final = 0.5
"""How long the same headers are taken as the same key: it saves 4 µs of a request."""
_THREADS: Final = 4
_MAX_NAME: Final = 256
_USERNAME: Final = (b"x-runvitals-username", b"x-wandb-username")
_ADDRESS: Final = (b"x-runvitals-user-email", b"x-wandb-user-email")
_SENDER: Final = frozenset((b"authorization", *_USERNAME, *_ADDRESS))
"""The headers that say who sends a request."""
_NOBODY: Final = Attribution()
Headers = Iterable[tuple[bytes, bytes]]
_ADMITTED: Final = AdmittedEnvelope(UNKNOWN_SENDER)


class IngestRights(Protocol):
    """The rights of one key to send data."""

    def known(self, envelope: Envelope) -> AdmittedEnvelope | None:
        """The envelope, if it is known to be admitted without a look-up in the database. Thread-safe."""

    async def admit(self, envelopes: Sequence[SentEnvelope]) -> list[AdmittedEnvelope]:
        """Admit the envelopes of a request, all or none.

        Raises:
            HttpRejection: 403 with the index of the first one that is not admitted; 503 if it cannot be
                decided.
        """


class IngestRightsSource(Protocol):
    """Knows what the key of each request may send."""

    def known(self, headers: Headers) -> IngestRights | None:
        """Return the rights of a request, or None if that takes a look-up in the database."""

    def of_request(self, scope: Scope) -> IngestRights:
        """Return the rights of an authenticated request."""


class Unlimited:
    """An `IngestRights` that admits everything: there are no accounts."""

    def known(self, envelope: Envelope) -> AdmittedEnvelope | None:
        """Return the same for each envelope: all is admitted."""
        return _ADMITTED

    async def admit(self, envelopes: Sequence[SentEnvelope]) -> list[AdmittedEnvelope]:
        """Admit all envelopes."""
        return [_ADMITTED] * len(envelopes)


UNLIMITED = Unlimited()


class WithoutAccounts:
    """The `IngestRightsSource` of a server without accounts."""

    def known(self, headers: Headers) -> IngestRights | None:
        """Return `UNLIMITED`."""
        return UNLIMITED

    def of_request(self, scope: Scope) -> IngestRights:
        """Return `UNLIMITED`."""
        return UNLIMITED


class KeyOwner(Protocol):
    """The owner of a valid key."""

    @property
    def principal(self) -> Principal:
        """Whose key it is."""

    @property
    def name(self) -> str:
        """The name of the owner, for error messages."""


class _CachedRights(NamedTuple):
    rights: KeyIngestRights
    generation: int | None
    until_s: float


class IngestRightsCache:
    """Keeps what each key may send, until rights change, and for at most `_LIFE_S`: a run may be moved.

    Args:
        known_owner: the owner of the key in the headers of a request, if it is known without a look-up in the
            database.
        accounts_exist: whether requests need the key of an account.
        clock: the time now, ms UTC.
        refusals: records keys that are used for what they do not allow.
        monotonic: seconds that only grow.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        directory: Directory,
        known_owner: Callable[[Headers], KeyOwner | None],
        accounts_exist: Callable[[], bool],
        clock: Callable[[], int],
        refusals: Refusals,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._refusals = refusals
        self._metadata_store = metadata_store
        self._directory = directory
        self._known_owner = known_owner
        self._accounts_exist = accounts_exist
        self._clock = clock
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._monotonic = monotonic
        self._cached: dict[Hashable, _CachedRights] = {}
        self._recent: dict[tuple[tuple[bytes, bytes], ...], _CachedRights] = {}

    def known(self, headers: Headers) -> IngestRights | None:
        """Return what a request may send, if it is known without a look-up in the database."""
        if not self._accounts_exist():
            return UNLIMITED
        sent = tuple([header for header in headers if header[0] in _SENDER])
        recent, now_s = self._recent.get(sent), self._monotonic()
        if recent is not None and recent.generation == self._directory.generation and now_s < recent.until_s:
            return recent.rights
        owner = self._known_owner(headers)
        if owner is None or not isinstance(owner.principal, (User, ServiceAccount)):
            return None
        if len(self._recent) >= _MAX_KEYS:
            self._recent.clear()
        rights = self._of(owner.principal, owner.name, headers)
        self._recent[sent] = _CachedRights(rights, self._directory.generation, now_s + _RECENT_S)
        return rights

    def of_request(self, scope: Scope) -> IngestRights:
        """Return what an authenticated request may send.

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

    def _of(self, principal: User | ServiceAccount, name: str, headers: Headers) -> KeyIngestRights:
        attribution = _attribution(headers) if isinstance(principal, ServiceAccount) else _NOBODY
        key = (type(principal), principal.id, principal.key, attribution)
        generation, now_s = self._directory.generation, self._monotonic()
        cached = self._cached.get(key)
        if (
            cached is not None
            and cached.generation == generation
            and (now_s < cached.until_s or self._directory.away_s())
            # The key may have been looked up anew, after a membership expired.
            and (cached.rights.principal is principal or cached.rights.principal == principal)
        ):
            return cached.rights
        if len(self._cached) >= _MAX_KEYS:
            self._cached.clear()
        before = cached.rights if cached is not None and cached.rights.principal == principal else None
        rights = KeyIngestRights(
            principal,
            name,
            attribution,
            self._metadata_store,
            self._directory,
            self._clock,
            self._threads,
            self._refusals,
            {} if before is None else before.runs,
        )
        self._cached[key] = _CachedRights(rights, generation, now_s + _LIFE_S)
        return rights


def _key_required() -> HttpRejection:
    return HttpRejection(401, "a key is required: send `Authorization: Bearer rvt-…`")


def _attribution(headers: Headers) -> Attribution:
    """Return the user whom a request names. Our headers take precedence over those of wandb's clients."""
    values: dict[bytes, str] = {}
    for name, value in headers:
        if name in _USERNAME or name in _ADDRESS:
            values[name] = value.decode("utf-8", "replace").strip()[:_MAX_NAME]
    return Attribution(_first(values, _USERNAME), _first(values, _ADDRESS))


def _first(values: dict[bytes, str], names: tuple[bytes, ...]) -> str:
    return next((values[name] for name in names if values.get(name)), "")
