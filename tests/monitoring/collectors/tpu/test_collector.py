"""The TPU collector, with grpcio's server in place of a training program."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from runvitals.model.metrics import DEFINITIONS
from runvitals.monitoring.collectors.base import Scope, Tick
from runvitals.monitoring.collectors.tpu import metrics
from runvitals.monitoring.collectors.tpu.chips import TpuChip, find_chips
from runvitals.monitoring.collectors.tpu.collector import Tpu
from runvitals.monitoring.collectors.tpu.runtime import ports
from tests.monitoring.collectors.plumbing.test_tool import soon
from tests.monitoring.collectors.tpu import machines
from tests.monitoring.collectors.tpu.messages import distribution, exponential, gauge
from tests.monitoring.collectors.tpu.servers import FakeRuntime
from tests.monitoring.collectors.trees import plant

Open = Callable[..., Tpu]


GIB = 1 << 30
IDLE = "tpu.runtime.tensorcore.idle_duration.seconds"
BANDWIDTH = "tpu.runtime.hbm.utilization.percent"
TRANSFERS = "megascale.dcn_transfer_latencies.microsecond.cumulative.distribution"
EXECUTION = "hlo.execution.timing.distribution.microseconds"


def device_readings(used: dict[int, int], total: int, duty: dict[int, float]) -> dict[str, list[bytes]]:
    """The three metrics that every runtime has."""
    return {
        metrics.MEMORY_USED: [gauge({"device-id": each}, size) for each, size in used.items()],
        metrics.MEMORY_TOTAL: [gauge({"device-id": each}, total) for each in used],
        metrics.DUTY_CYCLE: [gauge({"device-id": each}, percent) for each, percent in duty.items()],
    }


V5E = device_readings({1: 4 * GIB, 0: GIB, 3: 0, 2: 8 * GIB}, 16 * GIB, {3: 0.0, 0: 10.5, 1: 99.0, 2: 50.0})


def chips(count: int, devices: int = 1) -> list[TpuChip]:
    return [TpuChip(index, "", f"/dev/accel{index}", "v5e", 16, devices) for index in range(count)]


@pytest.fixture
def runtime() -> Iterator[FakeRuntime]:
    server = FakeRuntime(dict(V5E))
    yield server
    server.stop()


@pytest.fixture
def open_tpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens the collector; its ticks wait for the readings."""
    monkeypatch.setattr("runvitals.monitoring.collectors.tpu.collector.PATIENCE_S", 20.0)
    opened: list[Tpu] = []

    def open_it(*ports: int, on_host: list[TpuChip] | None = None, **environ: str) -> Tpu:
        named = ",".join(map(str, ports))
        host = chips(4) if on_host is None else on_host
        collector = Tpu(
            Scope(pids=[os.getpid()]), host, {"TPU_RUNTIME_METRICS_PORTS": named, **environ}, "/proc"
        )
        opened.append(collector)
        return collector

    yield open_it
    for collector in opened:
        collector.close()


def sample(collector: Tpu, mono_s: float) -> dict[str, float]:
    tick = Tick(mono_s)
    collector.sample(tick)
    assert not tick.counters
    return tick.gauges


def fact(collector: Tpu) -> dict[str, Any]:
    facts = collector.facts["tpu"]
    assert isinstance(facts, dict)
    return facts


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def test_four_devices(runtime: FakeRuntime, open_tpu: Open) -> None:
    collector = open_tpu(runtime.port)
    gauges = sample(collector, 1.0)
    assert [gauges[f"tpu.{i}.memoryUsageBytes"] for i in range(4)] == [GIB, 4 * GIB, 8 * GIB, 0]
    assert [gauges[f"tpu.{i}.memoryUsage"] for i in range(4)] == [6.25, 25.0, 50.0, 0.0]
    assert [gauges[f"tpu.{i}.hbmCapacityTotal"] for i in range(4)] == [16 * GIB] * 4
    assert [gauges[f"tpu.{i}.dutyCycle"] for i in range(4)] == [10.5, 99.0, 50.0, 0.0]
    assert len(gauges) == 16
    assert "tpu" not in collector.absent
    assert "libtpu reports it only in the program that has loaded it" in collector.absent["throttleScore"]


