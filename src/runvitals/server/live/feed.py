"""Event streams: what is new in a run is read once for all clients that follow it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from weakref import WeakKeyDictionary

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from runvitals.base import deadline
from runvitals.base.deadline import TooSlow
from runvitals.model.errors import UnknownRun
from runvitals.server.http.workers import Busy
from runvitals.server.library.run_library import OpenedRun, RunVersion, RunView
from runvitals.server.live.follower import HEARTBEAT_S, IDLE_POLL_S, POLL_S, Follower

_MAX_UNREAD = 32
"""Events that may wait for a client. A slower client is disconnected, and continues from its position when it
reconnects.
"""
CHECK_INTERVAL_S = 15.0
"""How often a run is read even if nothing arrived for it: its state may have become lost."""
_DELETED = b"event: deleted\ndata: {}\n\n"
log = logging.getLogger("runvitals.server")
_Events = MemoryObjectSendStream[bytes]


class RunFeed:
    """The events of one run, and the clients that receive them."""

    def __init__(self, opened: OpenedRun, closing: anyio.Event) -> None:
        self._opened = opened
        self._closing = closing
        self._clients: set[_Events] = set()
        self._lock = anyio.Lock()
        self._shared: Follower | None = None
        self._version: RunVersion | None = None
        self._read_s = 0.0
        self._task: asyncio.Task[None] | None = None

    async def join(self, follower: Follower) -> MemoryObjectReceiveStream[bytes]:
        """Return the events after the position of a client, which closes the stream when it disconnects.

        Raises:
            UnknownRun, TooSlow, Busy: the run cannot be read.
        """
        ours, theirs = anyio.create_memory_object_stream[bytes](_MAX_UNREAD)
        # Completed even if this client disconnects: the events that it reads for the other clients are sent
        # only once.
        with deadline.while_connected(None):
            joining = asyncio.get_running_loop().create_task(self._add_client(ours, follower))
        try:
            await asyncio.shield(joining)
        except BaseException:
            theirs.close()
            joining.add_done_callback(lambda done: _end(ours, done))
            raise
        return theirs

    async def _add_client(self, client: _Events, follower: Follower) -> None:
        async with self._lock:
            shared = self._shared

            def both(view: RunView) -> tuple[bytes, bytes]:
                # Read at one position, so that this client misses nothing between its own events and the
                # shared ones.
                now = view.position()
                return (shared.event(view, now) if shared is not None else b""), follower.event(view, now)

            news, own = await self._opened.use(both, quick=True)
            self._publish(news)
            if own:
                client.send_nowait(own)
            self._clients.add(client)
            if self._shared is None:
                self._shared = follower
                self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._clients and not self._closing.is_set():
                assert self._shared is not None
                with anyio.move_on_after(POLL_S if self._shared.running else IDLE_POLL_S):
                    await self._closing.wait()
                for client in list(self._clients):
                    if not client.statistics().open_receive_streams:
                        self._drop(client)
                if self._clients and not self._closing.is_set():
                    await self._publish_news()
        except UnknownRun:
            self._publish(_DELETED)  # it may also be in the trash: its streams end
        except Exception:
            log.exception("failed to follow a run; its event streams are closed")
        finally:
            self._shared = self._task = None
            for client in list(self._clients):
                self._drop(client)

    async def _publish_news(self) -> None:
        before, version = self._version, self._opened.version()
        now_s = asyncio.get_running_loop().time()
        due = version is None or before is None or now_s - self._read_s >= CHECK_INTERVAL_S
        if not due and version == before:
            return
        with_facts = due or before is None or version is None or version.facts != before.facts
        shared = self._shared
        assert shared is not None
        async with self._lock:
            try:
                self._publish(
                    await self._opened.use(
                        lambda view: shared.event(view, view.position(), with_facts), quick=True
                    )
                )
            except (TooSlow, Busy):
                return  # retried at the next poll
        self._version = version
        if due:
            self._read_s = now_s

    def _publish(self, news: bytes) -> None:
        if not news:
            return
        for client in list(self._clients):
            try:
                client.send_nowait(news)
            except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
                self._drop(client)

    def _drop(self, client: _Events) -> None:
        self._clients.discard(client)
        client.close()


def _end(client: _Events, joined: asyncio.Task[None]) -> None:
    """Close the stream of a client that disconnected while joining, or that could not join."""
    client.close()
    if not joined.cancelled():
        joined.exception()  # retrieved, so that asyncio does not log it: the client has disconnected


class RunFeeds:
    """The event streams of all runs that have clients.

    Args:
        closing: when set, all streams end.
    """

    def __init__(self, closing: anyio.Event) -> None:
        self._closing = closing
        self._feeds: WeakKeyDictionary[OpenedRun, RunFeed] = WeakKeyDictionary()

    async def stream(
        self, opened: OpenedRun, follower: Follower, heartbeat_s: float = HEARTBEAT_S
    ) -> AsyncIterator[bytes]:
        """Yield the events of one client until it disconnects, the server stops, or the run is deleted."""
        yield b"retry: 1000\n\n"
        feed = self._feeds.setdefault(opened, RunFeed(opened, self._closing))
        with await feed.join(follower) as events:
            while True:
                news = b": nothing new\n\n"
                with anyio.move_on_after(heartbeat_s):
                    try:
                        news = await events.receive()
                    except anyio.EndOfStream:
                        return
                yield news
