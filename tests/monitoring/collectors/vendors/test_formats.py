"""Vendors' output is parsed into rows, with any text around it."""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.formats import csv, flat, healthy, objects, text_of, tree


def test_csv_with_a_header_after_warnings() -> None:
    text = (
        "WARNING: old firmware, update it\nindex, load [%], used [MiB]\n1, 5 %, 7 MiB\n0, N/A, 1 MiB\n0, br"
    )
    assert csv(text, key="index") == [
        {"index": "1", "load": "5 %", "used": "7 MiB"},
        {"index": "0", "load": "N/A", "used": "1 MiB"},
    ]
    assert csv("No devices\n", key="index") == []


def test_csv_with_commas_in_a_name_and_a_number() -> None:
    text = (
        'index, name, power.draw [W]\n0, "Acme, rev. 2", 54.00 W\n"1", "Acme", "55.00 W"\n2, Acme, 55,5 W\n'
    )
    assert csv(text, key="index") == [
        {"index": "0", "name": "Acme, rev. 2", "power.draw": "54.00 W"},
        {"index": "1", "name": "Acme", "power.draw": "55.00 W"},
        {"index": "2", "name": "Acme", "power.draw": "55,5 W"},
    ]


def test_csv_without_a_header() -> None:
    assert csv("warning\n\n0,5\n1,,\n", ["index", "load"]) == [{"index": "0", "load": "5"}]


def test_indented_trees() -> None:
    text = """
=====LOG=====
Driver Version      : 5.0
XPU 00000000:01:00.0
    Name            : A : B
    Memory
        Total       : 8 MiB
        Used        : N/A
    Load            : 3 %
XPU 00000000:02:00.0
    Load            : 4 %
"""
    assert tree(text, "XPU ") == [
        {
            "": "00000000:01:00.0",
            "Name": "A : B",
            "Memory.Total": "8 MiB",
            "Memory.Used": "N/A",
            "Load": "3 %",
        },
        {"": "00000000:02:00.0", "Load": "4 %"},
    ]


def test_json_objects_become_rows() -> None:
    assert flat({"a ": {" b": 1, "c": [2]}, "d": None}) == {"a.b": 1, "a.c": [2], "d": None}
    assert objects([{"a": 1}, 5, {"b": 2}]) == [{"a": 1}, {"b": 2}]
    assert objects({"a": 1}) == [{"a": 1}]
    assert objects("text") == []


def test_invalid_utf_8_does_not_affect_readings() -> None:
    assert csv(text_of(b"index, name\n0, \xff\xfe\n"), key="index") == [
        {"index": "0", "name": "\ufffd\ufffd"}
    ]


def test_health_statuses() -> None:
    assert [healthy(word) for word in ("OK", "live", "Online", "running", "normal")] == [1.0] * 5
    assert [healthy(word) for word in ("Alarm", "dead", "offline", False)] == [0.0] * 4
    assert [healthy(word) for word in ("NA", "", "unknown", None)] == [None] * 4


def test_titles_of_trees_may_end_in_colons_and_the_whole_may_be_indented() -> None:
    text = """
    Card 0
        Load                 :
            Average          : 66 %
        Memory               :
            Used: 7 MiB
        Processes            :
    Card 1
        Load                 :
            Average          : 5 %
"""
    assert tree(text, "Card ") == [
        {"": "0", "Load.Average": "66 %", "Memory.Used": "7 MiB"},
        {"": "1", "Load.Average": "5 %"},
    ]


def test_a_byte_order_mark_and_colours_are_removed() -> None:
    assert text_of(b"\xef\xbb\xbf\x1b[1;31m| GPU |\x1b[0m\n\x1b]0;title\x07| 0 |") == "| GPU |\n| 0 |"
