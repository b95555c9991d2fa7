"""Whether a request may send an envelope, and to which team's run: the interface to the rights of accounts.

Without accounts every envelope is admitted, and there is one set of run ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from starlette.types import Scope

from runvitals.server.access.principals import Principal
from runvitals.server.ingest.envelope import Envelope
from runvitals.server.runs.storage.writer_registration import UNKNOWN_SENDER, Sender


@dataclass(frozen=True, slots=True)
class AdmittedEnvelope:
    """An envelope that may be stored.

    Args:
        sender: the entity of its run, and whose a new run is.
        ignored_attribution: why the user whom a service account named is not the author of a new run.
        project: of a new run whose envelope names none, though the request or its records do.
        principal: the owner of the key that sends it, with the key's limits; None without accounts.
    """

    sender: Sender
    ignored_attribution: str | None = None
    project: str | None = None
    principal: Principal | None = None


class SentEnvelope(NamedTuple):
    """An envelope, and the projects to which its records move the run."""

    envelope: Envelope
    projects: tuple[str, ...] = ()


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

    def known(self, headers: Iterable[tuple[bytes, bytes]]) -> IngestRights | None:
        """Return the rights of a request, or None if that takes a look-up in the database."""

    def of_request(self, scope: Scope) -> IngestRights:
        """Return the rights of an authenticated request."""


_ADMITTED = AdmittedEnvelope(UNKNOWN_SENDER)


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

    def known(self, headers: Iterable[tuple[bytes, bytes]]) -> IngestRights | None:
        """Return `UNLIMITED`."""
        return UNLIMITED

    def of_request(self, scope: Scope) -> IngestRights:
        """Return `UNLIMITED`."""
        return UNLIMITED
