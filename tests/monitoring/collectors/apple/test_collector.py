"""A Mac made of programs on PATH: ioreg and macmon work, fail, hang, exit and recover."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runvitals.model.metrics import DEFINITIONS
from runvitals.monitoring.collectors.apple.chip import AppleChip
from runvitals.monitoring.collectors.apple.collector import Mac, open_mac
from runvitals.monitoring.collectors.apple.ioreg import Ioreg
from runvitals.monitoring.collectors.apple.macmon import Macmon, commands, period
from runvitals.monitoring.collectors.base import Absent, Scope, Tick
from runvitals.monitoring.collectors.plumbing.tool import ToolFailed
from tests.monitoring.collectors.apple.macs import (
    GIB,
    OLD_SAMPLE,
    SAMPLE,
    STATISTICS,
    Bench,
    entry,
    plist,
    tree,
)
from tests.monitoring.collectors.plumbing.test_tool import processes_with, soon
from tests.monitoring.collectors.trees import put


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


@pytest.fixture
def started() -> Iterator[list[Mac]]:
    """Macs that are closed after the test."""
    macs: list[Mac] = []
    yield macs
    for mac in macs:
        mac.close()


def open_here(
    bench: Bench, started: list[Mac], interval_s: float = 1.0, folders: tuple[str, ...] = ()
) -> Mac:
    """The Mac of the bench, with 64 GiB of memory; ioreg only if the bench has one."""
    chip, period_s = AppleChip(64.0 * GIB), period(interval_s)
    path = bench.bin / "ioreg"
    ways = commands(folders, period_s)
    mac = Mac(
        chip,
        Ioreg(str(path), chip) if path.exists() else None,
        Macmon(ways, chip, period_s) if ways else None,
    )
    started.append(mac)
    return mac


def tick(mac: Mac, mono_s: float) -> Tick:
    moment = Tick(mono_s)
    mac.sample(moment)
    return moment


def until(mac: Mac, mono_s: float, good: Callable[[Tick], bool] = lambda moment: bool(moment.gauges)) -> Tick:
    """Tick at one time until a tick is good; returns everything they wrote."""
    collected = Tick(mono_s)

    def attempt() -> Tick:
        moment = tick(mac, mono_s)
        collected.gauges.update(moment.gauges)
        collected.counters.update(moment.counters)
        return collected

    return soon(attempt, good)


def has(*keys: str) -> Callable[[Tick], bool]:
    return lambda moment: all(key in moment.gauges or key in moment.counters for key in keys)


def later(mac: Mac, mono_s: float, good: Callable[[Tick], bool] = lambda moment: bool(moment.gauges)) -> Tick:
    """The first good tick, with an advancing clock; failures before it are ignored."""
    clock = [mono_s]

    def attempt() -> Tick:
        clock[0] += 0.05
        try:
            return tick(mac, clock[0])
        except ToolFailed:
            return Tick(clock[0])

    return soon(attempt, good)


def why(mac: Mac, mono_s: float) -> str:
    """The error of ticks at one time."""

    def attempt() -> str:
        try:
            tick(mac, mono_s)
        except ToolFailed as failed:
            return str(failed)
        return ""

    return soon(attempt)


def test_all_keys_of_both_sources(bench: Bench, started: list[Mac]) -> None:
    bench.ioreg(plist(entry(STATISTICS)))
    bench.macmon(SAMPLE)
    mac = open_here(bench, started)
    moment = until(mac, 100.0, has("gpu.0.memoryAllocated", "gpu.0.powerPercent"))
    gauges = moment.gauges
    assert gauges["gpu.0.gpu"] == 75.0  # from macmon, not ioreg's 64 %
    assert (gauges["gpu.0.memoryAllocatedBytes"], gauges["gpu.0.memoryAllocated"]) == (4.0 * GIB, 6.25)
    assert (gauges["gpu.0.powerWatts"], gauges["gpu.0.powerPercent"]) == (30.0, 50.0)
    assert (gauges["gpu.0.temp"], gauges["gpu.0.graphicsClock"]) == (55.25, 1200.0)
    assert moment.counters == {
        "gpu.0.recoveryCount": 1.0, "gpu.0.energyJoules": 30.0, "energy.cpu": 12.0, "energy.ane": 0.5,
        "energy.dram": 3.0,
    }  # fmt: skip
    for key in (*gauges, *moment.counters):
        match = DEFINITIONS.find(key)
        assert match is not None
        assert (match.key, match.metric.kind) == (key, "counter" if key in moment.counters else "gauge")
    assert mac.absent == {}
    assert mac.facts == {
        "apple": {
            "name": "Apple M3 Max", "model": "Mac15,9", "gpu_cores": 40, "ecpu_cores": 4, "pcpu_cores": 12,
            "memory_bytes": 64.0 * GIB, "unified": True, "gpu_power_limit_watts": 60.0,
            "gpu_power_limit_known": True,
        }
    }  # fmt: skip
    collected = mac.facts
    tick(mac, 101.0)
    assert mac.facts is collected


def test_ioreg_alone_reports_load_and_memory(bench: Bench, started: list[Mac]) -> None:
    bench.ioreg(plist(entry(STATISTICS)))
    mac = open_here(bench, started)
    moment = until(mac, 100.0)
    assert moment.gauges == {
        "gpu.0.gpu": 64.0, "gpu.0.memoryAllocatedBytes": 4.0 * GIB, "gpu.0.memoryAllocated": 6.25,
    }  # fmt: skip
    assert mac.absent["macmon"].startswith(
        "not installed; it reports power, temperatures, clocks and energy: pip install"
    )


def test_macmon_alone(bench: Bench, started: list[Mac]) -> None:
    bench.macmon(SAMPLE)
    mac = open_here(bench, started)
    moment = until(mac, 100.0)
    assert moment.gauges["gpu.0.powerPercent"] == 50.0
    assert "gpu.0.memoryAllocated" not in moment.gauges


def test_absent_without_either_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(Absent, match=r"found neither ioreg .* nor macmon"):
        open_mac(Scope())


def test_programs_are_found_on_path(bench: Bench, started: list[Mac]) -> None:
    bench.ioreg(tree(STATISTICS))
    mac = open_mac(Scope(interval_s=0.5))
    started.append(mac)
    until(mac, 100.0)


# -- macmon


def test_macmon_gets_the_sampling_interval_and_reports_the_chip(bench: Bench, started: list[Mac]) -> None:
    bench.macmon(SAMPLE)
    until(open_here(bench, started, interval_s=2.5), 100.0)
    assert bench.started_programs() == ["pipe -s 0 -i 2500 --soc-info"]
    assert [period(interval_s) for interval_s in (0.1, 1.0, 4.0, 15.0)] == [1.0, 1.0, 4.0, 5.0]


def test_an_old_macmon_is_run_without_the_option_for_the_chip(bench: Bench, started: list[Mac]) -> None:
    refuse = 'case "$*" in *--soc-info*) echo "error: unexpected argument \'--soc-info\'" >&2; exit 2;; esac'
    bench.ioreg(plist(entry(STATISTICS, model="<string>Apple M7 Giga</string>")))
    bench.macmon(OLD_SAMPLE, before=refuse)
    mac = open_here(bench, started)
    soon(lambda: tick(mac, 100.0), lambda _: "macmon" in mac.absent)
    assert "exited with 2: error: unexpected argument '--soc-info'" in mac.absent["macmon"]
    moment = later(mac, 101.0, has("gpu.0.powerPercent"))
    assert moment.gauges["gpu.0.powerPercent"] == pytest.approx(30.0 * 100.0 / 16.5)
    reason = "relative to 16.5 W, as W&B does: the power limit of the Apple M7 Giga GPU is unknown"
    assert mac.absent == {"gpu.0.powerPercent": reason}
    # This version reports no share of time: the load of ioreg is used.
    assert later(mac, 10_000.0, has("gpu.0.gpu")).gauges["gpu.0.gpu"] == 64.0


def test_ioreg_is_called_less_often_if_macmon_reports_the_load(bench: Bench, started: list[Mac]) -> None:
    bench.ioreg(plist(entry(STATISTICS)))
    bench.macmon(SAMPLE)
    mac = open_here(bench, started)
    until(mac, 100.0, has("gpu.0.gpu", "gpu.0.memoryAllocated", "gpu.0.powerWatts"))
    until(mac, 105.0, has("gpu.0.memoryAllocated"))
    calls = sum("IOAccelerator" in question for question in bench.started_programs())
    for second in (106.0, 107.0, 108.0):
        assert tick(mac, second).gauges == {}
    assert sum("IOAccelerator" in question for question in bench.started_programs()) == calls


def test_several_lines_in_one_tick_give_the_mean_and_the_total_energy(
    bench: Bench, started: list[Mac]
) -> None:
    later = {**SAMPLE, "timestamp": "2026-03-01T10:00:03.250000+00:00", "gpu_power": 10.0}
    bench.macmon(SAMPLE, later)
    mac = open_here(bench, started)
    moment = until(mac, 100.0, lambda moment: moment.counters.get("gpu.0.energyJoules") == 50.0)
    # 30 W for the usual second, then 10 W for the two seconds between the timestamps.
    assert moment.gauges["gpu.0.powerWatts"] in (20.0, 10.0)  # in one tick, or in two


def test_warnings_are_ignored_and_a_damaged_line_is_reported(bench: Bench, started: list[Mac]) -> None:
    bench.macmon(SAMPLE, before="echo 'macmon: state count (3) does not match'; printf '\\377\\376 {\\n'")
    until(open_here(bench, started), 100.0)
    bench.macmon(before="echo '{\"gpu_power\": 1'")
    collected = "cannot parse the output: '{\"gpu_power\": 1'"
    assert collected in why(open_here(bench, started), 100.0)


def test_a_macmon_without_known_readings_fails_until_it_has_some(bench: Bench, started: list[Mac]) -> None:
    bench.macmon({"gpu_watts": 1}, {"gpu_watts": 2})
    mac = open_here(bench, started)
    assert "cannot parse the output" in why(mac, 100.0)
    with pytest.raises(ToolFailed, match="gpu_watts"):
        mac.sample(Tick(200.0))


def test_a_failing_macmon_is_reported_at_each_tick(bench: Bench, started: list[Mac]) -> None:
    bench.macmon(before="echo 'macmon: a remark'", after="exit 3")
    mac = open_here(bench, started)
    why(mac, 100.0)
    for moment in range(101, 340):
        with pytest.raises(ToolFailed, match=r"exited with 3|printed nothing|printed no sample"):
            mac.sample(Tick(float(moment)))


def test_a_macmon_that_exits_is_restarted(bench: Bench, started: list[Mac]) -> None:
    bench.ioreg(plist(entry(STATISTICS)))
    bench.macmon(SAMPLE, after="echo 'thread main panicked' >&2; exit 101")
    mac = open_here(bench, started)
    until(mac, 100.0, has("gpu.0.powerWatts"))
    soon(lambda: tick(mac, 101.0), lambda _: "macmon" in mac.absent)
    assert mac.absent["macmon"].endswith("exited with 101: thread main panicked")
    # macmon's load is gone: that of ioreg is used.
    assert until(mac, 101.5, has("gpu.0.gpu")).gauges["gpu.0.gpu"] == 64.0
    assert "gpu.0.powerWatts" in until(mac, 110.0, has("gpu.0.powerWatts")).gauges
    assert bench.started_programs().count("pipe -s 0 -i 1000 --soc-info") == 2


def test_a_macmon_that_prints_nothing_is_killed(bench: Bench, started: list[Mac]) -> None:
    bench.macmon()
    mac = open_here(bench, started)
    assert tick(mac, 100.0).gauges == {}
    assert mac.pending
    assert tick(mac, 130.0).gauges == {}
    with pytest.raises(ToolFailed, match=r"macmon pipe printed nothing for 30 s and was killed"):
        mac.sample(Tick(132.0))


# -- the library

FAKE_LIBRARY = """
from types import SimpleNamespace as Has

