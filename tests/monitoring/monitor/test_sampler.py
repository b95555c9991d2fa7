from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Scope, Tick
from runvitals.monitoring.collectors.nvidia.collector import Nvidia
from runvitals.monitoring.monitor.sampler import Sampler, Schedule
from tests.monitoring.collectors.nvidia.fake import FakeGpu, FakeNvml
from tests.patience import PATIENCE_S


class Scripted:
    """A collector that returns the next values of its script at every tick, or raises the next error."""

    name = "scripted"

    def __init__(self, *script: dict[str, float] | Exception) -> None:
        self.script = list(script)
        self.samples = 0

    def sample(self, tick: Tick) -> None:
        self.samples += 1
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        tick.gauges.update(step)


class Reports(list[tuple[str, str | None]]):
    def __call__(self, source: str, error: Exception | None) -> None:
        self.append((source, None if error is None else str(error)))


def test_a_failing_source_is_reported_once_and_retried_with_backoff() -> None:
    broken = Scripted(OSError("gone"), OSError("gone"), OSError("gone"), *[{"x": 1.0}] * 4)
    well = Scripted(*({"y": float(i)} for i in range(20)))
    reports = Reports()
    sampler = Sampler([broken, well], 1.0, reports)
    seen = {at: sampler.sample(float(at)).get("x") for at in range(1, 12)}
    # Fails at 1 s, at 2 s (after 1 s) and at 4 s (after 2 s); works at 8 s (after 4 s).
    assert [at for at, value in seen.items() if value is not None] == [8, 9, 10, 11]
    assert reports == [("scripted", "gone"), ("scripted", None)]
    assert well.samples == 11


def test_backoff_is_at_most_five_minutes() -> None:
    broken = Scripted(*[OSError("gone")] * 40)
    sampler = Sampler([broken], 1.0, Reports())
    for at in range(1, 4000, 1):
        sampler.sample(float(at))
    assert 9 + (4000 - 511) // 300 - 1 <= broken.samples <= 9 + 4000 // 300


@pytest.mark.parametrize("interval_s", [100.0, 300.0, 600.0, 3600.0])
def test_a_failure_is_reported_once_with_long_intervals(interval_s: float) -> None:
    broken = Scripted(*[OSError("gone")] * 5, {"x": 1.0}, OSError("gone again"), OSError("gone again"))
    reports = Reports()
    sampler = Sampler([broken], interval_s, reports)
    now_s = 0.0
    while broken.script:
        now_s += interval_s
        sampler.sample(now_s)
    assert reports == [("scripted", "gone"), ("scripted", None), ("scripted", "gone again")]


def test_only_the_chosen_gpus_are_kept() -> None:
    readings = {
        "gpu.0.temp": 1.0,
        "gpu.10.temp": 2.0,
        "gpu.process.0.temp": 3.0,
        "gpu.process.1.temp": 4.0,
        "cpu": 5.0,
    }
    values = Sampler([Scripted(readings)], 1.0, Reports(), gpu_ids=[0]).sample(1.0)
    assert [key for key in values if not key.startswith("monitor.")] == [
        "gpu.0.temp",
        "gpu.process.0.temp",
        "cpu",
    ]


def test_the_monitor_measures_itself() -> None:
    sampler = Sampler([Scripted({}, {}, {})], 1.0, Reports())
    first = sampler.sample(20.0)
    second = sampler.sample(21.0)
    assert "monitor.sampleMs" not in first, "no previous sample"
    assert first["monitor.scripted.ms"] >= 0
    assert first["monitor.scripted.failures"] == 0
    assert "monitor.scripted.ms" not in second, "the sources' durations are written every ten seconds"
    assert 0 < second["monitor.sampleMs"] < 1000
    assert 1 < first["monitor.rssMB"] < 100_000  # of the process that runs the tests
    assert first["monitor.missedTicks"] == 0
    assert "monitor.scripted.ms" in sampler.sample(30.5)


@pytest.mark.parametrize("interval", [0.1, 0.3, 1.0, 15.0])
def test_the_schedule_stays_on_its_grid(interval: float) -> None:
    schedule = Schedule(1000.0, interval)
    for tick in range(1000):
        assert schedule.next_s == pytest.approx(1000.0 + tick * interval)
        assert schedule.advance(schedule.next_s + interval * 0.4) == 0


