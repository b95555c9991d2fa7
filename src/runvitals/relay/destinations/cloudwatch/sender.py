"""Sends requests from a thread, so that a slow or absent network blocks nothing else."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from runvitals.base.backoff import Backoff
from runvitals.relay.destinations.cloudwatch.datum import Datum
from runvitals.relay.destinations.cloudwatch.split_request import (
    RefusedReadings,
    ServiceUnavailable,
    SplitRequest,
)

MAX_PAUSE_S = 60.0

# About seven hours of 25 metrics with one datum per minute; 20 MB if each has 12 values.
WAITING_DATA = 10_000


class CloudWatchSender:
    """Passes requests to `put` in order, and retries while it raises `ServiceUnavailable`.

    Args:
        put: sends one request, or raises `ServiceUnavailable` or `RequestRejected`.
        waiting_data: the maximum number of data waiting; beyond it the oldest are dropped, and counted.
        backoff: the delay after consecutive failures.

    Attributes:
        requests, readings: how many were delivered.
        dropped: readings that were dropped because too many were waiting.
        refusals: readings that CloudWatch refused.
        problem: why nothing can be sent, shown to the user; "" if the last request was answered.
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
        self.refusals = RefusedReadings({})
        self.problem = ""
        self._put = put
        self._waiting_data = waiting_data
        self._backoff = backoff or Backoff(1.0, MAX_PAUSE_S, random.random)
        self._queue: deque[SplitRequest] = deque()
        self._data = 0
        self._sending: SplitRequest | None = None
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="cloudwatch", daemon=True)
        self._thread.start()

    def offer(self, request: Sequence[Datum]) -> None:
        """Accept a request. Returns immediately; the network is never waited for."""
        with self._changed:
            self._queue.append(SplitRequest(request, self._put, self.refusals))
            self._data += len(request)
            while self._data > self._waiting_data and len(self._queue) > 1:
                self._drop(self._queue.popleft())
            self._changed.notify_all()

    def close(self, wait_s: float) -> bool:
        """Return whether everything was delivered within `wait_s`. The rest is dropped and counted."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            delivered = self._changed.wait_for(self._is_idle, timeout=wait_s)
            for request in (*self._queue, *filter(None, [self._sending])):
                self._drop(request)
            self._queue.clear()
        return delivered

    def _is_idle(self) -> bool:
        return not self._queue and self._sending is None

    def _drop(self, request: SplitRequest) -> None:
        self.dropped += request.readings
        self._data -= request.size

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
            if self._send(request):
                pause_s = 0.0
                self._backoff.note_success()
            else:
                pause_s = self._backoff.note_failure(time.monotonic())

    def _rest(self, seconds: float) -> None:
        """Wait after a failure; only briefly if the sender is being closed."""
        if not self._closing:
            self._changed.wait_for(lambda: self._closing, timeout=seconds)
        else:
            self._changed.wait_for(lambda: not self._queue, timeout=min(seconds, 1.0))

    def _send(self, request: SplitRequest) -> bool:
        """Return whether the next part of a request was answered. What is left of it is the next request."""
        problem, accepted = "", 0
        try:
            accepted = request.send_part()
        except ServiceUnavailable as error:
            problem = str(error)
        with self._changed:
            self.problem = problem
            self.requests += bool(accepted)
            self.readings += accepted
            if request:
                self._queue.appendleft(request)
            else:
                self._data -= request.size
            self._sending = None
            self._changed.notify_all()
        return not problem