class Sampler:
    def __init__(self):
        {trouble}
        self.calls = 0
    def metrics(self):
        self.calls += 1
        return Has(
            cpu_usage=[Has(name="ECPU", units=4, frequency_mhz=1100, usage=0.1)],
            gpu_usage=[Has(name="GPUPH", units=40, frequency_mhz=700, usage=0.375)],
            power=Has(cpu=12.0, gpu=15.0, ram=3.0, gpu_ram=0.1, ane=0.5, board=60.0),
            memory=Has(ram_total=64 << 30, ram_usage=16 << 30, swap_total=0, swap_usage=0),
            temperature=Has(cpu_average=61.5, gpu_average=55.25),
        )

def soc_info():
    return Has(mac_model="Mac15,9", chip_name="Apple M3 Max", gpu_cores=40, gpu_frequencies_mhz=[338, 1400],
               cpu_domains=[Has(name="ECPU", units=4)])
"""


def library(bench: Bench, trouble: str = "pass") -> tuple[str, ...]:
    put(bench.folder, "site/macmon/__init__.py", FAKE_LIBRARY.format(trouble=trouble))
    return (str(bench.folder / "site"),)


def test_the_library_is_preferred_over_the_program(bench: Bench, started: list[Mac]) -> None:
    bench.macmon(SAMPLE)
    mac = open_here(bench, started, folders=library(bench))
    moment = until(mac, 100.0)
    assert (moment.gauges["gpu.0.powerWatts"], moment.gauges["gpu.0.powerPercent"]) == (15.0, 25.0)
    assert moment.gauges["gpu.0.gpu"] == 75.0
    assert bench.started_programs() == []


def test_the_program_is_used_if_the_library_fails(bench: Bench, started: list[Mac]) -> None:
    bench.ioreg(tree(STATISTICS))
    bench.macmon(SAMPLE)
    mac = open_here(bench, started, folders=library(bench, "raise RuntimeError('no IOReport')"))
    soon(lambda: tick(mac, 100.0), lambda _: "macmon" in mac.absent)
    assert mac.absent["macmon"] == "macmon-lib: RuntimeError: no IOReport"
    assert until(mac, 101.0, has("gpu.0.powerWatts")).gauges["gpu.0.powerWatts"] == 30.0


# -- ioreg


def test_an_ioreg_without_property_lists_is_read_as_a_tree(bench: Bench, started: list[Mac]) -> None:
    bench.ioreg(
        tree(STATISTICS), script='case "$1" in -a) echo "ioreg: illegal option -- a" >&2; exit 64;; esac'
    )
    mac = open_here(bench, started)
    assert why(mac, 100.0).endswith("exited with 64: ioreg: illegal option -- a")
    assert later(mac, 101.0).gauges["gpu.0.gpu"] == 64.0
    assert bench.started_programs()[:1] == ["-r -d 1 -w 0 -c IOAccelerator"]


def test_an_ioreg_without_a_gpu_is_called_again(bench: Bench, started: list[Mac]) -> None:
    collected = bench.ioreg(plist())
    mac = open_here(bench, started)
    assert "ioreg: ioreg lists no GPU with PerformanceStatistics; it printed '<?xml" in why(mac, 100.0)
    collected.write_text(plist(entry(STATISTICS)))
    assert later(mac, 101.0).gauges["gpu.0.gpu"] == 64.0


def test_a_hanging_ioreg_is_killed_while_macmon_continues(bench: Bench, started: list[Mac]) -> None:
    bench.ioreg("", script="exec sleep 60")
    bench.macmon(SAMPLE, SAMPLE)
    mac = open_here(bench, started)
    until(mac, 100.0, has("gpu.0.powerWatts"))
    tick(mac, 101.0)
    tick(mac, 106.5)
    assert mac.absent["ioreg"].endswith("ioreg took longer than 5 s and was killed")


def test_an_incomplete_property_list_is_an_error(bench: Bench, started: list[Mac]) -> None:
    bench.ioreg(plist(entry(STATISTICS))[:-20])
    mac = open_here(bench, started)
    assert "ioreg: incomplete property list; it printed '<?xml" in why(mac, 100.0)


def test_statistics_missing_in_the_driver(bench: Bench, started: list[Mac]) -> None:
    bench.ioreg(plist(entry({"GPU Activity(%)": 42.5})))
    mac = open_here(bench, started)
    assert until(mac, 100.0).gauges == {"gpu.0.gpu": 42.5}
    reason = "not reported by the GPU's driver"
    assert {mac.absent["memoryAllocatedBytes"], mac.absent["memoryAllocated"]} == {reason}


def test_a_load_above_100_is_capped(bench: Bench, started: list[Mac]) -> None:
    bench.ioreg(plist(entry({"Device Utilization %": 137, "Renderer Utilization %": 3})))
    assert until(open_here(bench, started), 100.0).gauges == {"gpu.0.gpu": 100.0}


def test_two_gpus_are_numbered_and_one_may_have_fewer_statistics(bench: Bench, started: list[Mac]) -> None:
    bench.ioreg(plist(entry(STATISTICS), entry({"Device Utilization %": 12})))
    bench.macmon(OLD_SAMPLE)
    mac = open_here(bench, started)
    gauges = until(mac, 100.0, has("gpu.0.gpu", "gpu.0.powerWatts")).gauges
    assert (gauges["gpu.0.gpu"], gauges["gpu.1.gpu"]) == (64.0, 12.0)
    assert "gpu.0.memoryAllocated" in gauges
    assert "gpu.1.memoryAllocated" not in gauges
    reason = "not reported by the GPU's driver (GPU 1)"
    assert mac.absent == dict.fromkeys(("memoryAllocatedBytes", "memoryAllocated", "recoveryCount"), reason)


def test_close_stops_all_processes(bench: Bench) -> None:
    bench.ioreg("", script="exec sleep 60.7")
    bench.macmon(SAMPLE, after="exec sleep 60.8")
    mac = open_here(bench, [])
    until(mac, 100.0)
    mac.close()
    soon(lambda: not processes_with("60.7") and not processes_with("60.8"))
