"""Readings that may not end: who asks gets the last one."""

from __future__ import annotations

import threading
import time

import anyio
import pytest

from runvitals.server.http.latest_reading import LatestReading
from tests.patience import PATIENCE_S


def test_a_reading_that_hangs_holds_nobody_up() -> None:
    answers, hangs = threading.Event(), threading.Event()
    numbers = iter(range(1, 100))

    def read() -> int:
        if hangs.is_set():
            answers.wait(PATIENCE_S)
        return next(numbers)

    reading = LatestReading(read, 0)

    async def newest_after(number: int) -> int:
        until_s = time.monotonic() + PATIENCE_S
        while (newest := await reading.newest()) <= number:
            assert time.monotonic() < until_s
        return newest

    async def ask() -> None:
        last = await newest_after(0)
        hangs.set()
        begun_s = time.monotonic()
        assert [await reading.newest() for _ in range(3)] == [last] * 3
        assert time.monotonic() - begun_s < PATIENCE_S / 2
        assert reading.late_s > 0
        answers.set()
        assert await newest_after(last) > last

    anyio.run(ask)


def test_an_error_is_raised_and_the_next_reading_works() -> None:
    errors = [OSError("no disk")]

    def read() -> str:
        if errors:
            raise errors.pop()
        return "there"

    reading = LatestReading(read, "before")

    async def last() -> str:
        while (newest := await reading.newest()) == "before":
            pass
        return newest

    async def ask() -> None:
        with pytest.raises(OSError, match="no disk"):
            await last()
        assert await last() == "there"

    anyio.run(ask)