def test_late_ticks_are_skipped_and_counted() -> None:
    schedule = Schedule(100.0, 1.0)
    assert schedule.advance(100.0) == 0
    assert schedule.advance(104.5) == 3
    assert schedule.next_s == 105.0


def test_a_wake_up_just_before_the_tick_does_not_repeat_it() -> None:
    schedule = Schedule(100.0, 0.1)
    schedule.advance(100.0)
    assert schedule.advance(100.0999999) == 0
    assert schedule.next_s == pytest.approx(100.2)


class WithNews:
    """A collector that reports facts and missing parts."""

    name = "with_news"
    facts: dict[str, object] = {"shelves": ["a"]}
    absent: dict[str, str] = {}
    closed = False

    def sample(self, tick: Tick) -> None:
        tick.events.append({"name": "opened", "level": "info", "text": "the shelf was opened"})

    def close(self) -> None:
        self.closed = True
        raise OSError("stuck")


def test_changed_facts_and_missing_parts_are_news() -> None:
    source = WithNews()
    sampler = Sampler([source, Scripted()], 1.0, Reports())
    assert sampler.news() == {"machine": {"shelves": ["a"]}}
    assert sampler.news() == {}
    source.facts = {"shelves": ["a", "b"]}
    source.absent = {"b": "is locked"}
    sampler.sample(1.0)
    assert sampler.news() == {
        "machine": {"shelves": ["a", "b"]},
        "sources": {"with_news": {"state": "on", "reason": "b: is locked"}},
    }


def test_missing_parts_are_reported_again_after_a_recovery() -> None:
    source = Scripted(OSError("gone"), {"x": 1.0})
    sampler = Sampler([source], 1.0, Reports())
    source.absent = {"y": "forbidden"}  # type: ignore[attr-defined]
    assert sampler.news() == {"sources": {"scripted": {"state": "on", "reason": "y: forbidden"}}}
    sampler.sample(1.0)
    assert sampler.news() == {}
    sampler.sample(2.0)
    assert sampler.news() == {"sources": {"scripted": {"state": "on", "reason": "y: forbidden"}}}


class Counting:
    """A collector of running totals."""

    name = "counting"

    def __init__(self, *script: dict[str, float]) -> None:
        self.script = list(script)

    def sample(self, tick: Tick) -> None:
        tick.counters.update(self.script.pop(0))


