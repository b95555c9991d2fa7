"""What is new in a run, found out once for all who follow it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from weakref import WeakKeyDictionary

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from runvitals.deadline import TooSlow
from runvitals.model.errors import UnknownRun
from runvitals.server.library import OpenedRun, RunView, Version
from runvitals.server.live.follower import HEARTBEAT_S, IDLE_POLL_S, POLL_S, Follower
from runvitals.server.workers import Busy

_MOST_UNREAD = 32
"""Events that wait for one client. One that reads so slowly is sent away; it goes on where it was."""
ALWAYS_S = 15.0
"""So often a run is looked at where nothing was heard of it: it may be lost by now."""
log = logging.getLogger("runvitals.server")
_Events = MemoryObjectSendStream[bytes]


class RunFeed:
    """The events of one run, and those who get them."""

    def __init__(self, opened: OpenedRun, closing: anyio.Event) -> None:
        self._opened = opened
        self._closing = closing
        self._clients: set[_Events] = set()
        self._lock = anyio.Lock()
        self._shared: Follower | None = None
        self._version: Version | None = None
        self._looked_s = 0.0
        self._task: asyncio.Task[None] | None = None

    async def join(self, follower: Follower) -> MemoryObjectReceiveStream[bytes]:
        """The events from where a client is; it closes them when it leaves.

        Raises:
            UnknownRun, TooSlow, Busy: its news cannot be read.
        """
        ours, theirs = anyio.create_memory_object_stream[bytes](_MOST_UNREAD)
        # To its end even where this client leaves meanwhile: the news of the others is sent only once.
        joining = asyncio.get_running_loop().create_task(self._take_in(ours, follower))
        try:
            await asyncio.shield(joining)
        except BaseException:
            theirs.close()
            joining.add_done_callback(lambda done: _end(ours, done))
            raise
        return theirs

    async def _take_in(self, client: _Events, follower: Follower) -> None:
        async with self._lock:
            shared = self._shared

            def both(view: RunView) -> tuple[bytes, bytes]:
                # At one position: nothing lies between what all get and what this client gets.
                now = view.position()
                return (shared.news(view, now) if shared is not None else b""), follower.news(view, now)

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
                for one in [one for one in self._clients if not one.statistics().open_receive_streams]:
                    self._drop(one)
                if self._clients and not self._closing.is_set():
                    await self._look()
        except UnknownRun:
            pass  # it is in the trash, or was deleted
        except Exception:
            log.exception("a run can no longer be followed")
        finally:
            self._shared = self._task = None
            for one in list(self._clients):
                self._drop(one)

    async def _look(self) -> None:
        before, version = self._version, self._opened.version()
        now_s = asyncio.get_running_loop().time()
        due = version is None or before is None or now_s - self._looked_s >= ALWAYS_S
        if not due and version == before:
            return
        with_facts = due or before is None or version is None or version.facts != before.facts
        shared = self._shared
        assert shared is not None
        async with self._lock:
            try:
                self._publish(
                    await self._opened.use(
                        lambda view: shared.news(view, view.position(), with_facts), quick=True
                    )
                )
            except (TooSlow, Busy):
                return  # at another turn
        self._version = version
        if due:
            self._looked_s = now_s

    def _publish(self, news: bytes) -> None:
        if not news:
            return
        for one in list(self._clients):
            try:
                one.send_nowait(news)
            except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
                self._drop(one)

    def _drop(self, one: _Events) -> None:
        self._clients.discard(one)
        one.close()


def _end(client: _Events, joined: asyncio.Task[None]) -> None:
    """Of a client that did not wait until it had joined, or could not."""
    client.close()
    if not joined.cancelled():
        joined.exception()  # not reported: the client has left


class RunFeeds:
    """The feeds of the runs that somebody follows.

    Args:
        closing: ends them all.
    """

    def __init__(self, closing: anyio.Event) -> None:
        self._closing = closing
        self._feeds: WeakKeyDictionary[OpenedRun, RunFeed] = WeakKeyDictionary()

    async def stream(
        self, opened: OpenedRun, follower: Follower, heartbeat_s: float = HEARTBEAT_S
    ) -> AsyncIterator[bytes]:
        """One client's events until it leaves, the server closes, or the run is gone."""
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
