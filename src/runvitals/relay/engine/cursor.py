"""The position of a run's delivery to a destination: a small file in its folder, replaced atomically.

`<run>/relay/<kind>-<checksum of the destination>@<host>.json` covers the writers of one host. For each writer
it holds the next record to deliver and the range that is being sent. The range is saved before it is sent, so
after a `kill -9` the next process sends exactly the same range. The delivering process holds the lock file
next to it. Secrets in a destination's address or in a server's response are never written to it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runvitals.base.json_codec import dumps, loads
from runvitals.journal import paths
from runvitals.monitoring.environment import redaction
from runvitals.relay.batch import Batch
from runvitals.relay.destination import Rejected
from runvitals.relay.engine.destination_spec import DestinationSpec

FOLDER = "relay"
VERSION = 1
MAX_REJECTED_BYTES = 4 * 1024 * 1024
_COUNTS = ("samples", "logs", "notes", "points", "batches", "rejected", "dropped", "missing")


class Position:
    """The delivery position of one writer.

    Attributes:
        next_seq: the first record that is not delivered.
        flight: (first, last) record of the range being sent, or None.
        about: what the writer's START record says about it.
        carry: incomplete UTF-8 sequences at the end of console output, by stream, in hexadecimal.
    """

    __slots__ = ("about", "carry", "flight", "next_seq")

    def __init__(self, value: dict[str, Any] | None = None) -> None:
        value = value or {}
        flight = value.get("flight")
        self.next_seq = int(value.get("next", 0))
        self.flight: tuple[int, int] | None = None if flight is None else (int(flight[0]), int(flight[1]))
        self.about: dict[str, Any] = dict(value.get("about", {}))
        self.carry: dict[str, str] = dict(value.get("carry", {}))

    def as_json(self) -> dict[str, Any]:
        """Return the position as the cursor's file holds it."""
        return {"next": self.next_seq, "flight": self.flight, "about": self.about, "carry": self.carry}


