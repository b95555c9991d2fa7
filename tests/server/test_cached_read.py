"""Requests that share a value wait for each other, but not for long."""

from __future__ import annotations

import time

import anyio

from runvitals.server.cached_read import CachedRead
from runvitals.server.workers import Busy, Workers


def test_requests_that_wait_too_long_for_a_shared_value_are_rejected() -> None:
    async def use_it_five_times() -> list[str]:
        outcomes: list[str] = []
        cached, workers = CachedRead(lambda: None), Workers(3, deadline_s=0.5)

        async def use() -> None:
            try:
                await cached.use(lambda: time.sleep(0.4), workers)
            except Busy:
                outcomes.append("busy")
            else:
                outcomes.append("done")

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(use)
        assert not cached.users
        return outcomes

    assert sorted(anyio.run(use_it_five_times)) == ["busy"] * 3 + ["done"] * 2
