"""Which readings of which devices are missing, and why."""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing.missing_readings import ExpectedReadings, explain


def test_a_reading_that_was_never_there_is_missing() -> None:
    expected = ExpectedReadings(("temp", "powerWatts", "temp"))
    assert expected.missing(1) == ["temp", "powerWatts"]
    expected.note(1, {"temp": 41.0}, 100.0)
    assert expected.missing(1) == ["powerWatts"]
    assert expected.missing(0) == ["temp", "powerWatts"]


def test_a_reading_is_missing_after_a_while_and_back_at_once() -> None:
    expected = ExpectedReadings(("temp",), patience_s=20.0)
    expected.note(0, ("temp",), 100.0)
    missing = {}
    for mono_s in range(101, 150):
        expected.note(0, ("powerWatts",), float(mono_s))
        missing[mono_s] = expected.lacks(0, "temp")
    assert not any(missing[mono_s] for mono_s in range(101, 121))
    assert all(missing[mono_s] for mono_s in range(142, 150))
    expected.note(0, ("temp",), 151.0)
    assert expected.missing(0) == []


def test_a_reason_names_the_devices_if_others_have_the_reading() -> None:
    assert explain({0: {"temp": "N/A"}, 1: {"temp": "N/A"}}) == {"temp": "N/A"}
    assert explain({0: {}, 3: {"temp": "N/A"}, 4: {"temp": "N/A"}}) == {"temp": "N/A (GPU 3, 4)"}
    assert explain({0: {"temp": "N/A"}, 1: {"temp": "lost"}}) == {"temp": "N/A (GPU 0); lost (GPU 1)"}
    assert explain({2: {"temp": "N/A"}}, "IPU", others=1) == {"temp": "N/A (IPU 2)"}
    assert explain({}) == {}
