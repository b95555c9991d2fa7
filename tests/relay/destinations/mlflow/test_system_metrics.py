"""Conversion of samples to MLflow's system metrics."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

import pytest

from runvitals.model.metrics.mlflow import columns
from runvitals.relay.batch import Samples
from runvitals.relay.destinations.mlflow.system_metrics import MetricWindow
from runvitals.relay.destinations.mlflow.tracking_store import MetricPoint

T0 = 1_700_000_000_000
NAN = float("nan")


def table(keys: Sequence[str], rows: Sequence[Sequence[float]], first: int = 0) -> Samples:
    samples = Samples(keys)
    for index, row in enumerate(rows, first):
        samples.add(index, T0 + 10_000 * index, struct.pack(f"<{len(row)}d", *row))
    return samples


def test_window_of_one_sample() -> None:
    metrics = list(MetricWindow(None, 0).add([table(["cpu.mean"], [[12.34], [56.78]])], samples=1))
    assert metrics == [
        MetricPoint("cpu_utilization_percentage", 12.3, T0, 0),
        MetricPoint("cpu_utilization_percentage", 56.8, T0 + 10_000, 1),
    ]


def test_window_of_many_samples() -> None:
    rows = [[10.0, 5e6], [20.0, 6e6], [60.0, 9.5e6]]
    window = MetricWindow(None, 7)
    metrics = list(window.add([table(["cpu.mean", "network.recv"], rows)], samples=3))
    assert metrics == [
        MetricPoint("cpu_utilization_percentage", 30.0, T0 + 20_000, 7),
        MetricPoint("network_receive_megabytes", 4.5, T0 + 20_000, 7),
    ]
    assert window.step == 8


def test_window_continues_in_another_process() -> None:
    window = MetricWindow(None, 0)
    assert list(window.add([table(["cpu.mean"], [[10.0]])], samples=2)) == []
    later = MetricWindow(json.loads(json.dumps(window.state)), 0)
    assert [metric.value for metric in later.add([table(["cpu.mean"], [[20.0]], 1)], samples=2)] == [15.0]


def test_incomplete_window_at_the_end() -> None:
    window = MetricWindow(None, 0)
    assert list(window.add([table(["cpu.mean"], [[10.0], [30.0]])], samples=6)) == []
    assert [metric.value for metric in window.close()] == [20.0]
    assert list(window.close()) == []


def test_gap_is_not_zero() -> None:
    rows = [[NAN, 50.0], [40.0, NAN], [NAN, NAN]]
    metrics = list(MetricWindow(None, 0).add([table(["cpu.mean", "host.memory_percent"], rows)], samples=3))
    assert {metric.key: metric.value for metric in metrics} == {
        "cpu_utilization_percentage": 40.0,
        "system_memory_usage_percentage": 50.0,
    }
    assert list(MetricWindow(None, 0).add([table(["cpu.mean"], [[NAN]])], samples=1)) == []


def test_alternating_key_sets_stay_in_order() -> None:
    turns = [table(["cpu.mean"], [[1.0]]), table(["cpu.mean", "load1"], [[2.0, 9.0]], 1)]
    turns.append(table(["cpu.mean"], [[3.0]], 2))
    mixed = [turns[2], turns[0], turns[1]]
    assert [metric.value for metric in MetricWindow(None, 0).add(mixed, samples=1)] == [1.0, 2.0, 3.0]


HOST = {
    "cpu.mean": (25.0, "cpu_utilization_percentage", 25.0),
    "memory.usedMB": (1024.0, "system_memory_usage_megabytes", 1073.7),
    "host.memory_percent": (40.0, "system_memory_usage_percentage", 40.0),
    "network.sent": (0.0, "network_transmit_megabytes", 0.0),
    "network.recv": (0.0, "network_receive_megabytes", 0.0),
    "disk./.usageGB": (2.0, "disk_usage_megabytes", 2147.5),
    "disk./.availableGB": (4.0, "disk_available_megabytes", 4295.0),
    "disk./.usagePercent": (33.0, "disk_usage_percentage", 33.0),
}


def test_host_metrics_have_mlflow_names_and_units() -> None:
    keys = [*HOST, "memory_percent", "disk./data.usageGB", "load1"]
    row = [value for value, _, _ in HOST.values()] + [99.0, 7.0, 8.0]
    values = {
        metric.key: metric.value for metric in MetricWindow(None, 0).add([table(keys, [row])], samples=1)
    }
    assert values == {name: value for _, name, value in HOST.values()}


def test_memory_of_the_cgroup_replaces_unknown_host_memory() -> None:
    assert [column.name for column in columns(["memory_percent"])] == ["system_memory_usage_percentage"]


GPU = ("gpu", "memoryAllocated", "memoryAllocatedBytes", "powerWatts", "powerPercent")


def test_gpu_metrics_per_device_and_combined() -> None:
    keys = [f"gpu.{i}.{what}" for i in (0, 1) for what in GPU]
    row = [80.0, 50.0, 8e9, 250.0, 62.5, 40.0, 10.0, 2e9, 150.0, 37.5]
    values = {
        metric.key: metric.value for metric in MetricWindow(None, 0).add([table(keys, [row])], samples=1)
    }
    assert values == {
        "gpu_0_utilization_percentage": 80.0,
        "gpu_0_memory_usage_percentage": 50.0,
        "gpu_0_memory_usage_megabytes": 8000.0,
        "gpu_0_power_usage_watts": 250.0,
        "gpu_0_power_usage_percentage": 62.5,
        "gpu_1_utilization_percentage": 40.0,
        "gpu_1_memory_usage_percentage": 10.0,
        "gpu_1_memory_usage_megabytes": 2000.0,
        "gpu_1_power_usage_watts": 150.0,
        "gpu_1_power_usage_percentage": 37.5,
        "gpu_utilization_percentage": 60.0,
        "gpu_memory_usage_percentage": 30.0,
        "gpu_memory_usage_megabytes": 10000.0,
        "gpu_power_usage_watts": 400.0,
        "gpu_power_usage_percentage": 50.0,
    }


def test_mean_excludes_a_lost_gpu() -> None:
    metrics = MetricWindow(None, 0).add([table(["gpu.0.gpu", "gpu.1.gpu"], [[NAN, 30.0]])], samples=1)
    assert {metric.key: metric.value for metric in metrics} == {
        "gpu_1_utilization_percentage": 30.0,
        "gpu_utilization_percentage": 30.0,
    }


@pytest.mark.parametrize(("amd", "gigabytes"), [((), []), ((0,), [8.0])])
def test_amd_memory_has_both_mlflow_names(amd: tuple[int, ...], gigabytes: list[float]) -> None:
    metrics = list(MetricWindow(None, 0).add([table(["gpu.0.memoryAllocatedBytes"], [[8e9]])], 1, amd))
    assert [metric.value for metric in metrics if metric.key == "gpu_0_memory_usage_megabytes"] == [8000.0]
    assert [metric.value for metric in metrics if metric.key == "gpu_0_memory_usage_gigabytes"] == gigabytes
