"""Many clients that follow runs: what is new is found out once, and everybody gets all of it."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from runvitals.base import deadline
from runvitals.model.errors import UnknownRun
from runvitals.readers.journals.reader import RunReader
from runvitals.server.library.local.journal_run import JournalView
from runvitals.server.library.run_library import RunVersion, RunView
from runvitals.server.live import feed as feeds
from runvitals.server.live.feed import RunFeeds
from runvitals.server.live.follower import Follower
from tests.patience import PATIENCE_S
from tests.readers.journals.journals import T0, Training


class Opened:
    """A run, and how often it was looked at. `heard`: it tells when there is something new."""

    def __init__(self, directory: Path, tells: bool = True) -> None:
        self.reader = RunReader("abc", str(directory))
        self.looks = 0
        self.heard = RunVersion(0, 0)
        self.tells = tells
        self.gone = False

    def version(self) -> RunVersion | None:
        return self.heard if self.tells else None

    async def use(self, work: Callable[[RunView], Any], quick: bool = False) -> Any:
        with deadline.within(PATIENCE_S):
            deadline.check()
        if self.gone:
            raise UnknownRun("no run")
        self.looks += 1
        self.reader.poll()
        return work(JournalView(self.reader))


@pytest.fixture
def training(tmp_path: Path) -> Training:
    training = Training(tmp_path)
    training.advance(3)
    return training


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "POLL_S", 0.01)


def follower(position: str = "") -> Follower:
    return Follower(position, lambda: T0)


async def news(events: AsyncIterator[bytes]) -> dict[str, Any]:
    """The next event that tells something."""
    with anyio.fail_after(PATIENCE_S):
        async for event in events:
            for line in event.decode().splitlines():
                if line.startswith("data: "):
                    body: dict[str, Any] = json.loads(line.removeprefix("data: "))
                    return body
    raise AssertionError("the stream has ended")


def times(reported: dict[str, Any]) -> list[int]:
    return [(sample["t"] - T0) // 1000 for sample in reported.get("samples", ())]


def run(work: Callable[[], Any]) -> None:
    anyio.run(work)


def test_news_is_read_once_for_all_clients(tmp_path: Path, training: Training) -> None:
    async def many() -> None:
        opened = Opened(tmp_path)
        closing = anyio.Event()
        all_feeds = RunFeeds(closing)
        clients = [all_feeds.stream(opened, follower()) for _ in range(50)]
        for client in clients:
            reported = await news(client)
            assert (times(reported), reported["run"]["id"]) == ([0, 1, 2], "abc")
        assert opened.looks <= 51
        training.advance(1)
        opened.heard = RunVersion(1, 0)
        assert [times(await news(client)) for client in clients] == [[3]] * 50
        assert opened.looks <= 54
        await anyio.sleep(0.2)  # twenty turns in which nothing is heard
        assert opened.looks <= 54
        closing.set()
        for client in clients:
            assert [event async for event in client if b"data" in event] == []

    run(many)


def test_no_client_misses_or_repeats_news(tmp_path: Path, training: Training) -> None:
    async def coming_and_going() -> None:
        opened = Opened(tmp_path, tells=False)
        closing = anyio.Event()
        all_feeds = RunFeeds(closing)
        got: dict[int, list[int]] = {}

        async def client(number: int) -> None:
            async for event in all_feeds.stream(opened, follower()):
                for line in event.decode().splitlines():
                    if line.startswith("data: "):
                        got.setdefault(number, []).extend(times(json.loads(line.removeprefix("data: "))))

        async with anyio.create_task_group() as tasks:
            for number in range(30):
                tasks.start_soon(client, number)
                training.advance(1)
                await anyio.sleep(0.003)
            with anyio.fail_after(PATIENCE_S):
                while not (len(got) == 30 and all(len(numbers) >= 33 for numbers in got.values())):
                    await anyio.sleep(0.01)
            closing.set()
        assert all(numbers == list(range(33)) for numbers in got.values())

    run(coming_and_going)


def test_a_slow_client_is_disconnected_and_continues_later(tmp_path: Path, training: Training) -> None:
    async def slow() -> None:
        opened = Opened(tmp_path, tells=False)
        all_feeds = RunFeeds(anyio.Event())
        lazy, keen = all_feeds.stream(opened, follower()), all_feeds.stream(opened, follower())
        seen = times(await news(lazy))
        await news(keen)
        for _ in range(60):
            training.advance(1)
            await news(keen)
        last = ""
        async for event in lazy:  # what waited for it, and then the end
            for line in event.decode().splitlines():
                if line.startswith("id: "):
                    last = line.removeprefix("id: ")
                if line.startswith("data: "):
                    seen += times(json.loads(line.removeprefix("data: ")))
        again = all_feeds.stream(opened, follower(last))
        seen += times(await news(again))
        assert seen == list(range(63))
        await keen.aclose()  # type: ignore[attr-defined]
        await again.aclose()  # type: ignore[attr-defined]

    run(slow)


def test_streams_of_a_deleted_run_say_so_and_end(tmp_path: Path, training: Training) -> None:
    async def deleted() -> None:
        opened = Opened(tmp_path, tells=False)
        client = RunFeeds(anyio.Event()).stream(opened, follower())
        await news(client)
        opened.gone = True
        with anyio.fail_after(PATIENCE_S):
            events = [event async for event in client if b"data" in event]
            assert events == [b"event: deleted\ndata: {}\n\n"]

    run(deleted)


def test_a_heartbeat_without_news(tmp_path: Path, training: Training) -> None:
    async def quiet() -> None:
        closing = anyio.Event()
        client = RunFeeds(closing).stream(Opened(tmp_path), follower(), heartbeat_s=0.02)
        await news(client)
        with anyio.fail_after(PATIENCE_S):
            assert await anext(client) == b": nothing new\n\n"
        await client.aclose()  # type: ignore[attr-defined]

    run(quiet)


def test_a_client_that_leaves_while_joining(tmp_path: Path, training: Training) -> None:
    class Slow(Opened):
        async def use(self, work: Callable[[RunView], Any], quick: bool = False) -> Any:
            await anyio.sleep(60)

    async def leaving() -> None:
        client = RunFeeds(anyio.Event()).stream(Slow(tmp_path), follower())
        assert await anext(client) == b"retry: 1000\n\n"
        with anyio.move_on_after(0.01):
            await anext(client)

    run(leaving)
    gc.collect()  # what was not closed would be complained of here


def test_a_client_that_leaves_takes_no_news_from_others(tmp_path: Path, training: Training) -> None:
    class Halting(Opened):
        """Lets who waits for it leave after the run was looked at."""

        halts: anyio.Event | None = None

        async def use(self, work: Callable[[RunView], Any], quick: bool = False) -> Any:
            found = await super().use(work, quick)
            if self.halts is not None:
                self.halts.set()
                await anyio.sleep(0.05)
            return found

    async def leaving() -> None:
        opened = Halting(tmp_path)
        feeds = RunFeeds(anyio.Event())
        stays, leaves = feeds.stream(opened, follower()), feeds.stream(opened, follower())
        assert times(await news(stays)) == [0, 1, 2]
        assert await anext(leaves) == b"retry: 1000\n\n"
        training.advance(1)
        opened.halts = anyio.Event()
        task = asyncio.ensure_future(anext(leaves))
        await opened.halts.wait()
        opened.halts = None
        task.cancel()
        assert times(await news(stays)) == [3]
        await stays.aclose()  # type: ignore[attr-defined]

    run(leaving)


def test_the_others_get_what_is_new_after_the_client_that_began_to_follow_has_left(
    tmp_path: Path, training: Training
) -> None:
    async def follow() -> None:
        opened, feeds, left = Opened(tmp_path), RunFeeds(anyio.Event()), list[bool]()
        first, second = feeds.stream(opened, follower()), feeds.stream(opened, follower())
        with deadline.while_connected(lambda: bool(left)):
            await news(first)
        await news(second)
        left.append(True)
        training.advance(1)
        opened.heard = RunVersion(1, 1)
        assert times(await news(second)) == [3]
        await first.aclose()  # type: ignore[attr-defined]
        await second.aclose()  # type: ignore[attr-defined]

    run(follow)
