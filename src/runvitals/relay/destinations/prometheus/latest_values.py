"""The newest values of a run, as a scrape sees them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from runvitals.model.metrics.prometheus import Labels, MetricFamily
from runvitals.model.state import silence_ms
from runvitals.relay.batch import Batch, WriterFacts
from runvitals.relay.destinations.prometheus.exposition import Sample
from runvitals.relay.timeseries.naming import LabeledSeries, Namer

RUN_INFO = MetricFamily("runvitals_run_info", "info", "", "The name, group and job type of a run.")
RUN_STATE = MetricFamily(
    "runvitals_run_state",
    "gauge",
    "",
    "1 for the current state of a run on a host, in the label state.",
)
# How long the end of a run stays visible, and the values of a run too short to be scraped before.
ENDED_MS = 300_000
LINGER_MS = 15_000
# Slowly changing metrics are not in every sample.
SLOWEST_MS = 90_000


class LatestRunValues:
    """The newest values of one run. Thread-safe.

    A value is removed when the run's monitor has been silent for too long, when its key has had no new value
    for 90 s, and 15 s after the run's end. Logged values do not expire.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._namers: dict[str, Namer] = {}
        self._values: dict[str, dict[LabeledSeries, tuple[int, float]]] = {}
        self._logged: dict[str, dict[LabeledSeries, float]] = {}
        self._max_silence_ms: dict[str, int] = {}
        self._heard_ms: dict[str, int] = {}  # by host, when its monitor was last heard from
        self._writers: dict[str, WriterFacts] = {}
        self._monitors: dict[str, WriterFacts] = {}  # by host
        self._ended: dict[str, tuple[int, str]] = {}  # by host, when and how
        self._hosts: dict[str, str] = {}
        self._info: Labels = ()
        self._run: dict[str, str] = {}

    def add(self, batch: Batch, now_ms: int) -> None:
        """Add the values of a batch."""
        with self._lock:
            namer = Namer.of(batch, self._namers)
            writer = batch.writer
            self._set_info(batch)
            self._hosts[writer.name] = writer.host
            self._writers[writer.name] = writer
            if writer.role == "monitor":
                self._monitors[writer.host] = writer
            self._max_silence_ms[writer.name] = silence_ms(writer.interval_s)
            values = self._values.setdefault(writer.name, {})
            for table in batch.samples:
                if not table.times_ms:
                    continue
                last = max(range(len(table)), key=table.times_ms.__getitem__)
                time_ms = table.times_ms[last]
                if writer.role == "monitor":
                    self._heard_ms[writer.host] = max(self._heard_ms.get(writer.host, 0), time_ms)
                for key, column in table:
                    series, value = namer.series(key), column[last]
                    if values.get(series, (0, 0.0))[0] > time_ms:
                        continue
                    if value == value:
                        values[series] = (time_ms, value * series.factor)
                    else:
                        values.pop(series, None)
            self._add_logs(batch, namer)
            self._set_end(batch, now_ms)

    def _set_info(self, batch: Batch) -> None:
        run = batch.run
        self._run = {"run": run.id, "project": run.project}
        labels = {
            **self._run,
            "name": run.name,
            "group": str(run.run.get("group") or ""),
            "job_type": str(run.run.get("job_type") or ""),
        }
        self._info = tuple(sorted((name, text) for name, text in labels.items() if text))

    def _add_logs(self, batch: Batch, namer: Namer) -> None:
        logged = self._logged.setdefault(batch.writer.name, {})
        for row in batch.logs:
            for name, value in row.numbers().items():
                logged[namer.logged_series(name)] = value
            if row.step is not None:
                logged[namer.step] = float(row.step)

    def _set_end(self, batch: Batch, now_ms: int) -> None:
        host = batch.writer.host
        for note in batch.notes_of("lifecycle"):
            if note.value.get("what") == "end":
                self._ended[host] = (now_ms, str(note.value.get("state", "finished")))
            elif note.value.get("what") == "attach":
                self._ended.pop(host, None)  # resumed

    def samples(self, now_ms: int) -> Iterator[Sample]:
        """Yield the values to show now."""
        with self._lock:
            hosts = set(self._hosts.values())
            states = {host: self._state(host, now_ms) for host in hosts}
            if any(states.values()):
                yield RUN_INFO, self._info, 1.0
            for host, state in states.items():
                if state:
                    labels = tuple(sorted({**self._run, "host": host, "state": state}.items()))
                    yield RUN_STATE, labels, 1.0
            for writer, host in self._hosts.items():
                if self._is_shown(host, now_ms):
                    yield from self._of_writer(writer, now_ms)

    def _of_writer(self, writer: str, now_ms: int) -> Iterator[Sample]:
        until_ms, _ = self._ended.get(self._hosts[writer], (now_ms, ""))
        oldest_ms = self._writers[writer].now_ms(until_ms) - max(self._max_silence_ms[writer], SLOWEST_MS)
        for series, (time_ms, value) in self._values.get(writer, {}).items():
            if time_ms >= oldest_ms:
                yield series.family, series.labels, value
        for series, value in self._logged.get(writer, {}).items():
            yield series.family, series.labels, value

    def _is_shown(self, host: str, now_ms: int) -> bool:
        ended = self._ended.get(host)
        if ended is not None:
            return now_ms - ended[0] < LINGER_MS
        return self._is_heard(host, now_ms)

    def _is_heard(self, host: str, now_ms: int) -> bool:
        """Return whether the host's monitor is alive; a run without a monitor is treated as running."""
        limits = [self._max_silence_ms[writer] for writer, on in self._hosts.items() if on == host]
        heard_ms = self._heard_ms.get(host)
        return heard_ms is None or self._monitors[host].now_ms(now_ms) - heard_ms <= max(limits)

    def _state(self, host: str, now_ms: int) -> str:
        ended = self._ended.get(host)
        if ended is None:
            return "running" if self._is_heard(host, now_ms) else ""
        return ended[1] if now_ms - ended[0] < ENDED_MS else ""

    def is_over(self, now_ms: int) -> bool:
        """Return whether the run has ended and nothing of it is shown any more."""
        with self._lock:
            hosts = set(self._hosts.values())
            return bool(hosts) and not any(self._state(host, now_ms) for host in hosts)
