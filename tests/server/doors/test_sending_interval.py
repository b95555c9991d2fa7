"""How often senders of other systems send."""

from __future__ import annotations

import pytest

from runvitals.server.doors.sending_interval import DEFAULT_S, SendingInterval


def seconds(*times_s: float) -> float:
    interval = SendingInterval()
    for time_s in times_s:
        interval.add(int(time_s * 1000))
    return interval.seconds


@pytest.mark.parametrize(
    ("times_s", "expected"),
    [
        ([], DEFAULT_S),
        ([100], DEFAULT_S),
        ([100, 100, 90], DEFAULT_S),  # repeated, and late samples of another series
        ([100, 115], 45.0),
        ([100, 115, 120, 130, 145, 160], 45.0),
        ([0, 600], 1800.0),
        ([0, 15, 30, 45, 4000, 4015], 45.0),  # an outage
        ([0, 15, 30, 45, 105, 165, 225], 180.0),  # another interval was configured
        ([0, 0.1, 0.2], 1.0),
        ([0, 10**6], 86_400.0),
        ([0, 15, 29, 45], 45.0),  # what changes little keeps its interval
    ],
)
def test_it_is_three_times_the_median_of_the_newest_gaps(times_s: list[float], expected: float) -> None:
    assert seconds(*times_s) == expected