def test_a_counter_that_falls_is_reported_once() -> None:
    falling = [{"a": 9.0, "b": 9.0}, {"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 3.0}, {"a": 0.0, "b": 4.0}]
    sampler = Sampler([Counting(*falling)], 1.0, Reports())
    for second in range(4):
        sampler.sample(float(second))
    assert [(event["name"], event["level"], event["keys"]) for event in sampler.events] == [
        ("counter_reset", "info", ["a", "b"])
    ]
    assert sampler.events[0]["text"] == (
        "the total of a (and 1 more) fell from 9 to 1; the counter goes on from there"
    )


def test_impossible_values_are_left_out_counted_and_told_once_with_the_reason() -> None:
    good = Scripted(*[{"cpu": 1.0}] * 12)
    bad = Scripted(*[{"gpu.0.temp": 41.0, "gpu.0.gpu": 4294967295.0}] * 12)
    bad.name = "bad"
    sampler = Sampler([good, bad], 1.0, Reports())
    samples, news = [], []
    for second in range(12):
        samples.append(sampler.sample(float(second)))
        news.append(sampler.news())
    assert all("gpu.0.gpu" not in values and values["gpu.0.temp"] == 41.0 for values in samples)
    assert samples[0]["monitor.bad.impossible"] == 1.0, "those of the same sample"
    assert samples[10]["monitor.bad.impossible"] == 11.0
    assert "monitor.scripted.impossible" not in samples[10]
    reason = "gpu.0.gpu: 4294967295 is left out: it stands for no value"
    assert news[0] == {"sources": {"bad": {"state": "on", "reason": reason}}}
    assert not any(news[1:])


def test_a_power_sensor_that_is_stuck_far_above_the_limit(tmp_path: Path) -> None:
    """A laptop's GPU of 35 W, whose driver reports 588 W from the start, and counts that as energy."""
    gpu = FakeGpu(0)
    gpu.power_mw, gpu.limit_mw = 588_400, 35_000
    nvml = FakeNvml([gpu])
    source = Nvidia(Scope(pids=[1]), nvml, patience_s=PATIENCE_S, proc=str(tmp_path))
    sampler = Sampler([source], 3.0, Reports())
    samples = []
    for second in range(0, 30, 3):
        gpu.fields[83] = 5_000_000 + 588_400 * second
        samples.append(sampler.sample(1000.0 + second))
    assert all(values["gpu.0.powerWatts"] == 588.4 for values in samples), "what the sensor says is recorded"
    assert all(values["gpu.0.powerSuspect"] == 1.0 for values in samples)
    assert not any("gpu.0.powerPercent" in values or "gpu.0.energyJoules" in values for values in samples)
    assert [event["name"] for event in sampler.events] == ["sensor_implausible"]
    gpu.power_mw = 30_000
    values = sampler.sample(1040.0)
    assert values["gpu.0.powerPercent"] == pytest.approx(30 * 100 / 35)
    assert values["gpu.0.energyJoules"] == 0.0
    assert "gpu.0.powerSuspect" not in values
    sampler.close()


def test_impossible_values_are_told_beside_missing_parts() -> None:
    source = Scripted({"gpu.0.temp": 900.0})
    source.absent = {"fanSpeed": "not supported"}  # type: ignore[attr-defined]
    sampler = Sampler([source], 1.0, Reports())
    sampler.sample(1.0)
    state = sampler.news()["sources"]["scripted"]
    assert state == {
        "state": "on",
        "reason": "fanSpeed: not supported; gpu.0.temp: 900 is left out: expected -60 to 200 °C",
    }


def test_the_listed_reasons_are_limited() -> None:
    sampler = Sampler([Scripted({f"gpu.{i}.temp": 900.0 for i in range(100)})], 1.0, Reports())
    values = sampler.sample(1.0)
    state = sampler.news()["sources"]["scripted"]
    assert isinstance(state, dict)
    assert state["reason"].count("left out") == 20
    assert values["monitor.scripted.impossible"] == 100.0


def measured(values: dict[str, float]) -> dict[str, float]:
    """Without the values about the monitor itself."""
    return {key: value for key, value in values.items() if not key.startswith("monitor.")}


class Slow(Scripted):
    """A source that rarely changes."""

    name = "slow"
    every_s = 5.0

    def sample(self, tick: Tick) -> None:
        tick.gauges["space"] = tick.mono_s


def test_sources_are_sampled_at_their_own_intervals_and_keep_their_order() -> None:
    sampler = Sampler([Slow(), Scripted(*[{"x": float(i)} for i in range(8)])], 1.0, Reports())
    samples = [measured(sampler.sample(10.0 + second)) for second in range(8)]
    assert [values.get("space") for values in samples] == [10.0, None, None, None, None, 15.0, None, None]
    assert [values["x"] for values in samples] == [float(i) for i in range(8)]
    assert list(samples[5]) == ["space", "x"]


def test_a_slow_source_that_fails_is_retried_after_an_interval() -> None:
    class Broken(Slow):
        failing = True

        def sample(self, tick: Tick) -> None:
            if self.failing:
                raise OSError("gone")
            super().sample(tick)

    broken, reports = Broken(), Reports()
    sampler = Sampler([broken], 1.0, reports)
    assert measured(sampler.sample(10.0)) == {}
    broken.failing = False
    assert [measured(sampler.sample(10.0 + second)) for second in range(1, 7)] == [
        {"space": 11.0}, {}, {}, {}, {}, {"space": 16.0},
    ]  # fmt: skip
    assert reports == [("slow", "gone"), ("slow", None)]


def test_events_wait_until_they_are_written() -> None:
    sampler = Sampler([WithNews()], 1.0, Reports())
    sampler.sample(1.0)
    sampler.sample(2.0)
    assert [event["name"] for event in sampler.events] == ["opened", "opened"]


def test_all_sources_are_closed_even_if_one_fails() -> None:
    first, second = WithNews(), WithNews()
    reports = Reports()
    Sampler([first, Scripted(), second], 1.0, reports).close()
    assert first.closed
    assert second.closed
    assert reports == [("with_news", "stuck"), ("with_news", "stuck")]