def test_metrics_of_a_newer_runtime(runtime: FakeRuntime, open_tpu: Open) -> None:
    core = {"core_type": "TensorCore", "device_ordinal": "2"}
    runtime.readings |= {
        IDLE: [gauge({"device-id": 1}, 2.5)],
        BANDWIDTH: [gauge({"device-id": 1}, 33.0)],
        metrics.QUEUE: [gauge(core, 3)],
        EXECUTION: [distribution(core, [0, 0, 10], 1.5, exponential(2.0, 1.0, 3))],
    }
    gauges = sample(open_tpu(runtime.port), 1.0)
    assert (gauges["tpu.1.tensorcoreIdleDuration"], gauges["tpu.1.runtimeHbmUtilization"]) == (2.5, 33.0)
    assert gauges["tpu.hloQueueSize.tensorcore_2"] == 3.0
    assert gauges["tpu.hloExecTiming.tensorcore_2.meanUs"] == 1.5
    assert gauges["tpu.hloExecTiming.tensorcore_2.p50Us"] == 3.0
    for key in gauges:
        row = DEFINITIONS.find(key)
        assert row is not None, key
        assert (row.key, row.metric.kind) == (key, "gauge")


def test_every_distribution_is_a_declared_metric(runtime: FakeRuntime, open_tpu: Open) -> None:
    for name in metrics.DISTRIBUTIONS:
        runtime.readings[name] = [
            distribution({"buffer-size": "1MB+"}, [0, 5], 1.0, exponential(2.0, 1.0, 3))
        ]
    runtime.readings["hlo.execution.timing.distribution.microseconds"].append(
        distribution({}, [0, 5], 1.0, exponential(2.0, 1.0, 3))
    )
    keys = [key for key in sample(open_tpu(runtime.port), 1.0) if not key.split(".")[1].isdigit()]
    assert len(keys) == 5 * (len(metrics.DISTRIBUTIONS) + 1)
    for key in keys:
        row = DEFINITIONS.find(key)
        assert row is not None, key
        assert row.metric.unit == ("Mb/s" if key.endswith("Mbps") else "µs")


def test_cumulative_distributions_report_the_difference(runtime: FakeRuntime, open_tpu: Open) -> None:
    options = exponential(2.0, 1.0, 3)
    collector = open_tpu(runtime.port)
    states = (([0, 4], 1.0), ([0, 4, 4], 2.0), ([0, 4, 4], 2.0))
    means = []
    for second, (counts, mean) in enumerate(states):
        runtime.readings[TRANSFERS] = [distribution({"buffer-size": "8MB"}, counts, mean, options)]
        gauges = sample(collector, 31.0 * second)
        means.append((gauges.get("tpu.bufferTransferLatency.8mb.meanUs"),
                      gauges.get("tpu.bufferTransferLatency.8mb.p50Us")))  # fmt: skip
    assert means == [(1.0, 1.5), (3.0, 3.0), (None, None)]


def test_duty_cycle_of_chips_with_two_devices(runtime: FakeRuntime, open_tpu: Open) -> None:
    runtime.readings = device_readings(dict.fromkeys(range(4), GIB), 8 * GIB, {0: 30.0, 1: 70.0})
    gauges = sample(open_tpu(runtime.port, on_host=chips(2, devices=2)), 1.0)
    assert [gauges[f"tpu.{i}.dutyCycle"] for i in range(4)] == [30.0, 30.0, 70.0, 70.0]


def test_duty_cycle_of_each_device_of_such_chips(runtime: FakeRuntime, open_tpu: Open) -> None:
    runtime.readings = device_readings(dict.fromkeys(range(4), GIB), 8 * GIB, dict.fromkeys(range(4), 30.0))
    gauges = sample(open_tpu(runtime.port, on_host=chips(2, devices=2)), 1.0)
    assert [gauges[f"tpu.{i}.dutyCycle"] for i in range(4)] == [30.0] * 4


