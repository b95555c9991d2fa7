"""Labels that are too long: they are shortened or refused, and take neither time nor memory of others."""

from __future__ import annotations

import re
from typing import Any

import pytest

from runvitals.server.doors.remote_write.message import read_version_1, read_version_2
from runvitals.server.doors.remote_write.series_numbers import MAX_CHARACTERS
from runvitals.server.doors.remote_write.series_table import MAX_SERIES, SeriesTable
from runvitals.server.doors.routing import DEFAULT_RULES, NO_PLACE
from tests.processor_time import measured
from tests.server.doors.remote_write.messages import version_1, version_2

NOW_MS = 1_760_000_000_000


def table() -> SeriesTable:
    return SeriesTable(DEFAULT_RULES, NO_PLACE)


def test_a_long_text_that_many_series_share_is_handled_once() -> None:
    shared = "x" * 1_000_000
    series = [({"__name__": "up", "a": shared, "b": str(number)}, [(NOW_MS, 1.0)]) for number in range(3000)]
    found, message = table(), version_2(series)
    with measured() as cost:
        assert len(read_version_2(message, found.numbers).t) == 3000
    assert cost.times < 100, "to handle it for each series takes 750 times as long as a million additions"
    assert max(len(text) for labels in found.numbers.by_labels for text in labels) <= 1024


def test_long_texts_stay_different() -> None:
    labels = table()
    series = [({"__name__": "up", "a": "x" * 2000 + end}, [(NOW_MS, 1.0)]) for end in "ab"]
    assert read_version_1(version_1(series), labels.numbers).series.tolist() == [0, 1]
    assert read_version_1(version_1(series), labels.numbers).series.tolist() == [0, 1]


@pytest.mark.parametrize(("written", "read"), [(version_1, read_version_1), (version_2, read_version_2)])
def test_a_series_with_too_much_in_its_labels_is_refused(written: Any, read: Any) -> None:
    labels = {"__name__": "up"} | {f"l{number}": "x" * 1000 for number in range(20)}
    expected = rf"labels of 20\d+ characters; a series has at most {MAX_CHARACTERS}"
    sent = read(written([(labels, [(NOW_MS, 1.0)])]), table().numbers)
    assert len(sent.t) == 0
    assert re.fullmatch(expected, sent.invalid[0])


def test_what_is_remembered_of_long_labels_is_bounded() -> None:
    found = table()
    for number in range(20):
        labels = {"__name__": "up", "a": f"{number}" * 100_000}
        read_version_1(version_1([(labels, [(NOW_MS, 1.0)])]), found.numbers)
    assert sum(map(len, found.numbers.by_bytes)) < MAX_CHARACTERS
    labels = {"__name__": "up"} | {f"l{number}": "x" * 1000 for number in range(10)}
    before = len(found)
    read_version_1(version_1([(labels, [(NOW_MS, 1.0)])]), found.numbers)
    assert len(found) - before == 11, f"of {MAX_SERIES} series"
