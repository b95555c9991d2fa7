"""`neuron-monitor | runvitals cloudwatch`: reads reports from a pipe and sends data once a minute."""

from __future__ import annotations

import os
import random
import select
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TextIO

from runvitals.relay.destinations.cloudwatch import emf, limits, neuron_report
from runvitals.relay.destinations.cloudwatch.client import CloudWatchClient
from runvitals.relay.destinations.cloudwatch.datum import Datum, Dimensions, MetricReading
from runvitals.relay.destinations.cloudwatch.dimensions import RUNTIME_TAG, DimensionLookup, resolve
from runvitals.relay.destinations.cloudwatch.json_documents import JsonDocuments
from runvitals.relay.destinations.cloudwatch.metric_selection import MetricGlobs
from runvitals.relay.destinations.cloudwatch.minute_aggregation import MinuteAggregation
from runvitals.relay.destinations.cloudwatch.sender import CloudWatchSender
from runvitals.relay.destinations.cloudwatch.split_request import RefusedReadings

# Time limit for the last data after the input has ended.
LAST_WAIT_S = 20.0

# When this many data are full, they are sent before their minute ends.
_FULL_DATA = 1000


class Sink(Protocol):
    """Where data are sent."""

    def offer(self, data: Sequence[Datum]) -> None:
        """Accept data without blocking."""

    def close(self) -> bool:
        """Return whether everything was delivered."""

    def report(self) -> str:
        """Return a summary of what was delivered, for the user."""

    def problems(self) -> list[str]:
        """Return the reasons why readings were not delivered, for the user."""


class PutMetricDataSink:
    """Sends data to CloudWatch from a thread."""

    def __init__(self, client: CloudWatchClient) -> None:
        self._client = client
        self._sender = CloudWatchSender(client.put)
        self._untimely = RefusedReadings({})

    def offer(self, data: Sequence[Datum]) -> None:
        """Queue the data whose times CloudWatch accepts."""
        accepted = limits.timely(data, time.time(), self._untimely)
        for request in limits.pack_requests(accepted, self._client.protocol):
            self._sender.offer(request)

    def close(self) -> bool:
        """Deliver what is queued, for some seconds; return whether everything was delivered."""
        delivered = self._sender.close(LAST_WAIT_S)
        return delivered and not self._sender.dropped and not self._sender.refusals.readings

    def report(self) -> str:
        """Return what was delivered."""
        return f"{self._sender.readings} readings delivered in {self._sender.requests} requests"

    def problems(self) -> list[str]:
        """Return what was not delivered, and why."""
        problems = [*self._untimely.texts(), *self._sender.refusals.texts()]
        if self._sender.dropped:
            problems.append(f"{self._sender.dropped} readings dropped")
        if self._sender.problem:
            problems.append(self._sender.problem)
        return problems


class EmfSink:
    """Writes data as lines in the embedded metric format."""

    def __init__(self, namespace: str, file: TextIO) -> None:
        self._namespace = namespace
        self._file = file
        self._lines = 0

    def offer(self, data: Sequence[Datum]) -> None:
        """Write the data as lines of the embedded metric format."""
        for line in emf.lines(self._namespace, data):
            self._file.write(line + "\n")
            self._lines += 1
        self._file.flush()

    def close(self) -> bool:
        """Return True: every line has been written."""
        return True

    def report(self) -> str:
        """Return how many lines were written."""
        return f"{self._lines} lines written"

    def problems(self) -> list[str]:
        """Return none: a line that cannot be written raises OSError."""
        return []


class ReportReader:
    """Parses reports from a byte stream into readings.

    Attributes:
        reports: the number of reports read.
        instance: the instance facts in the last report.
        errors: the number of reports with each error of neuron-monitor.
    """

    def __init__(self, by_tag: bool = False) -> None:
        self.reports = 0
        self.instance: dict[str, str] = {}
        self.errors: dict[str, int] = {}
        self._by_tag = by_tag
        self._documents = JsonDocuments()
        self._foreign = 0

    @property
    def malformed(self) -> int:
        """Lines that were not reports."""
        return self._documents.malformed + self._foreign

    def feed(self, data: bytes) -> Iterator[list[MetricReading]]:
        """Yield the readings of each report completed by these bytes; b"" is the end of the input."""
        for document in self._documents.feed(data) if data else self._documents.end():
            try:
                report = neuron_report.read(document, self._by_tag)
            except ValueError:
                self._foreign += 1
                continue
            self.reports += 1
            self.instance = report.instance
            for error in report.errors:
                if error in self.errors or len(self.errors) < 100:
                    self.errors[error] = self.errors.get(error, 0) + 1
            yield report.readings

    def problems(self) -> list[str]:
        """Return what was skipped, and the errors that neuron-monitor reported."""
        problems = [f"{self.malformed} lines skipped: not a report"] if self.malformed else []
        if self.errors:
            first, count = next(iter(self.errors.items()))
            more = f" (and {len(self.errors) - 1} other errors)" if len(self.errors) > 1 else ""
            problems.append(f"neuron-monitor reported an error {count} times: {first}{more}")
        return problems