class Cursor:
    """The state of a delivery: of one run's writers on one host, to one destination.

    Args:
        folder: the run's folder.
        spec: the destination.
        host: the host of the writers, as in writer names.

    Attributes:
        positions: by writer.
        state: the destination's own state.
        held: by writer, ranges (first, last) before `next_seq` that the destination will accept later
            (`TooEarly`).
        counts: samples, log rows, notes, points and batches delivered, batches rejected, points dropped with
            them, records missing.
        closed: "" while the delivery is in progress; "delivered", or why it ended.
        cwd: the working directory of the training.
        python: the interpreter of the training, which may have packages that ours lacks.
        by_hand: whether only `runvitals sync` has tried to deliver, and did not succeed: relays leave it.
        damaged: why an existing file could not be used, else "".
    """

    def __init__(self, folder: str, spec: DestinationSpec, host: str) -> None:
        self.folder = folder
        self.spec = spec
        self.host = host
        self.positions: dict[str, Position] = {}
        self.state: dict[str, Any] = {}
        self.held: dict[str, list[tuple[int, int]]] = {}
        self._texts = {"error": "", "rejection": "", "held_why": ""}
        self.counts: dict[str, int] = dict.fromkeys(_COUNTS, 0)
        self.closed = ""
        self.cwd = ""
        self.python = ""
        self.by_hand = False
        self.delivered_ms = 0
        self.damaged = ""
        self._lock_fd = -1
        self._facts: bytes | None = None
        self._load()

    @property
    def path(self) -> str:
        """The cursor's file, in the folder of the run."""
        return os.path.join(self.folder, FOLDER, f"{self.spec.slug}@{self.host}.json")

    @property
    def error(self) -> str:
        """Why the last attempt failed; "" if it succeeded. Without secrets, as the other texts."""
        return self._texts["error"]

    @error.setter
    def error(self, text: str) -> None:
        self._texts["error"] = self.spec.redacted(text)

    @property
    def rejection(self) -> str:
        """The text of the last rejection."""
        return self._texts["rejection"]

    @rejection.setter
    def rejection(self, text: str) -> None:
        self._texts["rejection"] = self.spec.redacted(text)

    @property
    def held_why(self) -> str:
        """Why the destination last deferred a batch."""
        return self._texts["held_why"]

    @held_why.setter
    def held_why(self, text: str) -> None:
        self._texts["held_why"] = self.spec.redacted(text)

    def position(self, writer: str) -> Position:
        """Return the position in a writer's journal, which is its beginning for a new writer."""
        position = self.positions.get(writer)
        if position is None:
            position = self.positions[writer] = Position()
        return position

    def hold(self, writer: str, first: int, last: int, why: str) -> None:
        """Remember a range to be delivered later."""
        ranges = self.held.setdefault(writer, [])
        if ranges and ranges[-1][1] + 1 == first:
            first = ranges.pop()[0]
        ranges.append((first, last))
        self.held_why = why

    def release(self, writer: str, last_delivered: int) -> None:
        """Remove the held records of a writer up to and including one that was delivered."""
        ranges = [
            (max(first, last_delivered + 1), last)
            for first, last in self.held[writer]
            if last > last_delivered
        ]
        if ranges:
            self.held[writer] = ranges
        else:
            del self.held[writer]
        if not self.held:
            self.held_why = ""

    @property
    def held_records(self) -> int:
        """The number of held records."""
        return sum(last - first + 1 for ranges in self.held.values() for first, last in ranges)

    @property
    def rejected_path(self) -> str:
        """The file of permanently rejected records, one JSON object per line."""
        return self.path.removesuffix(".json") + ".refused.jsonl"

    def save_rejection(self, batch: Batch, error: Rejected) -> None:
        """Append rejected records and the reason to `rejected_path`, up to `MAX_REJECTED_BYTES`.

        The file is for the user. The records also stay in the journal.

        The records also stay in the journal.

        Raises:
            OSError: the file could not be written.
        """
        lines: list[dict[str, Any]] = [
            {
                "seq": record.seq,
                "t": record.time_ms,
                "why": redaction.text(record.why),
                "record": record.value,
            }
            for record in error.records
        ] or [{"seq": batch.first_seq, "last_seq": batch.last_seq, "why": redaction.text(str(error))}]
        data = b"".join(dumps({"writer": batch.writer.name, **line}) + b"\n" for line in lines)
        self.rejection = str(error)
        if error.records:
            self.rejection += f"; rejected records are in {self.rejected_path}"
        fd = os.open(self.rejected_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | paths.OPEN_FLAGS, 0o600)
        try:
            room = MAX_REJECTED_BYTES - os.fstat(fd).st_size
            end = len(data) if len(data) <= room else data.rfind(b"\n", 0, max(room, 0)) + 1
            os.write(fd, data[:end])
        finally:
            os.close(fd)

    def _load(self) -> None:
        try:
            self._restore(_read(self.path))
        except FileNotFoundError:
            return
        except (OSError, ValueError, OverflowError, TypeError, AttributeError, LookupError) as error:
            self.damaged = f"{self.path} is damaged ({error}): the run is delivered again from its beginning"
            self.positions, self.state, self.held = {}, {}, {}

    def _restore(self, value: dict[str, Any]) -> None:
        if value["version"] != VERSION:
            raise ValueError(f"version {value['version']}, expected {VERSION}")
        self.positions = {writer: Position(position) for writer, position in value["writers"].items()}
        self.state = dict(value["state"])
        self.counts.update({name: int(count) for name, count in value["counts"].items()})
        self.error, self.rejection = str(value["error"]), str(value["rejection"])
        self.closed, self.cwd = str(value["closed"]), str(value["cwd"])
        self.python, self.by_hand = str(value.get("python", "")), bool(value.get("by_hand"))
        held_back = value.get("held", {}).items()  # not in files of the first versions
        self.held = {
            writer: [(int(first), int(last)) for first, last in ranges] for writer, ranges in held_back
        }
        self.held_why = str(value.get("held_why", ""))
        self.delivered_ms = int(value["delivered_ms"])

    def save(self) -> None:
        """Replace the file atomically and sync it to disk.

        Raises:
            OSError: the file could not be written.
        """
        value = {
            "version": VERSION,
            "destination": self.spec.shown,
            "run": os.path.basename(self.folder),
            "host": self.host,
            "writers": {writer: position.as_json() for writer, position in self.positions.items()},
            "state": self.state,
            "held": self.held,
            "held_why": self.held_why,
            "counts": self.counts,
            "error": self.error,
            "rejection": self.rejection,
            "closed": self.closed,
            "cwd": self.cwd,
            "python": self.python,
            "by_hand": self.by_hand,
            "delivered_ms": self.delivered_ms,
        }
        _replace(self.path, dumps(value))

    @property
    def has_begun(self) -> bool:
        """Whether something may have been delivered."""
        return any(self.state.values()) or any(self.counts.values())

    def delete(self) -> None:
        """Delete the files of a delivery that has not begun. The caller holds the lock."""
        for path in (self.path, self._facts_path(), self._lock_path()):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        with contextlib.suppress(OSError):  # other destinations have files there
            os.rmdir(os.path.dirname(self.path))

    def load_facts(self) -> dict[str, Any] | None:
        """Return the run's facts as saved by `save_facts`, or None."""
        try:
            value = _read(self._facts_path())
        except (OSError, ValueError):
            return None
        return value if isinstance(value, dict) else None

    def save_facts(self, facts: dict[str, Any]) -> None:
        """Save the facts from the run's records so far if they changed, so that they need not be read again.

        Raises:
            OSError: the file could not be written.
        """
        text = dumps(facts)
        if text != self._facts:
            _replace(self._facts_path(), text)
            self._facts = text

    def _facts_path(self) -> str:
        return self.path.removesuffix(".json") + ".facts"

    def _lock_path(self) -> str:
        return self.path.removesuffix(".json") + ".lock"

    def lock(self) -> bool:
        """Take the delivery lock; False if another process holds it. The lock ends with the process."""
        if self._lock_fd >= 0:
            return True
        _make_folder(os.path.dirname(self.path))
        flags = os.O_RDWR | os.O_CREAT | paths.OPEN_FLAGS
        fd = os.open(self._lock_path(), flags, 0o600)
        if not _flock(fd):
            os.close(fd)
            return False
        self._lock_fd = fd
        self._load()  # another process may have advanced the position
        return True

    def unlock(self) -> None:
        """Release the lock, if this cursor holds it."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1


def _flock(fd: int) -> bool:
    try:
        import fcntl
    except ImportError:
        return True  # Windows has no background relay; the user can avoid running `runvitals sync` twice
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a network file system without locks
    return True


def _make_folder(path: str) -> None:
    """Create the folder, but not its parents: a deleted run must not reappear."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)


