"""Looking without sending: the metrics that reports or a run have, for an estimate of what they cost."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from itertools import pairwise
from math import nan

from runvitals.query.run_handle import open_run
from runvitals.relay.destinations.cloudwatch.datum import MetricReading, MetricSeries
from runvitals.relay.destinations.cloudwatch.dimensions import RUNTIME_TAG
from runvitals.relay.destinations.cloudwatch.estimate import Estimate
from runvitals.relay.destinations.cloudwatch.limits import legal_name
from runvitals.relay.destinations.cloudwatch.metric_selection import MetricSelection
from runvitals.relay.destinations.cloudwatch.pipe import Intake
from runvitals.relay.destinations.cloudwatch.run_metrics import LOG_GROUP, column

# neuron-monitor goes on for ever. After a minute every group that is due once a minute has been there.
LOOK_S = 60.0

# Reports of a file come all at once: their times say nothing about neuron-monitor's.
_SHORTEST_INTERVAL_S = 0.5


def of_reports(
    estimate: Estimate,
    selection: MetricSelection,
    fd: int,
    look_s: float = LOOK_S,
    clock: Callable[[], float] = time.monotonic,
) -> Intake:
    """Add the metrics of the reports that come from `fd` until it ends, somebody interrupts, or a minute is
    over.
    """
    intake = Intake(RUNTIME_TAG in estimate.dimensions)
    end_s = clock() + look_s
    times_s: list[float] = []
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    try:
        while poll.poll(max(0.0, end_s - clock()) * 1000) and clock() < end_s:
            data = os.read(fd, 1 << 16)
            for readings in intake.feed(data):
                times_s.append(clock())
                for reading in readings:
                    estimate.add(reading, selection.wants(reading))
            if not data:
                break
    except KeyboardInterrupt:
        pass  # enough was seen
    # neuron-monitor prints its first report at once, so the first gap is none of its intervals.
    gaps_s = sorted(later - earlier for earlier, later in pairwise(times_s[1:]))
    if gaps_s and gaps_s[len(gaps_s) // 2] >= _SHORTEST_INTERVAL_S:
        estimate.interval_s = round(gaps_s[len(gaps_s) // 2], 1)
    return intake


def of_run(estimate: Estimate, selection: MetricSelection, run_id: str, directory: str) -> None:
    """Add the metrics of a run, and what its `log()` calls have.

    Raises:
        LookupError: there is no such run.
    """
    opened = open_run(run_id, directory)
    columns = opened.metrics()
    keys = {one.key for one in columns.series}
    for one in columns.series:
        what = column(one.key)
        if what.rate is None:
            last = float(one.values[-1]) if len(one) else nan
            reading = what.reading(last)
        elif what.rate.key not in keys:
            reading = what.reading(nan)  # a single sample makes no rate yet
        else:
            continue
        estimate.add(reading, selection.wants(reading))
    for row in opened.history():
        for key, value in row.data.items():
            if isinstance(value, (int, float)):
                reading = MetricReading(MetricSeries(legal_name(key)), float(value), LOG_GROUP, key)
                estimate.add(reading, selection.wants(reading))
    intervals = [host.interval_s for host in opened.facts.hosts if host.interval_s]
    if intervals:
        estimate.interval_s = min(intervals)