class Pipe:
    """Reads, aggregates and sends.

    Args:
        fd: the descriptor that neuron-monitor writes to.
        dimensions: as returned by `dimensions.parse`; looked up when the first report arrives.
        every_s: how often data are sent.
        show: called with a line for the user, at most once per interval while there are problems.

    Example:
        >>> Pipe(0, MetricGlobs(), {}, EmfSink("Neuron", sys.stdout)).run()
        True
    """

    def __init__(
        self,
        fd: int,
        selection: MetricGlobs,
        dimensions: Mapping[str, str | None],
        sink: Sink,
        resolution_s: int = 60,
        every_s: float = 60.0,
        show: Callable[[str], Any] = lambda text: print(text, file=sys.stderr, flush=True),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._fd = fd
        self._selection = selection
        self._unresolved_dimensions = dimensions
        self._sink = sink
        self._aggregation = MinuteAggregation(resolution_s)
        self._every_s = every_s
        self._show = show
        self._clock = clock
        self._reader = ReportReader(RUNTIME_TAG in dimensions)
        self._dimensions: Dimensions | None = None
        self._shown_problems = ""
        # Minutes end everywhere at the same time; requests should not all arrive then.
        self._offset_s = random.uniform(0.0, every_s)

    def run(self) -> bool:
        """Run until the input ends or the user interrupts; returns whether everything was delivered.

        Raises:
            LookupError: a requested dimension is not available.
        """
        try:
            self._read()
        except KeyboardInterrupt:
            pass  # handled like the end of the input: what was read is still sent
        self._sink.offer(self._aggregation.take())
        delivered = self._sink.close()
        self._show(f"runvitals: {self._summary()}")
        return delivered

    def _read(self) -> None:
        due_s = self._next_due_s()
        poll = select.poll()  # unlike select(), supports descriptors of any number
        poll.register(self._fd, select.POLLIN)
        while True:
            if poll.poll(max(0.0, due_s - self._clock()) * 1000):
                data = os.read(self._fd, 1 << 16)
                for readings in self._reader.feed(data):
                    self._take(readings)
                if not data:
                    return
            if self._clock() >= due_s:
                self._sink.offer(self._aggregation.take(before_ms=int(self._clock() * 1000)))
                self._show_problems()
                due_s = self._next_due_s()

    def _next_due_s(self) -> float:
        now_s = self._clock()
        start_s = now_s - now_s % self._every_s + self._offset_s
        return start_s if start_s > now_s else start_s + self._every_s

    def _take(self, readings: Sequence[MetricReading]) -> None:
        if self._dimensions is None:
            lookup = DimensionLookup(self._reader.instance)
            self._dimensions = resolve(self._unresolved_dimensions, lookup.find)
        time_ms = int(self._clock() * 1000)
        for reading in readings:
            if self._selection.wants(reading):
                series = reading.series
                if self._dimensions:
                    series = series._replace(dimensions=self._dimensions + series.dimensions)
                self._aggregation.add(series, time_ms, reading.value)
        if self._aggregation.full >= _FULL_DATA:
            self._sink.offer(self._aggregation.take(before_ms=0))

    def _show_problems(self) -> None:
        problems = "; ".join(self._problems())
        if problems and problems != self._shown_problems:
            self._show(f"runvitals: {self._summary()}")
        self._shown_problems = problems

    def _problems(self) -> list[str]:
        rejected = self._aggregation.rejected
        invalid = [f"{rejected} readings that are not finite or too large"] if rejected else []
        unmatched = self._selection.problems() if self._reader.reports else []
        return [*self._reader.problems(), *unmatched, *invalid, *self._sink.problems()]

    def _summary(self) -> str:
        return "; ".join([f"{self._reader.reports} reports, {self._sink.report()}", *self._problems()])
