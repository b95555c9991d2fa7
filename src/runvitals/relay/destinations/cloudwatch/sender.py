"""Sends requests from a thread, so that a slow or absent network blocks nothing else."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from runvitals.backoff import Backoff
from runvitals.relay.destinations.cloudwatch.datum import Datum

LONGEST_PAUSE_S = 60.0

# About seven hours of 25 metrics with one datum per minute; 20 MB if each has 12 values.
WAITING_DATA = 10_000


class ServiceUnavailable(Exception):
    """Throttled, no network, or no credentials. The data are kept and sent later."""


class RequestRejected(Exception):
    """CloudWatch rejected the request permanently."""


class CloudWatchSender:
    """Passes requests to `put` in order, and retries while it raises `ServiceUnavailable`.

    Args:
        put: sends one request, or raises `ServiceUnavailable` or `RequestRejected`.
        waiting_data: the maximum number of data waiting; beyond it the oldest are dropped, and counted.
        backoff: the delay after consecutive failures.

    Attributes:
        requests, readings: how many were delivered.
        dropped: readings that were dropped because too many were waiting, or because they were rejected.
        problem: the last error, shown to the user; "" if the last request was delivered.
    """

    def __init__(
        self,
        put: Callable[[Sequence[Datum]], None],
        waiting_data: int = WAITING_DATA,
        backoff: Backoff | None = None,
    ) -> None:
        self.requests = 0
        self.readings = 0
        self.dropped = 0
        self.problem = ""
        self._put = put
        self._waiting_data = waiting_data
        self._backoff = backoff or Backoff(1.0, LONGEST_PAUSE_S, random.random)
        self._queue: deque[Sequence[Datum]] = deque()
        self._data = 0
        self._sending: Sequence[Datum] | None = None
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="cloudwatch", daemon=True)
        self._thread.start()

    def offer(self, request: Sequence[Datum]) -> None:
        """Accept a request. Returns immediately; the network is never waited for."""
        with self._changed:
            self._queue.append(request)
            self._data += len(request)
            while self._data > self._waiting_data and len(self._queue) > 1:
                self._drop(self._queue.popleft())
            self._changed.notify_all()

    def close(self, wait_s: float) -> bool:
        """Whether everything was delivered within `wait_s`. The rest is dropped and counted."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            delivered = self._changed.wait_for(self._is_idle, timeout=wait_s)
            for request in (*self._queue, self._sending or ()):
                self._drop(request)
            self._queue.clear()
        return delivered

    def _is_idle(self) -> bool:
        return not self._queue and self._sending is None

    def _drop(self, request: Sequence[Datum]) -> None:
        self.dropped += sum(datum.readings for datum in request)
        self._data -= len(request)

    def _run(self) -> None:
        pause_s = 0.0
        while True:
            with self._changed:
                if pause_s:
                    self._rest(pause_s)
                self._changed.wait_for(lambda: self._queue or self._closing)
                if not self._queue:
                    return
                request = self._queue.popleft()
                self._sending = request
            if self._sent(request):
                pause_s = 0.0
                self._backoff.worked()
            else:
                pause_s = self._backoff.failed(time.monotonic())

    def _rest(self, seconds: float) -> None:
        """Wait after a failure; only briefly if the sender is being closed."""
        if not self._closing:
            self._changed.wait_for(lambda: self._closing, timeout=seconds)
        else:
            self._changed.wait_for(lambda: not self._queue, timeout=min(seconds, 1.0))

    def _sent(self, request: Sequence[Datum]) -> bool:
        """Whether a request is done: delivered, or rejected permanently."""
        try:
            self._put(request)
        except ServiceUnavailable as error:
            with self._changed:
                self.problem = str(error)
                self._queue.appendleft(request)
                self._done()
            return False
        except RequestRejected as error:
            self._split(request, str(error))
            return True
        with self._changed:
            self.problem = ""
            self.requests += 1
            self.readings += sum(datum.readings for datum in request)
            self._data -= len(request)
            self._done()
        return True

    def _split(self, request: Sequence[Datum], reason: str) -> None:
        """Send the halves of a rejected request, down to the single rejected datum, which is dropped."""
        with self._changed:
            self.problem = reason
            if len(request) == 1:
                self._drop(request)
            else:
                middle = len(request) // 2
                self._queue.extendleft([request[middle:], request[:middle]])
            self._done()

    def _done(self) -> None:
        self._sending = None
        self._changed.notify_all()
