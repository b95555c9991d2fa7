"""Which of several runs have changed, as server-sent events named `changed`: `{"runs": [ids]}`.

An event says that there is something new of a run, not what: a page requests the part of its charts that it
lacks. So one connection is enough for all charts of a page, a slow page gets no backlog, and nothing is
missed when a connection is lost: the page requests what is newer than what it has. There is a comment every
15 s while nothing changes.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio

from runvitals.base.deadline import TooSlow
from runvitals.model.errors import UnknownRun
from runvitals.server.http.workers import Busy
from runvitals.server.library.run_library import NamedRun
from runvitals.server.live.feed import CHECK_INTERVAL_S
from runvitals.server.live.follower import HEARTBEAT_S

POLL_S = 2.0
_NOTHING_NEW = b": nothing new\n\n"


class ChangedRuns:
    """Follows some runs for one client.

    Args:
        find: the runs, if they may still be read.
    """

    def __init__(self, find: Callable[[], Awaitable[list[NamedRun]]]) -> None:
        self._find = find
        self._runs: list[NamedRun] = []
        self._versions: dict[str, Any] = {}
        self._found_s = -1e9

    def find_again(self) -> None:
        """Find the runs at the next call, since who follows them may read others now."""
        self._found_s = -1e9

    async def changed_ids(self) -> list[str]:
        """Return the ids of the runs that have changed since the last call; all at the first."""
        if time.monotonic() - self._found_s >= CHECK_INTERVAL_S:
            self._runs = await self._find()
            self._found_s = time.monotonic()
        changed = []
        for run in self._runs:
            now = await self._version(run)
            if self._versions.get(run.id) != now:
                self._versions[run.id] = now
                changed.append(run.id)
        return changed

    async def _version(self, run: NamedRun) -> Any:
        """Something that is different when the run has changed."""
        version = run.opened.version()
        if version is not None or run.state != "running":
            return run.state, version
        try:
            position = await run.opened.use(lambda view: dict(view.position()), quick=True)
        except (UnknownRun, TooSlow, Busy):
            return self._versions.get(run.id)  # looked at again at the next poll
        return run.state, position


async def stream(changes: ChangedRuns, closing: anyio.Event) -> AsyncIterator[bytes]:
    """Yield the events of one client until it disconnects or the server stops.

    Args:
        changes: what changed before `changed_ids` was last called is not told.
    """
    yield b"retry: 1000\n\n"
    sent_s = time.monotonic()
    while not closing.is_set():
        with anyio.move_on_after(POLL_S):
            await closing.wait()
        ids = await changes.changed_ids()
        if ids:
            yield b"event: changed\ndata: %b\n\n" % json.dumps({"runs": ids}).encode("ascii")
        elif time.monotonic() - sent_s < HEARTBEAT_S:
            continue
        else:
            yield _NOTHING_NEW
        sent_s = time.monotonic()
