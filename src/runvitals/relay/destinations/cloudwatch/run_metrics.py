"""Converts the samples of runs to readings: named by their keys, in CloudWatch's units, counters as rates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import isnan
from typing import NamedTuple

from runvitals.model.metrics import DEFINITIONS
from runvitals.readers.journals.rates import Rate, rate_between, rate_of
from runvitals.relay.batch import Batch
from runvitals.relay.destinations.cloudwatch.datum import MetricReading, MetricSeries
from runvitals.relay.destinations.cloudwatch.limits import valid_name
from runvitals.relay.destinations.cloudwatch.units import unit_of

# All values of `run.log()` are selected and priced together.
LOG_GROUP = "log"

# The time and value of each counter's last sample, for the next rate.
Last = dict[str, tuple[int, float]]


class KeyMapping(NamedTuple):
    """The series of a key, and the factor to its unit.

    Args:
        series: the series without dimensions.
        group: the first word of the key.
        field: the key; for a counter that of its rate.
        factor: from our unit to CloudWatch's.
        rate: None for values sent as they are.
    """

    series: MetricSeries
    group: str
    field: str
    factor: float
    rate: Rate | None

    def reading(self, value: float) -> MetricReading:
        """Return a value of the key, in CloudWatch's unit."""
        return MetricReading(self.series, value * self.factor, self.group, self.field)


@lru_cache(16_384)
def key_mapping(key: str) -> KeyMapping:
    """Return how a key is sent.

    Example:
        >>> key_mapping("memory.usedMB").series, key_mapping("disk.in").field
        (MetricSeries(name='memory.usedMB', unit='Bytes', dimensions=()), 'disk.readMBps')
    """
    rate = rate_of(key)
    field = rate.key if rate is not None else key
    match = DEFINITIONS.find(field)
    unit = unit_of(match.metric if match is not None else None)
    series = MetricSeries(valid_name(field), unit.name)
    return KeyMapping(series, key.partition(".")[0], field, unit.factor, rate)


def readings(batch: Batch, last: Last) -> Iterator[tuple[int, MetricReading]]:
    """Yield the readings of a batch, each with its time in milliseconds.

    Args:
        batch: samples and logged rows of one writer.
        last: the last values of this writer's counters; updated.
    """
    for moment in batch.moments():
        for key, value in zip(moment.keys, moment.values, strict=True):
            mapping = key_mapping(key)
            if mapping.rate is None:
                number = value
            else:
                before = last.get(key)
                last[key] = (moment.time_ms, value)
                if before is None:
                    continue
                number = rate_between(*before, moment.time_ms, value, mapping.rate.factor)
            if not isnan(number):  # a gap
                yield moment.time_ms, mapping.reading(number)
    for row in batch.logs:
        for key, value in row.numbers().items():
            yield row.time_ms, MetricReading(MetricSeries(valid_name(key)), value, LOG_GROUP, key)
