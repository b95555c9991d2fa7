"""The thread of a destination: serves its runs in turn and backs off when the destination is unavailable."""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable

from runvitals.base.backoff import Backoff
from runvitals.model.destination_kinds import UnknownDestination
from runvitals.relay.destination import Gone, Paused, Retry, Unauthorized
from runvitals.relay.engine.cursor import Cursor
from runvitals.relay.engine.delivery import DELIVERED, RunDelivery, is_over

POLL_S = 1.0
MAX_WAIT_S = 60.0
# A user must act first, and nothing shows that they did.
UNAUTHORIZED_RETRY_S = 600.0
# A user moved the run to the trash and may restore it.
PAUSED_S = 10.0


class DeliveryThread(threading.Thread):
    """Delivers runs to one destination until `stop()` is called.

    All running runs are served in turn; of the finished runs left behind by earlier relays, one at a time.
    After a failure, one attempt is made after 1, 2, 4 … 60 s with jitter, each with the next run in the
    queue, so that a run the destination never accepts does not block the others.

    Args:
        name: name of the destination, used for the thread's name.
        clock: returns monotonic seconds.
        report: called with (run, text) when the destination rejects our credentials or some records of a run;
            once per running run for each.
        hand_over: called with a delivery of which the destination cannot be imported here; returns whether
            another process continues it, once its lock is free.
    """

    def __init__(
        self,
        name: str,
        clock: Callable[[], float] = time.monotonic,
        report: Callable[[str, str], None] = lambda run_id, text: None,
        hand_over: Callable[[RunDelivery], bool] = lambda delivery: False,
    ) -> None:
        super().__init__(name=f"to {name}", daemon=True)
        self._clock = clock
        self._report = report
        self._hand_over = hand_over
        self._unauthorized: set[str] = set()  # runs for which rejected credentials were reported
        self._rejection_reported: set[str] = set()  # runs for which a rejection was reported
        # Runs whose credentials were rejected: when to retry, and a check whether retrying earlier may
        # succeed.
        self._skipped: dict[str, tuple[float, Callable[[], bool]]] = {}
        self._wake = threading.Condition()
        self._stopping = False
        self._live: deque[RunDelivery] = deque()
        self._unfinished: deque[RunDelivery] = deque()
        self._flush: set[str] = set()
        self._flushed: dict[str, int] = {}
        self._backoff = backoff()

    # -- called by other threads

    def serve(self, delivery: RunDelivery) -> None:
        """Start serving a run. The caller holds the lock of the delivery's cursor."""
        with self._wake:
            (self._live if delivery.live else self._unfinished).append(delivery)
            self._wake.notify_all()

    def find(self, run_id: str) -> RunDelivery | None:
        """Return the delivery of a run, if this thread serves it."""
        with self._wake:
            return next(
                (delivery for delivery in (*self._live, *self._unfinished) if delivery.run_id == run_id), None
            )

    def set_live(self, run_id: str, live: bool) -> None:
        """Note that the run's monitor connected or disconnected."""
        with self._wake:
            for delivery in (*self._live, *self._unfinished):
                if delivery.run_id == run_id:
                    delivery.live = live
                    if live and delivery in self._unfinished:
                        self._unfinished.remove(delivery)
                        self._live.append(delivery)
            self._flush.add(run_id)
            self._wake.notify_all()

    def flush(self, run_id: str, timeout_s: float) -> bool:
        """Deliver everything the run has now and wait for it; returns whether it was delivered."""
        until_s = time.monotonic() + timeout_s
        with self._wake:
            before = self._flushed.get(run_id, 0)
            self._flush.add(run_id)
            self._skipped.pop(run_id, None)
            self._backoff.hurry()
            self._wake.notify_all()
            while self._flushed.get(run_id, 0) == before:
                left_s = until_s - time.monotonic()
                gone = not self.is_alive() or self.find(run_id) is None
                if left_s <= 0 or gone or run_id in self._skipped:
                    return False
                self._wake.wait(left_s)
                self._flush.add(run_id)
            return True

    @property
    def idle(self) -> bool:
        """Whether there are no runs left to serve, apart from what their destination will accept soon."""
        with self._wake:
            return not self._live and all(
                delivery.caught_up and delivery.retries_held for delivery in self._unfinished
            )

    @property
    def done(self) -> bool:
        """Whether there are no runs left to serve."""
        with self._wake:
            return not self._live and not self._unfinished

    def stop(self) -> None:
        """Finish the current attempt, save the positions, and stop."""
        with self._wake:
            self._stopping = True
            self._wake.notify_all()

    # -- the thread

    def run(self) -> None:
        """Serve runs until `stop()` is called."""
        while not self._stopping:
            now_s = self._clock()
            wait_s = self.wait_s(now_s)
            if wait_s <= 0:
                wait_s = 0.0 if self.serve_due(now_s) else POLL_S
            with self._wake:
                if wait_s > 0 and not self._stopping and not (self._flush and self._backoff.due(now_s)):
                    self._wake.wait(wait_s)
        for delivery in (*self._live, *self._unfinished):
            self._release(delivery)

    def wait_s(self, now_s: float) -> float:
        """Return how many seconds to wait before the next attempt; negative: do not wait."""
        return self._backoff.until_s - now_s

    def serve_due(self, now_s: float) -> bool:
        """Serve every run that is due; True if there is more to send immediately."""
        with self._wake:
            queue = [
                *self._live,
                *[delivery for delivery in self._unfinished if delivery.run_id in self._flush],
            ]
            queue += [delivery for delivery in list(self._unfinished)[:1] if delivery not in queue]
            flush, self._flush = self._flush, set()
        more = False
        for delivery in queue:
            if self._stopping:
                break
            flushing = delivery.run_id in flush
            if self._is_skipped(delivery.run_id, now_s):
                continue
            try:
                if delivery.step(now_s, flush=flushing):
                    more = True
                    if flushing:
                        self._flush.add(delivery.run_id)
            except Paused as error:
                self._pause(delivery, error, now_s)
            except Gone as error:
                self._remove(delivery, f"no longer wanted: {error}")
            except Unauthorized as error:
                self._report_unauthorized(delivery, error, now_s)
            except (ImportError, UnknownDestination) as error:
                if not self._hand_over(delivery):
                    self._handle_failure(delivery, error, now_s, flushing)
                    return False
                self._remove(delivery, "")
            except Exception as error:  # noqa: BLE001 - an error in one destination must not stop other runs
                self._handle_failure(delivery, error, now_s, flushing)
                return False
            else:
                self._backoff.note_success()
                if not delivery.cursor.error:  # something was delivered since
                    self._unauthorized.discard(delivery.run_id)
                self._report_rejection(delivery)
                if delivery.caught_up:
                    self._caught_up(delivery, flushing)
        return more

    def _caught_up(self, delivery: RunDelivery, flushing: bool) -> None:
        if not delivery.live and is_over(delivery.cursor.folder, delivery.cursor.host):
            if delivery.cursor.held and delivery.retries_held:
                with self._wake:
                    self._put_last(delivery)
            else:
                self._remove(delivery, "" if delivery.cursor.held else DELIVERED)
        if flushing:
            with self._wake:
                self._flushed[delivery.run_id] = self._flushed.get(delivery.run_id, 0) + 1
                self._wake.notify_all()

    def _remove(self, delivery: RunDelivery, why: str) -> None:
        with self._wake:
            self._skipped.pop(delivery.run_id, None)
            for queue in (self._live, self._unfinished):
                if delivery in queue:
                    queue.remove(delivery)
        self._release(delivery, why)
        with self._wake:
            self._wake.notify_all()  # wakes threads waiting in flush()

    def _release(self, delivery: RunDelivery, why: str = "") -> None:
        """Stop serving a run; record the reason in the cursor if there is nothing more to deliver."""
        cursor = delivery.cursor
        try:
            delivery.close()
        except Exception as error:  # noqa: BLE001 - an error while closing must not affect other runs
            cursor.error = f"while closing: {_text(error)}"
        try:
            if why:
                delivery.finish(why)
        except OSError as error:
            cursor.error = str(error)  # the run's folder was deleted, or its disk is full
        cursor.unlock()

    def _handle_failure(self, delivery: RunDelivery, error: Exception, now_s: float, flushing: bool) -> None:
        """Back off, and move the run to the end of the queue."""
        delivery.cursor.error = _text(error)
        _save(delivery.cursor)
        after_s = error.after_s if isinstance(error, Retry) else None
        with self._wake:
            self._backoff.note_failure(now_s, after_s)
            if flushing:
                self._flush.add(delivery.run_id)
            self._put_last(delivery)

    def _report_unauthorized(self, delivery: RunDelivery, error: Unauthorized, now_s: float) -> None:
        """Report it, and skip the run until its credentials may have changed.

        Other runs may have valid ones.
        """
        delivery.cursor.error = _text(error)
        _save(delivery.cursor)
        run_id = delivery.run_id
        with self._wake:
            wait_s = Backoff(UNAUTHORIZED_RETRY_S, UNAUTHORIZED_RETRY_S, random.random).note_failure(now_s)
            self._skipped[run_id] = now_s + wait_s, error.remedied
            self._put_last(delivery)
            self._wake.notify_all()
        if delivery.live and run_id not in self._unauthorized:
            self._unauthorized.add(run_id)
            self._report(run_id, delivery.cursor.error)

    def _pause(self, delivery: RunDelivery, error: Paused, now_s: float) -> None:
        """Skip a run that is in the destination's trash for a while; for good if the run is over."""
        if not delivery.live:
            hint = f"if it is restored, `runvitals sync {delivery.run_id}` delivers the rest"
            self._remove(delivery, f"no longer wanted: {error}; {hint}")
            return
        delivery.cursor.error = f"{error}; if it is restored, delivery continues"
        _save(delivery.cursor)
        with self._wake:
            wait_s = Backoff(PAUSED_S, PAUSED_S, random.random).note_failure(now_s)
            self._skipped[delivery.run_id] = now_s + wait_s, lambda: False
            self._wake.notify_all()

    def _report_rejection(self, delivery: RunDelivery) -> None:
        """Record in the run's journal, once, that the destination rejects some of it."""
        if delivery.live and delivery.cursor.rejection and delivery.run_id not in self._rejection_reported:
            self._rejection_reported.add(delivery.run_id)
            self._report(
                delivery.run_id, f"{delivery.cursor.spec.text} rejected records: {delivery.cursor.rejection}"
            )

    def _is_skipped(self, run_id: str, now_s: float) -> bool:
        skipped = self._skipped.get(run_id)
        if skipped is None:
            return False
        until_s, remedied = skipped
        if now_s < until_s and not remedied():
            return True
        with self._wake:
            self._skipped.pop(run_id, None)
        return False

    def _put_last(self, delivery: RunDelivery) -> None:
        """Move a run to the end of its queue; the caller holds the lock."""
        for queue in (self._live, self._unfinished):
            if delivery in queue:
                queue.remove(delivery)
                queue.append(delivery)


def _save(cursor: Cursor) -> None:
    try:
        cursor.save()
    except OSError as error:
        cursor.error = f"{cursor.error}; the position could not be saved either: {error}"


def _text(error: Exception) -> str:
    if isinstance(error, (Retry, OSError, ValueError, ImportError)):
        return str(error) or type(error).__name__
    return traceback.format_exception_only(error)[-1].strip()


def backoff() -> Backoff:
    """Return the backoff of deliveries.

    It is the delay that the server requests, else 1, 2, 4 … 60 s. Up to half of it is added, so that a
    thousand senders do not come back simultaneously.
    """
    return Backoff(1.0, MAX_WAIT_S, random.random)
