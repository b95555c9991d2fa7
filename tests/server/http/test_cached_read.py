"""Requests that share a value wait for each other, but not for long."""

from __future__ import annotations

import threading

import anyio

from runvitals.server.http.cached_read import CachedRead
from runvitals.server.http.workers import Busy, Workers
from tests.patience import PATIENCE_S


def test_requests_that_wait_too_long_for_a_shared_value_are_rejected() -> None:
    async def use_it_five_times() -> list[str]:
        outcomes: list[str] = []
        cached, workers = CachedRead(lambda: None), Workers(3, deadline_s=0.1)
        others_have_ended = threading.Event()

        async def use() -> None:
            try:
                await cached.use(lambda: others_have_ended.wait(PATIENCE_S), workers)
            except Busy:
                outcomes.append("busy")
            else:
                outcomes.append("done")

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(use)
            with anyio.fail_after(PATIENCE_S):
                while len(outcomes) < 4:
                    await anyio.sleep(0.01)
            others_have_ended.set()
        assert not cached.users
        return outcomes

    assert anyio.run(use_it_five_times) == ["busy"] * 4 + ["done"]
