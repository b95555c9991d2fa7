"""A run's journal, and a delivery of it that can be killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runvitals.journal import frames, paths
from runvitals.journal.writer import JournalWriter
from runvitals.relay.engine.cursor import Cursor
from runvitals.relay.engine.delivery import RunDelivery
from runvitals.relay.engine.destination_spec import DestinationSpec
from runvitals.sdk.media.run_files import RunFiles
from tests.relay.receiver import now_ms

RUN, HOST = "abc", "node1"
MONITOR, TRAIN, MEDIA = f"monitor.{HOST}.1", f"train.{HOST}.7.1", f"media.{HOST}.7.1"


class Journal:
    """A run's journal with a monitor and a training process as writers.

    Args:
        about_run: further fields of the START record of every file.
    """

    def __init__(self, directory: Path, **about_run: str) -> None:
        self.folder = paths.run_dir(RUN, str(directory))
        self.t0 = now_ms() - 60_000
        about = {"run": RUN, "project": "digits", "host": HOST, **about_run}
        self.monitor = JournalWriter(
            self.folder, MONITOR, {**about, "role": "monitor", "pid": 6, "interval_s": 1.0, "boot_id": "b"}
        )
        self.train = JournalWriter(self.folder, TRAIN, {**about, "role": "train", "pid": 7, "rank": 0})

    def sample(self, second: int, **values: float) -> None:
        self.monitor.sample(self.t0 + 1000 * second, values)

    def log(self, second: int, step: int, **data: Any) -> None:
        self.train.json(frames.HISTORY, {"t": self.t0 + 1000 * second, "step": step, "data": data})

    def event(self, name: str) -> None:
        self.monitor.json(frames.EVENT, {"t": self.t0, "name": name, "level": "info", "text": name})

    def end(self) -> None:
        self.monitor.json(
            frames.LIFECYCLE, {"t": self.t0 + 9000, "what": "end", "state": "finished", "exit_code": 0}
        )


class MediaJournal:
    """The media of a run: its files, and the records that name them."""

    def __init__(self, journal: Journal) -> None:
        self.folder = journal.folder
        self.files = RunFiles(journal.folder)
        self.journal = JournalWriter(
            journal.folder,
            MEDIA,
            {"run": RUN, "project": "digits", "host": HOST, "role": "media", "pid": 7},
        )

    def log(self, key: str, content: bytes, step: int = 0, kind: str = "image") -> str:
        item = self.files.add(content)
        self.record(key, [{"kind": kind, **item}], step, kind)
        return str(item["sha256"])

    def record(self, key: str, items: list[dict[str, Any]], step: int = 0, kind: str = "image") -> None:
        value = {"t": now_ms() - 1000, "step": step, "key": key, "kind": kind, "items": items}
        assert self.journal.json(frames.MEDIA, value)


class Sender:
    """A delivery by a process that can be killed."""

    def __init__(self, folder: str, url: str) -> None:
        self.cursor = Cursor(folder, DestinationSpec(url), HOST)
        assert self.cursor.lock()
        self.stops: list[str] = []
        self.delivery = RunDelivery(self.cursor, self.stops.append)

    def send(self, now_s: float = 0.0) -> None:
        """Deliver all records."""
        while self.delivery.step(now_s, flush=True):
            pass

    def kill(self) -> None:
        """End the delivery as `kill -9` does: nothing more is saved, and the lock is released."""
        self.delivery.close()
        self.cursor.unlock()
