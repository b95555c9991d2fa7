"""The delivery of one run (its writers on one host) to one destination.

A *round* reads what is new, saves which ranges are about to be sent, sends one batch per writer, and advances
the position. The position is saved before and after a round; between rounds that follow immediately, only
once.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping

from runvitals.journal import frames, paths
from runvitals.journal.reader import read_run
from runvitals.monitoring.monitor.predecessor import Predecessor
from runvitals.relay.batch import Batch, RunFacts
from runvitals.relay.destination import Context, Destination, Gone, Rejected, TooEarly, Unfinished
from runvitals.relay.engine.batch_reader import BatchReader, add_info
from runvitals.relay.engine.cursor import Cursor, Position

_SECTIONS = ("project", "entity", "run", "config", "summary", "machine", "settings")
# Bytes one round may hold in memory, over all writers.
MAX_ROUND_BYTES = 2 * 1024 * 1024
DELIVERED = "delivered"
# How often held batches are retried, and how many records at a time.
HELD_S = 3600.0
_MAX_HELD_RECORDS = 1000
# A run whose monitor died without recording an end may get another monitor.
ORPHAN_GRACE_S = 60.0


class RunDelivery:
    """Delivers one run to one destination.

    Args:
        cursor: the position; the caller must hold its lock.
        request_stop: called with a text when the destination asks for the run to be stopped.
        environ, request_command: see `Context`.

    Attributes:
        live: the run's monitor is connected: heartbeats are due, and more records will come.
        caught_up: everything in the journal had been delivered when it was last read.
        retries_held: batches are held that the destination will accept soon.

    Raises:
        OSError: the run's folder does not exist.
    """

    def __init__(
        self,
        cursor: Cursor,
        request_stop: Callable[[str], None] = lambda text: None,
        environ: Mapping[str, str] = os.environ,
        request_command: Callable[[int, str], None] = lambda number, name: None,
    ) -> None:
        self.cursor = cursor
        self._request_command = request_command
        self._environ = environ
        self.request_stop = request_stop
        self.live = False
        self.caught_up = False
        self.run = RunFacts(os.path.basename(cursor.folder))
        self._readers: dict[str, BatchReader] = {}
        self._destination: Destination | None = None
        self._sent_s: float | None = None
        self._unfinished = False  # a batch of the last round is passed again
        self._held_at_s: float | None = None  # when held batches are retried; None: immediately
        self.retries_held = False
        self._load_facts()

    @property
    def run_id(self) -> str:
        """The id of the run that is delivered."""
        return self.run.id

    def _load_facts(self) -> None:
        """Load the facts about the run from the records delivered so far."""
        facts = self.cursor.load_facts()
        if facts is not None:
            for section in _SECTIONS:
                setattr(self.run, section, facts.get(section, getattr(self.run, section)))
            return
        delivered = {
            writer: position.next_seq
            for writer, position in self.cursor.positions.items()
            if position.next_seq
        }
        if delivered:
            for record in read_run(self.cursor.folder):
                if record.type == frames.INFO and record.seq < delivered.get(record.writer, 0):
                    add_info(self.run, record.value)

    # -- the destination

    def open(self) -> Destination:
        """Return the destination; created at the first call.

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
                self._request_command,
            )
            self._destination = self.cursor.spec.create(context)
        return self._destination

    def close(self) -> None:
        """Close the destination; anything that its `close` raises propagates."""
        destination, self._destination = self._destination, None
        if destination is not None:
            destination.close()

    # -- a round

    def step(self, now_s: float, flush: bool = False) -> bool:
        """Run one round if anything is due; True if there is more to send immediately.

        Args:
            now_s: monotonic time.
            flush: send everything there is, even if a batch is not due yet, or held for a short time.

        Raises:
            Exception: anything the destination raises except `Rejected`; the batch is kept and sent again.
        """
        destination = self.open()
        self._read(now_s)
        due = [reader for reader in self._readers.values() if self._is_due(reader, destination, now_s, flush)]
        if not due:
            if flush and self.retries_held:
                self._held_at_s = None
            self._deliver_held(destination, now_s)
            self.caught_up = not any(reader.batch for reader in self._readers.values())
            self._send_heartbeat(destination, now_s)
            return False
        self.caught_up = False
        if self.cursor.has_begun:  # edits first: one may restore a run that takes nothing else
            due.sort(key=lambda reader: not paths.is_edit(reader.writer))
        batches = [(reader, reader.start_sending()) for reader in due]
        self._unfinished = False
        self._save()
        try:
            for reader, batch in batches:
                self._deliver(destination, reader, batch, now_s)
        finally:
            self._save_if_idle(due, now_s)
        self._sent_s = now_s
        self.caught_up = not any(reader.batch for reader in self._readers.values())
        if self._unfinished:
            return True
        if flush or not self.live:
            return not self.caught_up  # records that arrived during the round, or after the range in flight
        return any(reader.full for reader in self._readers.values())

    def _is_due(self, reader: BatchReader, destination: Destination, now_s: float, flush: bool) -> bool:
        if reader.batch is None:
            return False
        if flush or reader.full or not self.live:
            return True
        return (reader.urgent and destination.prompt) or now_s - reader.since_s >= destination.interval_s

    def _read(self, now_s: float) -> None:
        try:
            segments = paths.segments(self.cursor.folder)
        except FileNotFoundError:
            raise Gone("the run's folder was deleted") from None
        held_bytes = sum(reader.bytes for reader in self._readers.values())
        # A restarted monitor's records follow all of its predecessor's: times must not go back.
        behind = False
        # Edits last: the facts that they replace come before them.
        for writer, numbers in sorted(segments.items(), key=lambda item: (paths.is_edit(item[0]), item)):
            role, host = paths.role_and_host(writer)
            if host != self.cursor.host or (behind and role == "monitor"):
                continue
            if paths.is_edit(writer) and not self.cursor.spec.takes_edits:
                continue
            reader = self._readers.get(writer)
            if reader is None:
                position = self.cursor.position(writer)
                reader = self._readers[writer] = BatchReader(self.cursor.folder, writer, position, self.run)
            if held_bytes < MAX_ROUND_BYTES:
                held_bytes -= reader.bytes
                reader.read(numbers, now_s)
                held_bytes += reader.bytes
            behind = behind or (role == "monitor" and reader.full)

    def _deliver(self, destination: Destination, reader: BatchReader, batch: Batch, now_s: float) -> None:
        if batch.empty and reader.position.next_seq:
            reader.finish_batch()  # it only declares keys, and the writer is known: nothing to deliver
            return
        try:
            self._hand_over(destination, batch)
        except Unfinished:
            batch.repeated = self._unfinished = True
            return
        except TooEarly as error:
            self.cursor.hold(reader.writer, batch.first_seq, batch.last_seq, str(error))
            self._retry_held(now_s, error.after_s)
        except BaseException:
            batch.repeated = True
            raise
        reader.finish_batch()

    def _hand_over(self, destination: Destination, batch: Batch) -> None:
        """Deliver a batch and count it."""
        counts = self.cursor.counts
        rejected: set[int] = set()
        points = batch.points
        try:
            destination.deliver(batch)
        except Rejected as error:
            dropped = points if error.points is None else error.points
            counts["rejected"] += 1
            counts["dropped"] += dropped
            self.cursor.save_rejection(batch, error)
            if not error.records and dropped >= points:
                return
            rejected = {record.seq for record in error.records}
            points -= dropped
        counts["batches"] += 1
        counts["samples"] += sum(seq not in rejected for table in batch.samples for seq in table.seqs)
        counts["logs"] += sum(row.seq not in rejected for row in batch.logs)
        counts["notes"] += sum(note.seq not in rejected for note in batch.notes)
        counts["points"] += points
        self.cursor.delivered_ms = time.time_ns() // 1_000_000
        self.cursor.error = ""

    def _deliver_held(self, destination: Destination, now_s: float) -> None:
        """Retry the batches that the destination did not accept yet."""
        if not self.cursor.held or (self._held_at_s is not None and now_s < self._held_at_s):
            return
        self._retry_held(now_s, None)
        segments = paths.segments(self.cursor.folder)
        for writer, ranges in list(self.cursor.held.items()):
            if not self._deliver_ranges(destination, writer, ranges, segments.get(writer, []), now_s):
                break
        self._save()

    def _retry_held(self, now_s: float, after_s: float | None) -> None:
        """Note when held batches are retried."""
        self._held_at_s = now_s + (HELD_S if after_s is None else after_s)
        self.retries_held = after_s is not None

    def _deliver_ranges(
        self,
        destination: Destination,
        writer: str,
        ranges: list[tuple[int, int]],
        segments: list[int],
        now_s: float,
    ) -> bool:
        """Return whether the destination accepted all of them."""
        about = self.cursor.position(writer).about
        for first, last in ranges:
            for begin in range(first, last + 1, _MAX_HELD_RECORDS):
                end = min(begin + _MAX_HELD_RECORDS - 1, last)
                position = Position({"next": begin, "flight": (begin, end), "about": about})
                # Facts in old records must not replace newer ones.
                reader = BatchReader(
                    self.cursor.folder, writer, position, RunFacts(self.run.id, self.run.project)
                )
                reader.read(segments, 0.0)
                batch = reader.start_sending()
                batch.repeated = False  # parts may have been delivered before, in different batches
                try:
                    self._hand_over(destination, batch)
                except Unfinished:
                    self._held_at_s = None
                    return False
                except TooEarly as error:
                    self.cursor.held_why = str(error)
                    self._retry_held(now_s, error.after_s)
                    return False
                self.cursor.release(writer, end)
        return True

    def _send_heartbeat(self, destination: Destination, now_s: float) -> None:
        if not self.live or destination.heartbeat_s is None:
            return
        if self._sent_s is not None and now_s - self._sent_s < destination.heartbeat_s:
            return
        reader = self._newest_monitor()
        if reader is not None and reader.batch is None:
            destination.deliver(
                Batch(self.run, reader.facts, reader.position.next_seq, reader.position.next_seq - 1)
            )
            self._sent_s = now_s

    def _newest_monitor(self) -> BatchReader | None:
        monitors = [reader for writer, reader in self._readers.items() if writer.startswith("monitor.")]
        return max(monitors, key=lambda reader: reader.facts.started_ms, default=None)

    # -- saving

    def _save(self) -> None:
        self.cursor.save_facts({section: getattr(self.run, section) for section in _SECTIONS})
        self.cursor.save()

    def _save_if_idle(self, due: list[BatchReader], now_s: float) -> None:
        """Save, unless the next round, which saves before it sends, follows immediately."""
        missing = sum(reader.missing for reader in self._readers.values())
        if missing:
            self.cursor.counts["missing"] = max(self.cursor.counts["missing"], missing)
        if any(reader.batch is not None for reader in due):  # a delivery failed
            self._save()
            return
        with contextlib.suppress(Gone):
            self._read(now_s)
        if not any(reader.full for reader in self._readers.values()):
            self._save()

    def finish(self, why: str) -> None:
        """Record in the cursor that nothing more is to be delivered, or raise OSError."""
        self.cursor.closed = why
        self.cursor.save()


def is_over(folder: str, host: str) -> bool:
    """Return whether no more records are expected from a host.

    That is so if its newest monitor recorded the end of the run, or died more than `ORPHAN_GRACE_S` ago
    without being restarted, or if the host never had a monitor. Reads the end of one file.
    """
    newest = Predecessor.find(folder, host, "")
    # A modification time in the future: the clock was set back after the file was written.
    return newest.died_ms is None or abs(time.time() - newest.written_ms / 1000) > ORPHAN_GRACE_S