def test_ids_of_a_slice_of_several_hosts(runtime: FakeRuntime, open_tpu: Open) -> None:
    ids = (13, 8, 12, 9)
    runtime.readings = device_readings({each: each * GIB for each in ids}, 32 * GIB, dict.fromkeys(ids, 1.0))
    collector = open_tpu(runtime.port, TPU_WORKER_ID="2", TPU_ACCELERATOR_TYPE="v4-32")
    gauges = sample(collector, 1.0)
    assert [gauges[f"tpu.{i}.memoryUsageBytes"] // GIB for i in range(4)] == [8, 9, 12, 13]
    assert fact(collector)["devices"] == [
        {"index": index, "id": device} for index, device in enumerate((8, 9, 12, 13))
    ]
    assert (fact(collector)["worker_id"], fact(collector)["accelerator_type"]) == ("2", "v4-32")


def test_one_program_per_chip(runtime: FakeRuntime, open_tpu: Open) -> None:
    """The program that starts later does not shift the other's index."""
    runtime.readings = device_readings({2: GIB}, 16 * GIB, {2: 20.0})
    second = FakeRuntime()
    collector = open_tpu(runtime.port, second.port)
    assert sample(collector, 1.0)["tpu.2.dutyCycle"] == 20.0
    second.readings = device_readings({0: 2 * GIB}, 16 * GIB, {0: 40.0})
    gauges = sample(collector, 100.0)
    assert (gauges["tpu.0.dutyCycle"], gauges["tpu.2.dutyCycle"]) == (40.0, 20.0)
    assert "tpu.1.dutyCycle" not in gauges
    second.stop()


def test_a_failing_program_does_not_affect_the_other(runtime: FakeRuntime, open_tpu: Open) -> None:
    collector = open_tpu(free_port(), runtime.port)
    assert sample(collector, 1.0)["tpu.1.dutyCycle"] == 99.0
    assert "tpu" not in collector.absent


def test_a_program_that_starts_later(open_tpu: Open) -> None:
    port = free_port()
    collector = open_tpu(port)
    assert sample(collector, 1.0) == {}
    assert collector.absent["tpu"].startswith("no program reports TPU metrics: libtpu serves them")
    assert collector.absent["tpu"].endswith(f"port {port} is closed")
    server = FakeRuntime(dict(V5E))
    collector._runtimes[0]._connection.port = server.port
    assert sample(collector, 3.0) == {}  # not yet
    assert len(sample(collector, 7.0)) == 16
    assert "tpu" not in collector.absent
    server.stop()
    assert sample(collector, 9.0) == {}
    assert "tpu" in collector.absent


def test_a_program_that_has_no_metrics_yet(runtime: FakeRuntime, open_tpu: Open) -> None:
    runtime.readings = {name: [] for name in V5E}
    collector = open_tpu(runtime.port)
    assert sample(collector, 1.0) == {}
    assert "tpu" in collector.absent
    runtime.readings |= V5E
    assert len(sample(collector, 2.0)) == 16


def test_metrics_that_are_not_offered_are_not_read(runtime: FakeRuntime, open_tpu: Open) -> None:
    sample(open_tpu(runtime.port), 1.0)
    assert set(runtime.requested) == set(V5E)


def test_a_runtime_without_a_list_of_metrics(runtime: FakeRuntime, open_tpu: Open) -> None:
    runtime.lists = False
    assert len(sample(open_tpu(runtime.port), 1.0)) == 16
    assert IDLE in runtime.requested


def test_invalid_readings(runtime: FakeRuntime, open_tpu: Open) -> None:
    nan = float("nan")
    runtime.readings = {
        metrics.MEMORY_USED: [gauge({"device-id": 0}, nan), gauge({"device-id": 1}, GIB), gauge({}, 5)],
        metrics.MEMORY_TOTAL: [gauge({"device-id": 1}, 0)],
        metrics.DUTY_CYCLE: [gauge({"device-id": "x"}, 1.0)],
    }
    assert sample(open_tpu(runtime.port), 1.0) == {
        "tpu.1.memoryUsageBytes": GIB,
        "tpu.1.hbmCapacityTotal": 0.0,
    }


def test_a_damaged_response(runtime: FakeRuntime, open_tpu: Open) -> None:
    runtime.readings[metrics.MEMORY_USED] = [b"\x1a\x7f"]
    collector = open_tpu(runtime.port)
    assert sample(collector, 1.0) == {}
    assert "ends at byte" in collector.absent["tpu"]
    runtime.readings |= V5E
    assert len(sample(collector, 20.0)) == 16


@pytest.fixture
def hanging(runtime: FakeRuntime) -> Iterator[threading.Event]:
    """The runtime does not respond until this is set."""
    may_respond = threading.Event()

    def wait() -> None:
        may_respond.wait()

    runtime.before = wait
    yield may_respond
    may_respond.set()


def test_a_hanging_program_does_not_delay_the_tick(
    runtime: FakeRuntime, hanging: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runvitals.monitoring.collectors.tpu.collector.TIMEOUT_S", 1000.0)
    collector = Tpu(Scope(), chips(4), {"TPU_RUNTIME_METRICS_PORTS": str(runtime.port)})
    for second in range(5):
        assert sample(collector, float(second)) == {}
        assert collector.pending  # the tick has ended, the call has not
    hanging.set()
    soon(lambda: sample(collector, 5.0), lambda _: not collector.pending)
    collector.close()


def test_a_hanging_program_is_reported(
    runtime: FakeRuntime, hanging: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runvitals.monitoring.collectors.tpu.collector.TIMEOUT_S", 0.2)
    collector = Tpu(Scope(), chips(4), {"TPU_RUNTIME_METRICS_PORTS": str(runtime.port)})
    soon(lambda: sample(collector, 5.0), lambda _: "tpu" in collector.absent and not collector.pending)
    assert not hanging.is_set()
    assert "did not respond within 0.2 s" in collector.absent["tpu"]
    collector.close()


def test_a_program_whose_clock_ends_the_wait_first_is_reported_too(
    runtime: FakeRuntime, open_tpu: Open
) -> None:
    runtime.status = grpc.StatusCode.DEADLINE_EXCEEDED
    collector = open_tpu(runtime.port)
    assert sample(collector, 1.0) == {}
    assert "did not respond within 2 s" in collector.absent["tpu"]


def test_facts_about_the_hosts_chips(tmp_path: Path, runtime: FakeRuntime, open_tpu: Open) -> None:
    collector = open_tpu(runtime.port, on_host=find_chips(plant(tmp_path, machines.V5E)))
    assert fact(collector) == {
        "vendor": "Google",
        "count": 2,
        "name": "v5e",
        "hbm_gib": 16,
        "devices_per_chip": 1,
        "chips": [
            {"index": 0, "pci": "0000:00:04.0", "node": "/dev/vfio/0", "used": None},
            {"index": 1, "pci": "0000:00:05.0", "node": "/dev/vfio/1", "used": None},
        ],
    }
    sample(collector, 1.0)
    assert [chip["used"] for chip in fact(collector)["chips"]] == [False, False]


@pytest.mark.parametrize(
    ("text", "count", "expected"),
    [
        ("", 4, [8431, 8432, 8433, 8434]),
        ("", 0, [8431]),
        ("8431", 4, [8431]),
        ("9000, 9001 9000", 4, [9000, 9001]),
        ("x,0,70000", 1, [8431]),
    ],
)
def test_ports(text: str, count: int, expected: list[int]) -> None:
    assert ports({"TPU_RUNTIME_METRICS_PORTS": text}, count) == expected
