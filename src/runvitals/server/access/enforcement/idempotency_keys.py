"""Changing requests that a client may safely repeat: those with the header `Idempotency-Key`.

The first request of a key is carried out, and its response is kept, encrypted, for a day. The same request
again gets that response. A row in the metadata store decides which one is the first, for all processes.
"""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runvitals.server.access.identification.authentication import CHECKS_KEY
from runvitals.server.access.principals import ServiceAccount, User
from runvitals.server.access.requester import SCOPE_KEY, Requester
from runvitals.server.access.storage.idempotent_requests import (
    EarlierRequest,
    IdempotentRequestTable,
    RequestLease,
)
from runvitals.server.database.secret_box import SecretBox, SecretUnreadable
from runvitals.server.http.buffered_body import rejection_response, replayed
from runvitals.server.http.request_errors import HttpRejection, unavailable
from runvitals.store.errors import MetadataStoreError

log = logging.getLogger("runvitals.server")

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
METHODS: Final = ("POST", "PATCH")
"""PUT and DELETE are idempotent by nature."""
PREFIX: Final = "/api/v1/"
OF_SESSIONS: Final = "/api/v1/auth/"
"""Its calls change the session that they come with, which a repeated response would not do."""
MAX_KEY: Final = 255
MAX_RESPONSE: Final = 128 * 1024
"""The longest response that is kept, with its headers."""
RETRY_S: Final = 2
_MAX_AT_ONCE: Final = 4
_DECIDED_AGAIN: Final = (401, 403, 404, 408, 428, 429)
"""Refusals that may be different a moment later: nothing was changed, and the request may be repeated."""
_NOT_KEPT_HEADERS: Final = (b"content-length", b"set-cookie")
_PARAMETER: Final = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "A new random text for each request, such as a UUID. The same request again with the same "
    f"key gets the first response again, with the header `{REPLAYED}: true`, for 24 hours.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": "^[ -~]+$"},
}

Headers = list[tuple[bytes, bytes]]
T = TypeVar("T")


