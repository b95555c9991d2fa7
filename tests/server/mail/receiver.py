"""A mail server on 127.0.0.1 that keeps what it receives."""

from __future__ import annotations

import asyncio
import email
import email.policy
import ssl
import threading
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.patience import PATIENCE_S

USER, PASSWORD = b"runs", b"correct horse"


@dataclass
class Handler:
    """Answers of the server. `refuse`: by recipient, or "*" for what is refused after the text."""

    received: list[EmailMessage] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    refuse: dict[str, str] = field(default_factory=dict)
    arrived: threading.Condition = field(default_factory=threading.Condition)

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refuse:
            return self.refuse[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if "*" in self.refuse:
            return self.refuse["*"]
        parsed = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(parsed, EmailMessage)
        with self.arrived:
            self.received.append(parsed)
            self.encrypted.append(session.ssl is not None)
            self.arrived.notify_all()
        return "250 OK"


def _check(server: SMTP, session: Session, envelope: Envelope, mechanism: str, login: object) -> AuthResult:
    right = isinstance(login, LoginPassword) and (login.login, login.password) == (USER, PASSWORD)
    return AuthResult(success=right, handled=False)


class _RecordedSmtp(SMTP):
    """Adds its transport to a list, so that the receiver can close those that have no task yet."""

    def __init__(self, transports: list[asyncio.Transport], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._transports = transports

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transports.append(transport)
        super().connection_made(transport)


class Receiver:
    """Runs in a thread while `with` lasts.

    Args:
        starttls, tls: the context for encryption after STARTTLS, or from the start.
        login: whether senders must log in.
    """

    def __init__(
        self,
        starttls: ssl.SSLContext | None = None,
        tls: ssl.SSLContext | None = None,
        login: bool = False,
        port: int = 0,
    ) -> None:
        self.handler = Handler()
        self.port = port
        self._starttls, self._tls, self._login = starttls, tls, login
        self._transports: list[asyncio.Transport] = []

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}?tls=none"

    @property
    def received(self) -> list[EmailMessage]:
        return self.handler.received

    def wait_for(self, number: int) -> None:
        """Wait until so many messages have arrived."""
        with self.handler.arrived:
            assert self.handler.arrived.wait_for(lambda: len(self.received) >= number, PATIENCE_S)

    def __enter__(self) -> Receiver:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(PATIENCE_S)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        return await self._loop.create_server(self._smtp, "127.0.0.1", self.port, ssl=self._tls)

    async def _stop(self) -> None:
        # asyncio never closes a connection that it accepted just before its server was closed, nor one whose
        # task is cancelled before it began: https://github.com/python/cpython/issues/109564
        for listener in self._server.sockets:
            self._loop.remove_reader(listener.fileno())
        for _ in range(3):
            await asyncio.sleep(0)
        self._server.close()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        for transport in self._transports:
            transport.abort()
        await asyncio.sleep(0)

    def _smtp(self) -> SMTP:
        return _RecordedSmtp(
            self._transports,
            self.handler,
            hostname="receiver.example",
            loop=self._loop,
            tls_context=self._starttls,
            require_starttls=self._starttls is not None,
            authenticator=_check if self._login else None,
            auth_required=self._login,
            auth_require_tls=self._tls is None,
        )
