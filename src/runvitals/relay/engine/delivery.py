"""The delivery of one run (its writers on one host) to one destination.

A *round* reads what is new, saves which ranges are about to be sent, sends one batch per writer, and advances
the position. The position is saved before and after a round; between rounds that follow at once, only once.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping

from runvitals.journal import frames, paths
from runvitals.journal.reader import read_run
from runvitals.monitor.predecessor import Predecessor
from runvitals.relay.batch import Batch, RunFacts
from runvitals.relay.destination import Context, Destination, Gone, Rejected, TooEarly
from runvitals.relay.engine.batch_reader import BatchReader, add_info
from runvitals.relay.engine.cursor import Cursor, Position

_SECTIONS = ("project", "run", "config", "summary", "machine", "settings")
# Bytes one round may hold in memory, over all writers.
MAX_ROUND_BYTES = 2 * 1024 * 1024
DELIVERED = "delivered"
# How often held batches are retried, and how many records at a time.
HELD_S = 3600.0
_HELD_RECORDS = 1000
# A run whose monitor died without recording an end may get another monitor.
ORPHAN_GRACE_S = 60.0


class RunDelivery:
    """Delivers one run to one destination.

    Args:
        cursor: the position; the caller must hold its lock.
        request_stop: called with a text when the destination asks for the run to be stopped.
        environ: see `Context.environ`.

    Attributes:
        live: the run's monitor is connected: heartbeats are due, and more records will come.
        caught_up: at the last look everything in the journal had been delivered.

    Raises:
        OSError: the run's folder does not exist.
    """

    def __init__(
        self,
        cursor: Cursor,
        request_stop: Callable[[str], None] = lambda text: None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.cursor = cursor
        self._environ = environ
        self.request_stop = request_stop
        self.live = False
        self.caught_up = False
        self.run = RunFacts(os.path.basename(cursor.folder))
        self._feeds: dict[str, BatchReader] = {}
        self._destination: Destination | None = None
        self._sent_s: float | None = None
        self._held_at_s: float | None = None  # when held batches are retried; None: at once
        self._recall()

    @property
    def run_id(self) -> str:
        return self.run.id

    def _recall(self) -> None:
        """Load what the records delivered so far said about the run."""
        facts = self.cursor.load_facts()
        if facts is not None:
            for section in _SECTIONS:
                setattr(self.run, section, facts.get(section, getattr(self.run, section)))
            return
        delivered = {writer: one.next_seq for writer, one in self.cursor.positions.items() if one.next_seq}
        if delivered:
            for record in read_run(self.cursor.folder):
                if record.type == frames.INFO and record.seq < delivered.get(record.writer, 0):
                    add_info(self.run, record.value)

    # -- the destination

    def open(self) -> Destination:
        """The destination; created at the first call.

        Raises:
            ValueError, ImportError: it could not be created.
        """
        if self._destination is None:
            context = Context(
                self.run_id,
                self.cursor.folder,
                self.cursor.cwd or os.getcwd(),
                self.cursor.state,
                self.cursor.save,
                self.request_stop,
                self._environ,
            )
            spec = self.cursor.spec
            self._destination = spec.factory()(spec.address, context)
        return self._destination

    def close(self) -> None:
        """Close the destination.

        Raises:
            whatever its `close` raises.
        """
        destination, self._destination = self._destination, None
        if destination is not None:
            destination.close()

    # -- a round

    def step(self, now_s: float, flush: bool = False) -> bool:
        """Run one round if anything is due; True if there is more to send at once.

        Args:
            now_s: monotonic time.
            flush: send everything there is, even if a batch is not due yet.

        Raises:
            Exception: anything the destination raises except `Rejected`; the batch is kept and sent again.
        """
        destination = self.open()
        self._read(now_s)
        due = [feed for feed in self._feeds.values() if self._is_due(feed, destination, now_s, flush)]
        if not due:
            self._deliver_held(destination, now_s)
            self.caught_up = not any(feed.batch for feed in self._feeds.values())
            self._sign_of_life(destination, now_s)
            return False
        self.caught_up = False
        batches = [(feed, feed.sent()) for feed in due]
        self._save()
        try:
            for feed, batch in batches:
                self._deliver(destination, feed, batch, now_s)
        finally:
            self._save_if_idle(due, now_s)
        self._sent_s = now_s
        self.caught_up = not any(feed.batch for feed in self._feeds.values())
        if flush or not self.live:
            return not self.caught_up  # records that arrived during the round, or after the range in flight
        return any(feed.full for feed in self._feeds.values())

    def _is_due(self, feed: BatchReader, destination: Destination, now_s: float, flush: bool) -> bool:
        if feed.batch is None:
            return False
        if flush or feed.full or not self.live:
            return True
        return (feed.urgent and destination.prompt) or now_s - feed.since_s >= destination.interval_s

    def _read(self, now_s: float) -> None:
        try:
            segments = paths.segments(self.cursor.folder)
        except FileNotFoundError:
            raise Gone("the run's folder was deleted") from None
        held = sum(feed.bytes for feed in self._feeds.values())
        behind = False  # a restarted monitor waits for the end of its predecessor: times must not go back
        for writer, numbers in sorted(segments.items()):
            role, host = paths.role_and_host(writer)
            if host != self.cursor.host or (behind and role == "monitor"):
                continue
            feed = self._feeds.get(writer)
            if feed is None:
                position = self.cursor.position(writer)
                feed = self._feeds[writer] = BatchReader(self.cursor.folder, writer, position, self.run)
            if held < MAX_ROUND_BYTES:
                held -= feed.bytes
                feed.read(numbers, now_s)
                held += feed.bytes
            behind = behind or (role == "monitor" and feed.full)

    def _deliver(self, destination: Destination, feed: BatchReader, batch: Batch, now_s: float) -> None:
        if batch.empty and feed.position.next_seq:
            feed.done()  # only declarations, of a known writer: nothing to deliver
            return
        try:
            self._hand_over(destination, batch)
        except TooEarly as error:
            self.cursor.hold(feed.writer, batch.first_seq, batch.last_seq, str(error))
            self._held_at_s = now_s + HELD_S
        except BaseException:
            batch.repeated = True
            raise
        feed.done()

    def _hand_over(self, destination: Destination, batch: Batch) -> None:
        """Deliver a batch and count it."""
        counts = self.cursor.counts
        refused: set[int] = set()
        points = batch.points
        try:
            destination.deliver(batch)
        except Rejected as error:
            dropped = points if error.points is None else error.points
            counts["rejected"] += 1
            counts["dropped"] += dropped
            self.cursor.set_aside(batch, error)
            if not error.records:
                return
            refused = {one.seq for one in error.records}
            points -= dropped
        counts["batches"] += 1
        counts["samples"] += sum(seq not in refused for table in batch.samples for seq in table.seqs)
        counts["logs"] += sum(row.seq not in refused for row in batch.logs)
        counts["notes"] += sum(note.seq not in refused for note in batch.notes)
        counts["points"] += points
        self.cursor.delivered_ms = time.time_ns() // 1_000_000
        self.cursor.error = ""

    def _deliver_held(self, destination: Destination, now_s: float) -> None:
        """Retry the batches that the destination did not accept yet."""
        if not self.cursor.held or (self._held_at_s is not None and now_s < self._held_at_s):
            return
        self._held_at_s = now_s + HELD_S
        segments = paths.segments(self.cursor.folder)
        for writer, stretches in list(self.cursor.held.items()):
            if not self._deliver_stretches(destination, writer, stretches, segments.get(writer, [])):
                break
        self._save()

    def _deliver_stretches(
        self,
        destination: Destination,
        writer: str,
        stretches: list[tuple[int, int]],
        segments: list[int],
    ) -> bool:
        """Whether the destination accepted all of them."""
        about = self.cursor.position(writer).about
        for first, last in stretches:
            for begin in range(first, last + 1, _HELD_RECORDS):
                end = min(begin + _HELD_RECORDS - 1, last)
                position = Position({"next": begin, "flight": (begin, end), "about": about})
                # Facts in old records must not replace newer ones.
                feed = BatchReader(
                    self.cursor.folder, writer, position, RunFacts(self.run.id, self.run.project)
                )
                feed.read(segments, 0.0)
                batch = feed.sent()
                batch.repeated = False  # parts may have been delivered before, in different batches
                try:
                    self._hand_over(destination, batch)
                except TooEarly as error:
                    self.cursor.held_why = str(error)
                    return False
                self.cursor.released(writer, end)
        return True

    def _sign_of_life(self, destination: Destination, now_s: float) -> None:
        if not self.live or destination.heartbeat_s is None:
            return
        if self._sent_s is not None and now_s - self._sent_s < destination.heartbeat_s:
            return
        feed = self._newest_monitor()
        if feed is not None and feed.batch is None:
            destination.deliver(
                Batch(self.run, feed.facts, feed.position.next_seq, feed.position.next_seq - 1)
            )
            self._sent_s = now_s

    def _newest_monitor(self) -> BatchReader | None:
        monitors = [feed for writer, feed in self._feeds.items() if writer.startswith("monitor.")]
        return max(monitors, key=lambda feed: feed.facts.started_ms, default=None)

    # -- saving

    def _save(self) -> None:
        self.cursor.save_facts({section: getattr(self.run, section) for section in _SECTIONS})
        self.cursor.save()

    def _save_if_idle(self, due: list[BatchReader], now_s: float) -> None:
        """Save, unless the next round, which saves before it sends, follows at once."""
        missing = sum(feed.missing for feed in self._feeds.values())
        if missing:
            self.cursor.counts["missing"] = max(self.cursor.counts["missing"], missing)
        if any(feed.batch is not None for feed in due):  # something failed
            self._save()
            return
        with contextlib.suppress(Gone):
            self._read(now_s)
        if not any(feed.full for feed in self._feeds.values()):
            self._save()

    def finish(self, why: str) -> None:
        """Record in the cursor that nothing more is to be delivered.

        Raises:
            OSError: the cursor could not be written.
        """
        self.cursor.closed = why
        self.cursor.save()


def is_over(folder: str, host: str) -> bool:
    """Whether no more records are expected from a host: its newest monitor recorded the end of the run, or
    died a while ago and was not restarted, or there never was one. Reads the end of one file.
    """
    newest = Predecessor.find(folder, host, "")
    # A modification time in the future: the clock was set back after the file was written.
    return newest.died_ms is None or abs(time.time() - newest.written_ms / 1000) > ORPHAN_GRACE_S
