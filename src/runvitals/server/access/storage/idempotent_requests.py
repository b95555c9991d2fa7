"""Requests that came with an idempotency key, and their responses: the first one of a key is carried out."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Connection, delete, func, select, update

from runvitals.model.durations import DAY_MS
from runvitals.server.database.database import StoredTable, add_rows, in_transaction
from runvitals.server.database.tables.requests import idempotent_request

KEPT_MS: Final = DAY_MS
LEASE_MS: Final = 60_000
"""A request that is not finished after this time was lost with its process: the next one is carried out."""
MAX_KEPT: Final = 1000
"""Of one principal; beyond that the oldest are forgotten."""
MAX_KEPT_BYTES: Final = 8 * 1024 * 1024
"""Of the responses of one principal; beyond that the oldest are forgotten."""
_ATTEMPT_BYTES: Final = 16
_TRIMMED_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class RequestLease:
    """The right to carry out the request of a key and to keep its response, until somebody takes it over."""

    digest: bytes
    number: bytes


@dataclass(frozen=True, slots=True)
class EarlierRequest:
    """A request with the same key.

    Attributes:
        request: its digest.
        status: of its response; None: it is being carried out.
        answer: the encrypted response; None: it was too long to be kept.
    """

    request: bytes
    status: int | None
    answer: bytes | None


class IdempotentRequestTable(StoredTable):
    """The table of these requests. `digest`: of the credential and the key."""

    def begin(
        self, digest: bytes, principal: str, request: bytes, now_ms: int
    ) -> RequestLease | EarlierRequest:
        """Return the right to carry a request out, or the request that has it or had it.

        Of several processes, one gets the right.
        """
        attempt = RequestLease(digest, secrets.token_bytes(_ATTEMPT_BYTES))
        mine = idempotent_request.c.digest == digest
        values = {
            "principal": principal,
            "request": request,
            "attempt": attempt.number,
            "started_ms": now_ms,
            "status": None,
            "answer": None,
        }

        def work(connection: Connection) -> RequestLease | EarlierRequest:
            add_rows(connection, idempotent_request, [{"digest": digest, **values}])
            row = connection.execute(select(idempotent_request).where(mine).with_for_update()).first()
            if row is None:  # it was removed a moment ago: the client asks again
                return EarlierRequest(request, None, None)
            if row.attempt == attempt.number:
                _trim(connection, principal)
                return attempt
            age_ms = now_ms - row.started_ms
            lost = row.status is None and age_ms >= LEASE_MS and row.request == request
            if age_ms < KEPT_MS and not lost:
                return EarlierRequest(row.request, row.status, row.answer)
            connection.execute(update(idempotent_request).where(mine).values(values))
            return attempt

        # The change itself is durable, and with it what was written before it.
        return self._database.write(work, durable=False)

    @in_transaction
    def finish(
        self, connection: Connection, attempt: RequestLease, status: int, response: bytes | None
    ) -> None:
        """Keep the response, unless another process has taken the request over."""
        kept = update(idempotent_request).where(*_of(attempt)).values(status=status, answer=response)
        if connection.execute(kept).rowcount and response is not None:
            _trim_answers(connection, attempt.digest)

    def forget(self, attempt: RequestLease) -> None:
        """Let the next request with the key be carried out."""
        deletion = delete(idempotent_request).where(*_of(attempt))
        self._database.write(lambda connection: connection.execute(deletion), durable=False)

    def purge(self, now_ms: int) -> int:
        """Remove what is no longer kept; returns how many."""
        past = delete(idempotent_request).where(idempotent_request.c.started_ms <= now_ms - KEPT_MS)
        return self._database.write(lambda connection: connection.execute(past).rowcount)


def _of(attempt: RequestLease) -> tuple[ColumnElement[bool], ...]:
    columns = idempotent_request.c
    return (columns.digest == attempt.digest, columns.attempt == attempt.number)


def _trim(connection: Connection, principal: str) -> None:
    """Remove the oldest requests of a principal beyond `MAX_KEPT`."""
    columns = idempotent_request.c
    oldest = (
        select(columns.digest)
        .where(columns.principal == principal)
        .order_by(columns.started_ms.desc())
        .limit(_TRIMMED_AT_ONCE)
        .offset(MAX_KEPT)
    )
    connection.execute(delete(idempotent_request).where(columns.digest.in_(oldest)))


def _trim_answers(connection: Connection, digest: bytes) -> None:
    """Remove the oldest requests of the principal of a request beyond `MAX_KEPT_BYTES`, but not itself."""
    columns = idempotent_request.c
    principal = select(columns.principal).where(columns.digest == digest).scalar_subquery()
    newer = func.sum(func.coalesce(func.length(columns.answer), 0)).over(
        order_by=(columns.started_ms.desc(), columns.digest)
    )
    sizes = select(columns.digest, newer.label("total")).where(columns.principal == principal).subquery()
    beyond = select(sizes.c.digest).where(sizes.c.total > MAX_KEPT_BYTES)
    connection.execute(delete(idempotent_request).where(columns.digest.in_(beyond), columns.digest != digest))
