"""A destination's own thread: it takes its runs in turn, and waits when the far side is not there."""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable

from runvitals.backoff import Backoff
from runvitals.relay.cursor import Cursor
from runvitals.relay.delivery import DELIVERED, RunDelivery, is_over
from runvitals.relay.destination import Gone, Paused, Retry, Unauthorized

POLL_S = 1.0
LONGEST_WAIT_S = 60.0
# Where a person must do something first, and nothing shows that it was done.
NOT_LET_IN_S = 600.0
# Where a person threw a run away and may bring it back.
PAUSED_S = 10.0


class DeliveryThread(threading.Thread):
    """Delivers runs to one destination until it is told to end.

    All runs that go on are served in turn; of those that are over and left behind, one at a time. After a
    failure one attempt at a time is made, after 1, 2, 4 … 60 s with jitter, each with the next run in line,
    so that a run that the far side never takes does not hold up the others.

    Args:
        name: of the destination, for the thread's name.
        clock: monotonic seconds; tests hand in their own.
        tell: called with (run, text) when the far side does not let us in, or refuses some of a run: once
            each for a run that goes on.
    """

    def __init__(
        self,
        name: str,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[str, str], None] = lambda run_id, text: None,
    ) -> None:
        super().__init__(name=f"to {name}", daemon=True)
        self._clock = clock
        self._tell = tell
        self._told: set[str] = set()
        self._refused: set[str] = set()  # runs of which it was told that something was refused
        # Runs that were not let in: when to ask again, and what tells earlier that it is of use.
        self._shut: dict[str, tuple[float, Callable[[], bool]]] = {}
        self._wake = threading.Condition()
        self._ending = False
        self._live: deque[RunDelivery] = deque()
        self._left: deque[RunDelivery] = deque()
        self._flush: set[str] = set()
        self._flushed: dict[str, int] = {}
        self._backoff = backoff()

    # -- what other threads call

    def serve(self, delivery: RunDelivery) -> None:
        """Take over a run whose delivery's lock is held."""
        with self._wake:
            (self._live if delivery.live else self._left).append(delivery)
            self._wake.notify_all()

    def find(self, run_id: str) -> RunDelivery | None:
        """The run's delivery, if it is in this courier's hands."""
        with self._wake:
            return next((one for one in (*self._live, *self._left) if one.run_id == run_id), None)

    def set_live(self, run_id: str, live: bool) -> None:
        """The run's monitor came, or went."""
        with self._wake:
            for delivery in (*self._live, *self._left):
                if delivery.run_id == run_id:
                    delivery.live = live
                    if live and delivery in self._left:
                        self._left.remove(delivery)
                        self._live.append(delivery)
            self._flush.add(run_id)
            self._wake.notify_all()

    def flush(self, run_id: str, timeout_s: float) -> bool:
        """Deliver at once what there is of a run now, and wait for it; whether it is delivered."""
        until_s = time.monotonic() + timeout_s
        with self._wake:
            before = self._flushed.get(run_id, 0)
            self._flush.add(run_id)
            self._shut.pop(run_id, None)
            self._backoff.hurry()
            self._wake.notify_all()
            while self._flushed.get(run_id, 0) == before:
                left_s = until_s - time.monotonic()
                gone = not self.is_alive() or self.find(run_id) is None
                if left_s <= 0 or gone or run_id in self._shut:
                    return False
                self._wake.wait(left_s)
                self._flush.add(run_id)
            return True

    @property
    def idle(self) -> bool:
        """There is no run left to serve."""
        with self._wake:
            return not self._live and not self._left

    def end(self) -> None:
        """Finish the attempt that is being made, keep the positions, and stop."""
        with self._wake:
            self._ending = True
            self._wake.notify_all()

    # -- the thread

    def run(self) -> None:
        """Until `end()`."""
        while not self._ending:
            now_s = self._clock()
            wait_s = self.wait_s(now_s)
            if wait_s <= 0:
                wait_s = 0.0 if self.turn(now_s) else POLL_S
            with self._wake:
                if wait_s > 0 and not self._ending and not (self._flush and self._backoff.due(now_s)):
                    self._wake.wait(wait_s)
        for delivery in (*self._live, *self._left):
            self._release(delivery)

    def wait_s(self, now_s: float) -> float:
        """How long to leave the far side alone; less than 0: not at all."""
        return self._backoff.until_s - now_s

    def turn(self, now_s: float) -> bool:
        """Serve every run that is due; True when there is more to do at once."""
        with self._wake:
            line = [*self._live, *[one for one in self._left if one.run_id in self._flush]]
            line += [one for one in list(self._left)[:1] if one not in line]
            flush, self._flush = self._flush, set()
        more = False
        for delivery in line:
            if self._ending:
                break
            wanted = delivery.run_id in flush
            if self._is_shut(delivery.run_id, now_s):
                continue
            try:
                if delivery.step(now_s, flush=wanted):
                    more = True
                    if wanted:
                        self._flush.add(delivery.run_id)
            except Paused as error:
                self._pause(delivery, error, now_s)
            except Gone as error:
                self._drop(delivery, f"not wanted any more: {error}")
            except Unauthorized as error:
                self._not_let_in(delivery, error, now_s)
            except Exception as error:  # noqa: BLE001 - whatever a destination raises, other runs go on
                self._failed(delivery, error, now_s, wanted)
                return False
            else:
                self._backoff.worked()
                if not delivery.cursor.error:  # something was delivered since
                    self._told.discard(delivery.run_id)
                self._report_refusal(delivery)
                if delivery.caught_up:
                    self._caught_up(delivery, wanted)
        return more

    def _caught_up(self, delivery: RunDelivery, wanted: bool) -> None:
        if not delivery.live and is_over(delivery.cursor.folder, delivery.cursor.host):
            self._drop(delivery, "" if delivery.cursor.held else DELIVERED)
        if wanted:
            with self._wake:
                self._flushed[delivery.run_id] = self._flushed.get(delivery.run_id, 0) + 1
                self._wake.notify_all()

    def _drop(self, delivery: RunDelivery, why: str) -> None:
        with self._wake:
            self._shut.pop(delivery.run_id, None)
            for line in (self._live, self._left):
                if delivery in line:
                    line.remove(delivery)
        self._release(delivery, why)
        with self._wake:
            self._wake.notify_all()  # whoever waits for it need not wait longer

    def _release(self, delivery: RunDelivery, why: str = "") -> None:
        """Let go of a run; with its last word in the cursor, if there is nothing more to deliver."""
        cursor = delivery.cursor
        try:
            delivery.close()
        except Exception as error:  # noqa: BLE001 - the destination's last words are its own affair
            cursor.error = f"at its end: {_text(error)}"
        try:
            if why:
                delivery.finish(why)
        except OSError as error:
            cursor.error = str(error)  # the run's folder is gone, or its disk is full
        cursor.unlock()

    def _failed(self, delivery: RunDelivery, error: Exception, now_s: float, wanted: bool) -> None:
        """Wait, and put the run at the end of the line."""
        delivery.cursor.error = _text(error)
        _keep(delivery.cursor)
        asked_s = error.after_s if isinstance(error, Retry) else None
        with self._wake:
            self._backoff.failed(now_s, asked_s)
            if wanted:
                self._flush.add(delivery.run_id)
            self._put_last(delivery)

    def _not_let_in(self, delivery: RunDelivery, error: Unauthorized, now_s: float) -> None:
        """Say so, and leave the run until there is hope. Another may have another token."""
        delivery.cursor.error = _text(error)
        _keep(delivery.cursor)
        run_id = delivery.run_id
        with self._wake:
            wait_s = Backoff(NOT_LET_IN_S, NOT_LET_IN_S, random.random).failed(now_s)
            self._shut[run_id] = now_s + wait_s, error.remedied
            self._put_last(delivery)
            self._wake.notify_all()
        if delivery.live and run_id not in self._told:
            self._told.add(run_id)
            self._tell(run_id, str(error))

    def _pause(self, delivery: RunDelivery, error: Paused, now_s: float) -> None:
        """Leave a run that was thrown away over there for a while; for good where it is over here, too."""
        if not delivery.live:
            again = f"if it is restored, `runvitals sync {delivery.run_id}` delivers the rest"
            self._drop(delivery, f"not wanted any more: {error}; {again}")
            return
        delivery.cursor.error = f"{error}; if it is restored, delivery goes on"
        _keep(delivery.cursor)
        with self._wake:
            wait_s = Backoff(PAUSED_S, PAUSED_S, random.random).failed(now_s)
            self._shut[delivery.run_id] = now_s + wait_s, lambda: False
            self._wake.notify_all()

    def _report_refusal(self, delivery: RunDelivery) -> None:
        """Say in the run's journal, once, that the far side does not take some of it."""
        if delivery.live and delivery.cursor.rejection and delivery.run_id not in self._refused:
            self._refused.add(delivery.run_id)
            self._tell(delivery.run_id, f"{delivery.cursor.spec.text} refused: {delivery.cursor.rejection}")

    def _is_shut(self, run_id: str, now_s: float) -> bool:
        shut = self._shut.get(run_id)
        if shut is None:
            return False
        until_s, remedied = shut
        if now_s < until_s and not remedied():
            return True
        with self._wake:
            self._shut.pop(run_id, None)
        return False

    def _put_last(self, delivery: RunDelivery) -> None:
        """Put a run at the end of its line; the lock is held."""
        for line in (self._live, self._left):
            if delivery in line:
                line.remove(delivery)
                line.append(delivery)


def _keep(cursor: Cursor) -> None:
    try:
        cursor.save()
    except OSError as error:
        cursor.error = f"{cursor.error}; nor can the position be saved: {error}"


def _text(error: Exception) -> str:
    if isinstance(error, (Retry, OSError, ValueError, ImportError)):
        return str(error) or type(error).__name__
    return traceback.format_exception_only(error)[-1].strip()


def backoff() -> Backoff:
    """The waits of whoever delivers: what the far side asks for, else 1, 2, 4 … 60 s; up to a half longer, so
    that a thousand senders do not come back at once.
    """
    return Backoff(1.0, LONGEST_WAIT_S, random.random)
