"""Following a run while it is in progress: no event is repeated, and none is missed."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.readers.journals.reader import RunReader
from runvitals.server.charts import series
from runvitals.server.http.serve import Server, listen
from runvitals.server.library.local.journal_run import JournalView
from runvitals.server.library.run_library import SeriesSelection
from runvitals.server.live import follower
from runvitals.server.live.follower import Follower, parse_position
from runvitals.server.local_app import create_app
from tests.patience import PATIENCE_S
from tests.readers.journals.journals import T0, Monitor, Trainer, Training


class Page:
    """A client that follows a run."""

    def __init__(self, directory: Path, position: str = "", now_ms: int = T0) -> None:
        self.reader = RunReader("abc", str(directory))
        self.view = JournalView(self.reader)
        self.follower = Follower(position, lambda: now_ms)
        self.id = position

    def news(self) -> dict[str, Any]:
        self.reader.poll()
        event = self.follower.event(self.view, self.view.position()).decode()
        if not event:
            return {}
        name, position, data = event.removesuffix("\n\n").split("\n")
        assert name == "event: news"
        self.id = position.removeprefix("id: ")
        reported: dict[str, Any] = json.loads(data.removeprefix("data: "))
        return reported


def test_new_samples_include_rates(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.sample(T0, {"cpu": 1.0, "disk.in": 10.0})
    page = Page(tmp_path)
    assert page.news()["samples"] == [
        {"host": "node1", "role": "monitor", "t": T0, "values": {"cpu": 1.0, "disk.in": 10.0}}
    ]
    assert page.news() == {}
    monitor.sample(T0 + 1000, {"cpu": math.nan})
    monitor.sample(T0 + 2000, {"cpu": 3.0, "disk.in": 14.0})
    assert [sample["values"] for sample in page.news()["samples"]] == [
        {"cpu": None},
        {"cpu": 3.0, "disk.in": 14.0, "disk.readMBps": 2.0},
    ]


def test_a_reconnecting_client_continues_at_its_position(tmp_path: Path) -> None:
    monitor, trainer = Monitor(tmp_path), Trainer(tmp_path, rank=2)
    page = Page(tmp_path)
    monitor.sample(T0, {"disk.in": 1.0})
    trainer.log(T0, 0, loss=0.5)
    page.news()
    monitor.sample(T0 + 1000, {"disk.in": 2.0})
    trainer.log(T0 + 1, 1, loss=0.25, nested={"a": 1}, text="x")
    news = Page(tmp_path, page.id).news()  # another connection, perhaps to another process
    assert [sample["values"] for sample in news["samples"]] == [{"disk.in": 2.0, "disk.readMBps": 1.0}]
    assert news["calls"] == [
        {"host": "node1", "rank": 2, "step": 1.0, "t": T0 + 1, "values": {"loss": 0.25, "nested.a": 1.0}}
    ]


def test_the_cursor_of_a_response_misses_nothing(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.advance(3)
    reader = RunReader("abc", str(tmp_path))
    reader.poll()
    response = series.metrics(JournalView(reader), SeriesSelection(("cpu",)), None, None, 100)
    training.advance(2)
    live_t = [sample["t"] for sample in Page(tmp_path, response["cursor"]).news()["samples"]]
    assert response["groups"][0]["t"] + live_t == [T0 + i * 1000 for i in range(5)]


def test_facts_come_first_and_when_they_change(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    page = Page(tmp_path)
    assert page.news()["run"]["state"] == "running"
    monitor.sample(T0, {"cpu": 1.0})
    assert "run" not in page.news()
    monitor.event(T0, "alert", "warning", "hot")
    assert page.news()["run"]["events"][0]["text"] == "hot"
    monitor.end(T0 + 1000, "failed", exit_code=3)
    assert page.news()["run"]["exit_code"] == 3
    assert not page.follower.running


def test_too_much_news_becomes_a_reload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "MAX_SAMPLES", 5)
    training = Training(tmp_path)
    training.advance(6)
    page = Page(tmp_path)
    news = page.news()
    assert news["reload"]
    assert "samples" not in news
    training.advance(1)
    (sample,) = page.news()["samples"]
    assert sample["values"]["disk.readMBps"] > 0  # the counters before it are known nevertheless


@pytest.mark.parametrize("text", ["junk", "a:b", "a:-1", "a:1,b", "a:١", "a:" + "9" * 30])
def test_invalid_positions(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid cursor; expected writer:number"):
        parse_position(text)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Server]]:
    listener = listen(0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = Server(create_app(str(tmp_path), lambda: T0))
    with listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield url, server
        server.handle_exit(2, None)
        thread.join(timeout=PATIENCE_S)
    assert not thread.is_alive(), "the server waits for its event streams"


def test_over_the_wire(tmp_path: Path, server: tuple[str, Server]) -> None:
    """Through uvicorn, two clients at once; the server stops although both are connected."""
    training = Training(tmp_path)
    training.advance(2)
    url, _ = server
    address = f"{url}/api/v1/runs/abc/live"
    with (
        httpx.stream("GET", address, timeout=PATIENCE_S) as first,
        httpx.stream("GET", f"{address}?after=", timeout=PATIENCE_S) as second,
    ):
        assert first.headers["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in first.headers
        lines = first.iter_lines()
        assert _next_news(lines)["run"]["state"] == "running"
        training.advance(1)
        assert _next_news(lines)["samples"][0]["t"] == T0 + 2000
        seen = [sample["t"] for sample in _next_news(second.iter_lines())["samples"]]
        assert seen[:2] == [T0, T0 + 1000]  # it may have joined late enough to get the third one immediately


def _next_news(lines: Iterator[str]) -> Any:
    return json.loads(next(line for line in lines if line.startswith("data: ")).removeprefix("data: "))
