"""How the columns of a host become lists of keys."""

from __future__ import annotations

import numpy as np

from runvitals.server.doors.remote_write.targets import Target
from runvitals.server.doors.routing import route_of


def target(columns: int) -> Target:
    new_target = Target(route_of({"instance": "n1:9100"}))
    for number in range(columns):
        new_target.column(f"key{number}")
    return new_target


def widths(of: Target, columns: list[int]) -> list[int]:
    return [column_list.width for column_list in of.column_lists(columns, np.array(columns).tobytes())]


def test_all_columns_are_one_list() -> None:
    host = target(500)
    assert widths(host, list(range(500))) == [500]
    assert host.column_lists(list(range(500)), np.arange(500).tobytes())[0].keys


def test_columns_that_come_again_are_one_list() -> None:
    host = target(500)
    part = list(range(300, 500))
    assert widths(host, part) == [4, 16, 64, 64, 32, 16, 4]
    assert widths(host, part) == [200]


def test_sets_of_columns_are_limited() -> None:
    host = target(100)
    for first in range(40):
        columns = list(range(first, first + 50))
        widths(host, columns)
        widths(host, columns)
    exact = [first for first in range(40) if widths(host, list(range(first, first + 50))) == [50]]
    assert exact == list(range(16))


def test_lists_whose_numbers_are_unknown_are_sent_again() -> None:
    host = target(3)
    [first] = host.column_lists([0, 1, 2], np.arange(3).tobytes())
    first.schema = 7
    host.forget_schemas()
    assert first.schema is None
