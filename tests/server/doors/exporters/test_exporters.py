"""Series of exporters under our keys."""

from __future__ import annotations

import pytest

from runvitals.model.metrics import DEFINITIONS
from runvitals.server.doors.exporters import translate
from runvitals.server.doors.exporters.moments import DerivedMetric
from runvitals.server.doors.exporters.translation import Derived

MIB = 2.0**20
Scrape = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def plain(name: str, **labels: str) -> tuple[str | None, float]:
    """Our key and the factor of a series."""
    translation = translate(name, labels, None)
    assert translation is not None
    return translation.key, translation.factor


def scraped(name: str, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    return name, tuple(labels.items())


def computed(*scrapes: Scrape) -> list[dict[str, float]]:
    """What is computed from scrapes, 10 s apart."""
    metrics: dict[str, DerivedMetric] = {}
    values: list[dict[str, float]] = []
    for number, scrape in enumerate(scrapes):
        for (name, labels), value in scrape.items():
            translation = translate(name, dict(labels), None)
            assert translation is not None, name
            for source in translation.inputs:
                metric = metrics.setdefault(source.of.name, DerivedMetric(source.of))
                metric.add(source.name, number * 10_000, value)
        outputs: dict[str, float] = {}
        for metric in metrics.values():
            for moment in metric.pop_completed():
                outputs.update(moment.outputs)
        values.append(outputs)
    return values


@pytest.mark.parametrize(
    ("key", "factor", "name", "labels"),
    [
        ("gpu.3.temp", 1.0, "DCGM_FI_DEV_GPU_TEMP", {"gpu": "3"}),
        ("gpu.1.energyJoules", 1e-3, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", {"device": "nvidia1"}),
        ("gpu.0.mig.7.0.smActive", 100.0, "DCGM_FI_PROF_SM_ACTIVE", {"gpu": "0", "GPU_I_ID": "7"}),
        ("gpu.0.temp", 1.0, "DCGM_FI_DEV_GPU_TEMP", {"gpu": "0", "GPU_I_ID": "7"}),
        ("gpu.0.throttle.thermalSeconds", 1e-9, "DCGM_FI_DEV_THERMAL_VIOLATION", {"gpu": "0"}),
        ("system.load5", 1.0, "node_load5", {}),
        ("disk.sda.in", 1 / MIB, "node_disk_read_bytes_total", {"device": "sda"}),
        ("network.eth0.sent", 1.0, "node_network_transmit_bytes_total", {"device": "eth0"}),
        ("network.ib.mlx5_0.1.recvBytes", 1.0, "node_infiniband_port_data_received_bytes_total",
         {"device": "mlx5_0", "port": "1"}),
        ("energy.package-0", 1.0, "node_rapl_package_joules_total", {"index": "0"}),
        ("gpu.2.gpu", 1.0, "gpu_gfx_activity", {"gpu_id": "2"}),
        ("gpu.2.energyJoules", 1e-6, "gpu_energy_consumed", {"gpu_id": "2"}),
        ("gpu.1.graphicsClock", 1.0, "gpu_clock", {"gpu_id": "1", "clock_type": "GPU_CLOCK_TYPE_SYSTEM"}),
        ("gpu.4.gpu", 1.0, "rocm_utilization_percentage", {"card": "4"}),
        ("gpu.5.gpu", 1.0, "amd_gpu_use_percent", {"gpu_use_percent": "5"}),
        ("trn.device.0.mem_ecc_corrected", 1.0, "hardware_ecc_events_total",
         {"event_type": "mem_ecc_corrected", "neuron_device_index": "0"}),
        ("trn.total_latency.p50", 1.0, "execution_latency_seconds", {"percentile": "p50"}),
    ],
)  # fmt: skip
def test_series_with_a_key_of_ours(key: str, factor: float, name: str, labels: dict[str, str]) -> None:
    assert plain(name, **labels) == (key, factor)
    assert DEFINITIONS.find(key) is not None


def test_what_we_have_no_key_for_is_left_to_others() -> None:
    for name in ("up", "node_exporter_build_info", "DCGM_FI_DEV_UNKNOWN", "gpu_nodes_total", "neuron_other"):
        assert translate(name, {"gpu": "0"}, 0) is None
    assert translate("DCGM_FI_DEV_GPU_TEMP", {}, None) is None


def test_the_memory_of_a_host() -> None:
    (values,) = computed(
        {
            scraped("node_memory_MemTotal_bytes"): 400 * MIB,
            scraped("node_memory_MemAvailable_bytes"): 100 * MIB,
            scraped("node_memory_SwapTotal_bytes"): 0.0,
            scraped("node_memory_SwapFree_bytes"): 0.0,
        }
    )
    assert values == {
        "memory_percent": 75.0,
        "host.memory_percent": 75.0,
        "memory.usedMB": 300.0,
        "proc.memory.availableMB": 100.0,
        "swap.used": 0.0,
    }


def test_shares_of_processor_time_since_the_scrape_before() -> None:
    def at(user: float, idle: float) -> Scrape:
        cpu = "node_cpu_seconds_total"
        return {scraped(cpu, cpu="0", mode="user"): user, scraped(cpu, cpu="0", mode="idle"): idle}

    first, second, third, _ = computed(at(5, 5), at(7, 13), at(15, 15), at(16, 24))
    assert (first, second) == ({}, {})  # whether all processors have come is known from the second scrape on
    assert third == {"cpu.0.cpu_percent": 80.0, "cpu.mean": 80.0, "cpu.user": 80.0, "cpu.system": 0.0}


def test_a_total_over_devices_does_not_fall_when_one_disappears() -> None:
    sent = "node_network_transmit_bytes_total"

    def at(**devices: float) -> Scrape:
        return {scraped(sent, device=device): value for device, value in devices.items()}

    scrapes = (at(eth0=1.0, eth1=100.0), at(eth0=2.0, eth1=110.0), at(eth0=5.0), at(eth0=6.0), at(eth0=7.0))
    totals = [values.get("network.sent") for values in computed(*scrapes)]
    assert totals[-1] == 16.0
    finite = [total for total in totals if total is not None]
    assert finite == sorted(finite)


def test_virtual_interfaces_and_partitions_are_not_counted_twice() -> None:
    for name, device in (
        ("node_network_transmit_bytes_total", "lo"),
        ("node_network_transmit_bytes_total", "veth12"),
        ("node_disk_read_bytes_total", "dm-0"),
    ):
        translation = translate(name, {"device": device}, None)
        assert translation is not None
        assert translation.inputs == ()


def test_the_power_of_a_gpu_as_a_share_of_its_limit() -> None:
    (values,) = computed(
        {
            scraped("DCGM_FI_DEV_POWER_USAGE", gpu="0"): 350.0,
            scraped("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", gpu="0"): 700.0,
        }
    )
    assert values == {"gpu.0.powerPercent": 50.0}


def test_neuron_runtimes_of_a_host_are_added() -> None:
    def at(first: float, second: float) -> Scrape:
        core = "neuroncore_utilization_ratio"
        return {
            scraped(core, neuroncore="1", runtime_tag="a"): first,
            scraped(core, neuroncore="1", runtime_tag="b"): second,
        }

    *_, last = computed(at(0, 0), at(0, 0), at(0.25, 0.5))
    assert last == {"trn.1.neuroncore_utilization": 75.0}


def test_inputs_of_one_time_may_come_in_parts_and_late() -> None:
    total = Derived("total", lambda before, t, values: {"sum": sum(values.values())})
    metric = DerivedMetric(total)
    for t in (0, 1, 2):
        metric.add("a", t, 1.0)
        metric.add("b", t, 1.0)
    assert [moment.outputs["sum"] for moment in metric.pop_completed()] == [2.0, 2.0, 2.0]
    metric.add("a", 3, 10.0)
    assert list(metric.pop_completed()) == []
    metric.add("b", 3, 10.0)
    metric.add("b", 2, 99.0)  # repeated by its sender
    assert [(moment.t, moment.outputs["sum"]) for moment in metric.pop_completed()] == [(3, 20.0)]
