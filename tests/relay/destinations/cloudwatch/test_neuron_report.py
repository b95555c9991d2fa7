from __future__ import annotations

import pytest

from runvitals.relay.destinations.cloudwatch.neuron_report import read
from tests.relay.destinations.cloudwatch.reports import inferentia, line, process, report


def values(document: dict[str, object], by_tag: bool = False) -> dict[str, float]:
    return {reading.series.name: reading.value for reading in read(line(document), by_tag).readings}


def test_core_names_match_aws_script() -> None:
    by_name = values(report(process([42.5, 0.0])))
    assert by_name == {"NeuronCoreUtilizationNC0": 42.5, "NeuronCoreUtilizationNC1": 0.0}


def test_names_and_units_of_every_group() -> None:
    readings = {reading.series.name: reading for reading in read(line(inferentia())).readings}
    assert {name: readings[name].series.unit for name in (
        "NeuronCoreUtilizationNC3", "ExecutionErrorsHardware", "ExecutionStatusCompletedWithNumErr",
        "ExecutionLatencyP99", "DeviceLatencyP50", "RuntimeMemoryHost", "RuntimeMemoryDevice",
        "NeuronCoreMemoryModelSharedScratchpadNC2", "RuntimeVcpuUser", "SystemVcpuIoWait",
        "SystemContextSwitches", "SystemMemoryUsed", "EccMemUncorrected", "EccSramCorrectedND0",
    )} == {
        "NeuronCoreUtilizationNC3": "Percent", "ExecutionErrorsHardware": "Count",
        "ExecutionStatusCompletedWithNumErr": "Count", "ExecutionLatencyP99": "Seconds",
        "DeviceLatencyP50": "Seconds", "RuntimeMemoryHost": "Bytes", "RuntimeMemoryDevice": "Bytes",
        "NeuronCoreMemoryModelSharedScratchpadNC2": "Bytes", "RuntimeVcpuUser": "Percent",
        "SystemVcpuIoWait": "Percent", "SystemContextSwitches": "Count", "SystemMemoryUsed": "Bytes",
        "EccMemUncorrected": "Count", "EccSramCorrectedND0": "Count",
    }  # fmt: skip
    assert readings["EccSramCorrectedND0"].group == "neuron_hw_counters"


def test_core_utilization_is_the_maximum_over_processes() -> None:
    """Every process lists all cores, and only those it uses are not zero."""
    assert values(report(process([90.0, 0.0]), process([0.0, 70.0], pid=701))) == {
        "NeuronCoreUtilizationNC0": 90.0,
        "NeuronCoreUtilizationNC1": 70.0,
    }


def test_sums_memory_and_executions_and_takes_the_slowest_latency() -> None:
    def one(memory: int, completed: int, p99: float) -> dict[str, object]:
        return process(
            [],
            memory_used={"neuron_runtime_used_bytes": {"host": memory, "neuron_device": 1}},
            execution_stats={
                "execution_summary": {"completed": completed},
                "latency_stats": {"total_latency": {"p99": p99}, "device_latency": None},
            },
        )

    assert values(report(one(100, 5, 0.5), one(20, 7, 0.25))) == {
        "RuntimeMemoryHost": 120.0,
        "RuntimeMemoryDevice": 2.0,
        "ExecutionStatusCompleted": 12.0,
        "ExecutionLatencyP99": 0.5,
    }


def test_by_tag_keeps_tags_separate() -> None:
    readings = read(line(report(process([9.0], tag="a"), process([5.0], tag="b"))), by_tag=True).readings
    assert [(reading.series.dimensions, reading.value) for reading in readings] == [
        ((("RuntimeTag", "a"),), 9.0),
        ((("RuntimeTag", "b"),), 5.0),
    ]


def test_ecc_errors_per_device_and_in_total() -> None:
    devices = [{"neuron_device_index": i, "mem_ecc_uncorrected": i} for i in range(3)]
    by_name = values(report(neuron_hw_counters={"neuron_devices": devices, "error": ""}))
    assert by_name == {
        "EccMemUncorrected": 3.0,
        "EccMemUncorrectedND0": 0.0,
        "EccMemUncorrectedND1": 1.0,
        "EccMemUncorrectedND2": 2.0,
    }


def test_trainium2_physical_cores_and_flops() -> None:
    document = report(process([]))
    counters = document["neuron_runtime_data"][0]["report"]["neuroncore_counters"]
    physical = {"nc_v3.0": {"neuroncore_utilization": 20.0}, "nc_v3.1": {"neuroncore_utilization": 60.0}}
    core = {"neuroncore_utilization": 40.0, "flops": 7, "effective_flops": 6, "v3d": physical}
    counters["neuroncores_in_use"] = {"0": core}
    assert values(document) == {
        "NeuronCoreUtilizationNC0": 40.0,
        "NeuronCoreFlopsNC0": 7.0,
        "NeuronCoreEffectiveFlopsNC0": 6.0,
        "NeuronCorePhysicalUtilizationNC0": 20.0,
        "NeuronCorePhysicalUtilizationNC1": 60.0,
    }


def test_names_of_version_1() -> None:
    document = {
        "neuron_runtime_data": [{
            "neuron_runtime_index": 0,
            "report": {
                "inference_stats": {"inference_summary": {"completed": 3}, "error_summary": {"generic": 1}},
                "hw_counters": {"neuron_devices": [{"neuron_device_index": 0, "mem_ecc_corrected": 4}]},
            },
        }],
        "instance_data": {"instance_id": "i-1"},
    }  # fmt: skip
    assert values(document) == {
        "ExecutionErrorsGeneric": 1.0,
        "ExecutionStatusCompleted": 3.0,
        "EccMemCorrected": 4.0,
        "EccMemCorrectedND0": 4.0,
    }
    assert read(line(document)).instance == {"instance_id": "i-1"}


def test_skips_groups_with_errors_and_lists_the_errors() -> None:
    broken = {"vcpu_usage": {"user": 0, "system": 0}, "error": "open /proc/7/stat: no such file"}
    document = report(process([5.0], neuron_runtime_vcpu_usage=broken), {**process([9.0]), "error": "gone"})
    content = read(line(document))
    assert [reading.series.name for reading in content.readings] == ["NeuronCoreUtilizationNC0"]
    assert content.errors == [
        "neuron_runtime_vcpu_usage: open /proc/7/stat: no such file",
        "process 700: gone",
    ]


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"usage: neuron-monitor", b'{"a": {"b": 1}}', b'{"neuron_runtime']
)
def test_not_a_report_raises(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"report|the output is empty|JSON"):
        read(text)


def test_idle_machine_has_no_readings() -> None:
    assert read(line(report())).readings == []
