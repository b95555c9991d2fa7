"""Collects the metrics of reports, or of a run, for a cost estimate. Nothing is sent."""

from __future__ import annotations

import os
import select
import time
from itertools import pairwise
from math import nan

from runvitals.readers.journals.run_handle import open_run
from runvitals.relay.destinations.cloudwatch.datum import MetricReading, MetricSeries
from runvitals.relay.destinations.cloudwatch.dimensions import RUNTIME_TAG
from runvitals.relay.destinations.cloudwatch.estimate import Estimate
from runvitals.relay.destinations.cloudwatch.limits import valid_name
from runvitals.relay.destinations.cloudwatch.metric_selection import MetricGlobs
from runvitals.relay.destinations.cloudwatch.pipe import ReportReader
from runvitals.relay.destinations.cloudwatch.run_metrics import LOG_GROUP, key_mapping

# neuron-monitor never stops. Groups may have a period of a minute; by then each has been reported.
DURATION_S = 60.0

# Shorter intervals are those of reading a file, not of neuron-monitor.
_MIN_INTERVAL_S = 0.5


def add_reports(estimate: Estimate, selection: MetricGlobs, fd: int) -> ReportReader:
    """Add the metrics of the reports from `fd` until its end, an interrupt, or `DURATION_S` have passed."""
    reader = ReportReader(RUNTIME_TAG in estimate.dimensions)
    end_s = time.monotonic() + DURATION_S
    times_s: list[float] = []
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    try:
        while poll.poll(max(0.0, end_s - time.monotonic()) * 1000) and time.monotonic() < end_s:
            data = os.read(fd, 1 << 16)
            for readings in reader.feed(data):
                times_s.append(time.monotonic())
                for reading in readings:
                    estimate.add(reading, selection.wants(reading))
            if not data:
                break
    except KeyboardInterrupt:
        pass  # the estimate uses the reports read so far
    # neuron-monitor prints its first report immediately, so the first gap is shorter than its interval.
    gaps_s = sorted(later - earlier for earlier, later in pairwise(times_s[1:]))
    if gaps_s and gaps_s[len(gaps_s) // 2] >= _MIN_INTERVAL_S:
        estimate.interval_s = round(gaps_s[len(gaps_s) // 2], 1)
    return reader


def add_run(estimate: Estimate, selection: MetricGlobs, run_id: str, directory: str) -> None:
    """Add the metrics of a run and the numbers it logged.

    Raises:
        LookupError: no such run.
    """
    run = open_run(run_id, directory)
    columns = run.metrics()
    keys = {series.key for series in columns.series}
    for series in columns.series:
        mapping = key_mapping(series.key)
        if mapping.rate is None:
            last = float(series.values[-1]) if len(series) else nan
            reading = mapping.reading(last)
        elif mapping.rate.key not in keys:
            reading = mapping.reading(nan)  # a rate needs two samples
        else:
            continue
        estimate.add(reading, selection.wants(reading))
    for row in run.history():
        for key, value in row.data.items():
            if isinstance(value, (int, float)):
                reading = MetricReading(MetricSeries(valid_name(key)), float(value), LOG_GROUP, key)
                estimate.add(reading, selection.wants(reading))
    intervals = [host.interval_s for host in run.facts.hosts if host.interval_s]
    if intervals:
        estimate.interval_s = min(intervals)