def _replace(path: str, data: bytes) -> None:
    _make_folder(os.path.dirname(path))
    part = f"{path}.part"
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | paths.OPEN_FLAGS, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(part, path)


def find_cursors(folder: str, destinations: Iterable[DestinationSpec] = ()) -> Iterator[Cursor]:
    """Yield every cursor in a run's folder that can be read.

    Args:
        destinations: with their full text; the file of a destination with secrets holds only part of
            it.
    """
    specs = {spec.slug: spec for spec in destinations}
    where = os.path.join(folder, FOLDER)
    try:
        names = sorted(os.listdir(where))
    except OSError:
        return  # there is none, or it belongs to another user
    for name in names:
        cursor = _read_cursor(folder, os.path.join(where, name), specs) if name.endswith(".json") else None
        if cursor is not None:
            yield cursor


def _read_cursor(folder: str, path: str, specs: Mapping[str, DestinationSpec]) -> Cursor | None:
    slug = os.path.basename(path).rpartition("@")[0]
    try:
        value = _read(path)
        spec = DestinationSpec(value["destination"])
        if slug != spec.slug:
            spec = specs.get(slug) or DestinationSpec(value["destination"], slug)
        return Cursor(folder, spec, str(value["host"]))
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return None


def _read(path: str) -> Any:
    """Return the JSON value of a regular file: opening a FIFO must not wait for a process that writes to it.

    Raises:
        OSError: it could not be read.
        ValueError: it is not JSON.
    """
    with open(paths.open_file(path), "rb") as file:
        return loads(file.read())
