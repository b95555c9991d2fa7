"""The delivery of one run (its writers on one host) to one destination, step by step.

A *round* is: read on; write down which stretches are sent now; send one batch of each writer; move on. The
position is saved before a round and after it; when there is more to send at once, both are one.
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
from runvitals.relay.cursor import Cursor, Position
from runvitals.relay.destination import Context, Destination, Gone, Rejected, TooEarly
from runvitals.relay.feed import BatchReader, add_info

_SECTIONS = ("project", "run", "config", "summary", "machine", "settings")
# What one round may hold in memory, over all writers.
MAX_ROUND_BYTES = 2 * 1024 * 1024
DELIVERED = "delivered"
# What is held is tried again so often, so many records at a time.
HELD_S = 3600.0
_HELD_RECORDS = 1000
# A run whose monitor is gone without a last word may get another one.
ORPHAN_GRACE_S = 60.0


class RunDelivery:
    """Delivers one run to one destination.

    Args:
        cursor: how far it is; its lock must be held by the caller.
        request_stop: called with a text when the far side wants the run to stop.
        environ: see `Context.environ`.

    Attributes:
        live: the run's monitor is there: signs of life are due, and more will come.
        caught_up: at the last look everything in the journal was delivered.

    Raises:
        OSError: the run's folder is not there.
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
        self._held_at_s: float | None = None  # when what is held is tried again; None: at once
        self._recall()

    @property
    def run_id(self) -> str:
        return self.run.id

    def _recall(self) -> None:
        """What the records that are delivered already said of the run."""
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
        """The destination, made at the first use.

        Raises:
            ValueError, ImportError: it cannot be.
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
        """Let go of the destination.

        Raises:
            whatever its `close` raises.
        """
        destination, self._destination = self._destination, None
        if destination is not None:
            destination.close()

    # -- a round

    def step(self, now_s: float, flush: bool = False) -> bool:
        """One round, if anything is due; True when there is more to send right away.

        Args:
            now_s: a monotonic clock.
            flush: send what there is, whether it is enough or not.

        Raises:
            whatever the destination raises but `Rejected`: the batch is kept, to be sent again.
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
            return not self.caught_up  # what came while the round was on its way, or lay behind its stretch
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
        behind = False  # a monitor's next life waits for the end of the one before: time never goes back
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
            feed.done()  # declarations alone, of a writer that is known: nothing that anybody needs
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
        """Deliver a batch, and count it."""
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
        """Try again what the far side did not take yet."""
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
        """Whether all of them are taken now."""
        about = self.cursor.position(writer).about
        for first, last in stretches:
            for begin in range(first, last + 1, _HELD_RECORDS):
                end = min(begin + _HELD_RECORDS - 1, last)
                position = Position({"next": begin, "flight": (begin, end), "about": about})
                # What it says of the run was heard in its time, and must not come over what was said since.
                feed = BatchReader(
                    self.cursor.folder, writer, position, RunFacts(self.run.id, self.run.project)
                )
                feed.read(segments, 0.0)
                batch = feed.sent()
                batch.repeated = False  # the far side may have had some of it, cut in another way
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

    # -- keeping

    def _save(self) -> None:
        self.cursor.save_facts({section: getattr(self.run, section) for section in _SECTIONS})
        self.cursor.save()

    def _save_if_idle(self, due: list[BatchReader], now_s: float) -> None:
        """Save, unless the next round, which saves before it sends, is about to begin."""
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
        """Nothing more is to be delivered: say so in the cursor.

        Raises:
            OSError: it cannot be written.
        """
        self.cursor.closed = why
        self.cursor.save()


def is_over(folder: str, host: str) -> bool:
    """Whether nothing more is to be expected from a host: its newest monitor wrote the end of the run, or
    died a while ago and got no successor, or there never was one. Reads the end of one file.
    """
    newest = Predecessor.find(folder, host, "")
    # A file from the future was written before somebody set the clock back.
    return newest.died_ms is None or abs(time.time() - newest.written_ms / 1000) > ORPHAN_GRACE_S
