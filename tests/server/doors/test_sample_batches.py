"""Batches of points: lists of keys stay few, and times that belong together become one."""

from __future__ import annotations

from runvitals.server.doors.sample_batches import KeyLists, batches, folded_key


def shape(points: dict[str, dict[int, float]], lists: KeyLists | None = None) -> list[object]:
    return [(keys, times, values.tolist()) for keys, times, values in batches(points, lists or KeyLists())]


def test_points_of_the_same_times_share_a_batch() -> None:
    points = {"b": {1000: 1.0, 2000: 2.0}, "a": {1000: 3.0, 2000: 4.0}, "slow": {1000: 5.0}}
    assert shape(points) == [
        (("a", "b"), [1000, 2000], [[3.0, 1.0], [4.0, 2.0]]),
        (("slow",), [1000], [[5.0]]),
    ]


def test_times_of_one_collection_become_one() -> None:
    assert shape({"a": {1000: 1.0}, "b": {1007: 2.0}, "c": {1060: 3.0}}) == [
        (("a", "b"), [1000], [[1.0, 2.0]]),
        (("c",), [1060], [[3.0]]),
    ]
    assert shape({"a": {1000: 1.0, 1010: 2.0}, "b": {1005: 3.0}}) == [
        (("a",), [1000, 1010], [[1.0], [2.0]]),
        (("b",), [1005], [[3.0]]),
    ]


def test_series_that_come_and_go_make_few_lists() -> None:
    lists = KeyLists()
    used: set[tuple[str, ...]] = set()
    for n in range(1, 2000):
        keys = [f"k{bit}" for bit in range(11) if n >> bit & 1]
        parts = lists.split(keys)
        assert sorted(key for listed in parts for key in listed) == sorted(keys)
        used.update(parts)
    assert len(used) <= 64 + 11


def test_keys_are_written_as_prometheus_does() -> None:
    assert folded_key("a.b", {}) == "a.b"
    assert folded_key("a", {"y": 'q"\\\n', "x": "1"}) == 'a{x="1",y="q\\"\\\\\\n"}'
    long = folded_key("a", {"x": "1" * 1000})
    assert (len(long), long != folded_key("a", {"x": "1" * 999})) == (512, True)