class IdempotencyKeys:
    """Middleware that repeats the response to a request that was carried out before.

    It is behind the authentication, and needs a body that was read completely.

    Args:
        box: the same for all processes of a server.
        clock: the time now, ms UTC.
    """

    def __init__(
        self, app: ASGIApp, requests: IdempotentRequestTable, box: SecretBox, clock: Callable[[], int]
    ) -> None:
        self._app = app
        self._requests = requests
        self._box = box
        self._digest_key = box.derived_key("idempotency keys")
        self._clock = clock
        self._threads = anyio.CapacityLimiter(_MAX_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry out a request, or repeat the response that its key has already."""
        keys = _keys_of(scope)
        requester = scope.get(SCOPE_KEY) if keys else None
        if requester is None or not isinstance(requester.principal, (User, ServiceAccount)):
            await self._app(scope, receive, send)
            return
        try:
            await self._carry_out_once(_checked_key(keys), requester, scope, receive, send)
        except HttpRejection as error:
            await rejection_response(error, scope["path"])(scope, receive, send)

    async def _carry_out_once(
        self, key: bytes, requester: Requester, scope: Scope, receive: Receive, send: Send
    ) -> None:
        body = await _body(receive)
        if body is None:
            return
        principal, credential = _who(requester)
        digest = self._digest(credential.encode(), key)
        address = (scope["method"].encode(), scope["path"].encode(), scope["query_string"])
        request = self._digest(*address, body)
        try:
            begun = await self._in_thread(
                partial(self._requests.begin, digest, principal, request, self._clock())
            )
        except MetadataStoreError as error:
            raise unavailable("idempotency keys cannot be checked: see the server log") from error
        if isinstance(begun, EarlierRequest):
            await self._replay(digest, request, begun, scope, send)
            return
        response = _HeldResponse(partial(self._keep, begun), send)
        try:
            await self._app(scope, replayed(body, receive), response.send)
        except Exception:
            if not response.complete:
                await self._keep(begun, 500, [], b"")
            raise

    async def _replay(
        self, digest: bytes, request: bytes, earlier: EarlierRequest, scope: Scope, send: Send
    ) -> None:
        """Send the response that was kept for an earlier request.

        Raises:
            HttpRejection: 422 if the key belongs to another request; 409 if that request is not finished, or
                its response was not kept.
        """
        if not hmac.compare_digest(earlier.request, request):
            raise HttpRejection(
                422, f"{HEADER}: this key was sent with another request; expected a new key for each request"
            )
        if earlier.status is None:
            raise HttpRejection(
                409, f"{HEADER}: the request with this key is being carried out", retry_after_s=RETRY_S
            )
        try:
            if earlier.answer is None:
                raise SecretUnreadable("it was too long to be kept")
            headers, body = _unpack(self._box.open(earlier.answer, _purpose(digest)))
        except SecretUnreadable as error:
            text = f"{HEADER}: the request with this key was carried out, with status {earlier.status}"
            raise HttpRejection(409, f"{text}; its response cannot be repeated: {error}") from None
        if CHECKS_KEY in scope:
            scope[CHECKS_KEY].append(_checked_before)
        length = (b"content-length", str(len(body)).encode())
        headers += [length, (REPLAYED.lower().encode(), b"true")]
        await send({"type": "http.response.start", "status": earlier.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _keep(self, attempt: RequestLease, status: int, headers: Headers, body: bytes) -> None:
        """Keep a response, or let the request be carried out again."""
        if _is_kept(status, headers):
            packed = _pack(headers, body)
            fits = len(packed) <= MAX_RESPONSE
            sealed = self._box.seal(packed, _purpose(attempt.digest)) if fits else None
            write = partial(self._requests.finish, attempt, status, sealed)
        else:
            write = partial(self._requests.forget, attempt)
        try:
            with anyio.CancelScope(shield=True):
                await self._in_thread(write)
        except MetadataStoreError as error:  # the change was made: its response is sent all the same
            log.error("the response to a request with an %s could not be kept: %s", HEADER, error)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, limiter=self._threads)

    def _digest(self, *parts: bytes) -> bytes:
        """Return a keyed digest: from a plain one, a password in a body could be guessed."""
        text = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hmac.digest(self._digest_key, text, "sha256")


class _HeldResponse:
    """Holds a response back until it is complete and kept: no client has it earlier than other processes."""

    def __init__(self, keep: Callable[[int, Headers, bytes], Awaitable[None]], send: Send) -> None:
        self._keep = keep
        self._send = send
        self._start: Message = {}
        self._body = bytearray()
        self.complete = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        self._body += message.get("body", b"")
        if message.get("more_body", False):
            return
        self.complete = True
        body = bytes(self._body)
        await self._keep(self._start["status"], list(self._start.get("headers", ())), body)
        await self._send(self._start)
        await self._send({"type": "http.response.body", "body": body})


def accepts_key(method: str, path: str) -> bool:
    """Return whether a call looks at the header."""
    return method in METHODS and path.startswith(PREFIX) and not path.startswith(OF_SESSIONS)


async def _checked_before(requester: Requester) -> None:
    """The first request was checked, and came with the same credential."""


def _keys_of(scope: Scope) -> list[bytes]:
    """Return the values of the header, for a call that looks at it."""
    if scope["type"] != "http" or not accepts_key(scope["method"], scope["path"]):
        return []
    return [value for name, value in scope["headers"] if name == b"idempotency-key"]


def _checked_key(keys: list[bytes]) -> bytes:
    """Return the only key of a request, or raise HttpRejection 422."""
    key = keys[0]
    if len(keys) > 1 or not 0 < len(key) <= MAX_KEY or not all(0x20 <= byte <= 0x7E for byte in key):
        raise HttpRejection(422, f"{HEADER}: expected one key of 1 to {MAX_KEY} printable ASCII characters")
    return key


async def _body(receive: Receive) -> bytes | None:
    """Return the body; None if the client has gone."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


def _who(requester: Requester) -> tuple[str, str]:
    """Return whose request it is, and with which credential: another key of a user may be allowed less."""
    actor = requester.actor
    principal = f"{actor.kind}:{actor.id}"
    session = requester.session
    credential = f"session:{session.id}" if session is not None else f"key:{requester.key_public_id}"
    return principal, f"{principal} {credential}"


def _is_kept(status: int, headers: Headers) -> bool:
    """Return whether a response is final and begins no session, whose secret is for one browser."""
    final = 200 <= status < 300 or (400 <= status < 500 and status not in _DECIDED_AGAIN)
    return final and all(name.lower() != b"set-cookie" for name, _ in headers)


def _pack(headers: Headers, body: bytes) -> bytes:
    kept = [
        [name.decode("latin-1"), value.decode("latin-1")]
        for name, value in headers
        if name.lower() not in _NOT_KEPT_HEADERS
    ]
    return json.dumps(kept).encode() + b"\n" + body


def _unpack(packed: bytes) -> tuple[Headers, bytes]:
    line, _, body = packed.partition(b"\n")
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in json.loads(line)], body


def _purpose(digest: bytes) -> str:
    return f"response to {digest.hex()}"


def describe_header(document: dict[str, Any]) -> None:
    """Describe the header, in an OpenAPI document, of the calls that look at it."""
    for path, operations in document["paths"].items():
        for method in METHODS:
            if method.lower() in operations and accepts_key(method, path):
                operations[method.lower()].setdefault("parameters", []).append(_PARAMETER)
