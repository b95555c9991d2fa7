"""Reports of neuron-monitor of all versions in one form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.monitoring.collectors.trainium import readings
from runvitals.monitoring.collectors.trainium.counters import RunningTotals
from runvitals.monitoring.collectors.trainium.report import GROUPS, parse
from tests.monitoring.collectors.trainium import reports

USE = dict.fromkeys(reports.CORE_USES, 0)


def document(line: bytes) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(line)
    return read


def test_a_process_of_two_cores() -> None:
    report = parse(reports.report(reports.process(2499, "11", {0: 80.0, 1: 40.5}, completed=7)))
    assert report["processes"] == [
        {
            "pid": 2499,
            "tag": "11",
            "cores": {
                0: {"utilization": 80.0, "flops": 80e12},
                1: {"utilization": 40.5, "flops": 40.5e12},
                2: {"utilization": 0, "flops": 0},
                3: {"utilization": 0, "flops": 0},
            },
            "memory": {
                "host": 1000,
                "device": 2 * 75432,
                "host_uses": reports.HOST_USES,
                "core_uses": {0: reports.CORE_USES, 1: reports.CORE_USES},
                "models": [{"name": "m.neff", "uuid": "ab", "model_id": 1, "subgraphs": {}}],
            },
            "vcpu": {"user": 20.5, "system": 4.5},
            "execution": {
                "period_s": 1.0,
                "errors": {"generic": 0, "numerical": 0, "model": 0, "hardware": 0},
                "status": {"completed": 7, "completed_with_err": 0, "timed_out": 0},
                "latency": {"total": reports.PERCENTILES},
            },
            "periods": {"cores": 1.0, "memory": 1.0, "vcpu": 1.0, "execution": 1.0},
        }
    ]
    assert report["hardware"]["neuroncore_per_device_count"] == 2
    assert report["instance"] == {"instance_type": "trn1.2xlarge"}  # the name is unknown: ""
    assert (report["system"], report["errors"]) == ({}, {})


def test_groups_of_the_system() -> None:
    shares = {"user": 30.0, "nice": 0, "system": 10.5, "idle": 59.5, "io_wait": 0, "irq": 0, "soft_irq": 0}
    system = {
        "vcpu_usage": {
            "period": 1.0,
            "average_usage": shares,
            "usage_data": {"0": shares, "1": shares},
            "context_switch_count": 1234,
            "error": "",
        },
        "memory_info": {"period": 5.0, "memory_total_bytes": 64, "memory_used_bytes": 16, "error": ""},
        "neuron_hw_counters": reports.ecc([3, 0]),
    }
    assert parse(reports.report(system=system))["system"] == {
        "vcpu": shares,
        "vcpus": {0: shares, 1: shares},
        "context_switches": 1234,
        "memory": {"memory_total_bytes": 64, "memory_used_bytes": 16},
        "ecc": {
            index: {
                "mem_ecc_corrected": corrected,
                "mem_ecc_uncorrected": 0,
                "sram_ecc_uncorrected": 0,
                "sram_ecc_corrected": 0,
            }
            for index, corrected in ((0, 3), (1, 0))
        },
        "periods": {"vcpu": 1.0, "memory": 5.0},
    }


def test_logical_cores_name_their_physical_ones() -> None:
    entry = reports.process(7, "7", {1: 42.0})
    entry["report"]["neuroncore_counters"]["neuroncores_in_use"]["1"]["v3d"] = {
        "nc_v3.2": {"neuroncore_utilization": 21.0},
        "nc_v3.3": {"neuroncore_utilization": 63.0},
    }
    core = parse(reports.report(entry))["processes"][0]["cores"][1]
    assert core["physical"] == {2: 21.0, 3: 63.0}


def test_the_first_version() -> None:
    """Of neuron-rtd: no PID, no tag, other names, no breakdown of memory, hardware counters by runtime."""
    uses = {"host": 10, "neuron_device": 20}
    entry = {
        "neuron_runtime_index": 0,
        "error": "",
        "report": {
            "neuroncore_counters": {
                "period": 1.0,
                "neuroncores_in_use": {"3": {"neuroncore_utilization": 4.5, "loaded_models": ["m:sg"]}},
                "error": "",
            },
            "inference_stats": {
                "period": 1.0,
                "error_summary": {"generic": 2},
                "inference_summary": {"completed": 5},
                "latency_stats": {"total_latency": {"p50": 0.25}, "device_latency": None},
                "error": "",
            },
            "memory_used": {"period": 1.0, "neuron_runtime_used_bytes": uses, "error": ""},
            "hw_counters": reports.ecc([1]),
        },
    }
    report = parse(
        json.dumps(
            {
                "neuron_runtime_data": [entry],
                "system_data": {},
                "instance_data": {"instance_type": "inf1.xlarge"},
            }
        ).encode()
    )
    assert report["processes"] == [
        {
            "tag": "0",
            "cores": {3: {"utilization": 4.5}},
            "memory": {"host": 10, "device": 20},
            "execution": {
                "period_s": 1.0,
                "errors": {"generic": 2},
                "status": {"completed": 5},
                "latency": {"total": {"p50": 0.25}},
            },
            "periods": {"cores": 1.0, "memory": 1.0, "execution": 1.0},
        }
    ]
    assert report["system"]["ecc"][0]["mem_ecc_corrected"] == 1
    assert report["instance"] == {"instance_type": "inf1.xlarge"}


def test_a_group_with_an_error_has_no_numbers() -> None:
    entry = reports.process(784315, "535", {0: 1.0})
    failed = "open /proc/784315/stat: no such file or directory"
    entry["report"]["neuron_runtime_vcpu_usage"] = {
        "period": 0.0,
        "vcpu_usage": {"user": 0, "system": 0},
        "error": failed,
    }
    report = parse(reports.report(entry, system={"memory_info": {"memory_total_bytes": 0, "error": "no"}}))
    assert "vcpu" not in report["processes"][0]
    assert report["processes"][0]["errors"] == {"neuron_runtime_vcpu_usage": failed}
    assert (report["system"], report["errors"]) == ({}, {"memory_info": "no"})


def test_a_process_that_could_not_be_read() -> None:
    entry = {"pid": 5, "neuron_runtime_tag": "5", "error": "connection lost", "report": {}}
    assert parse(reports.report(entry))["processes"] == [{"pid": 5, "tag": "5", "error": "connection lost"}]


def test_device_memory_under_its_other_name() -> None:
    entry = reports.process(5, "5", {0: 1.0})
    used = entry["report"]["memory_used"]["neuron_runtime_used_bytes"]
    used["device"] = used.pop("neuron_device")
    assert parse(reports.report(entry))["processes"][0]["memory"]["device"] == 75432


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["0", "a", "error"]), inner),
    max_leaves=5,
)


@given(st.data())
def test_any_damage_to_a_report_is_read_and_merged(data: st.DataObject) -> None:
    """Replace one value by another: the rest is still read."""
    whole = document(
        reports.report(reports.process(5, "5", {0: 1.0}), system={"neuron_hw_counters": reports.ecc([1])})
    )
    section: Any = whole
    while True:
        keys = list(section) if isinstance(section, dict) else list(range(len(section)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(section[key], (dict, list)) and section[key] and data.draw(st.booleans()):
            section = section[key]
        else:
            break
    section[key] = data.draw(JSON_VALUES)
    report = parse(json.dumps(whole).encode(), models=False)
    gauges: dict[str, float] = {}
    processes = readings.HeldReadings(GROUPS).take(report["processes"], 1.0)
    readings.write(gauges, processes)
    readings.write_run(gauges, processes)
    readings.write_system(gauges, report["system"])
    totals = RunningTotals()
    readings.count(totals, report, first=False)
    totals.write(gauges)
    assert all(-1e305 < value < 1e305 for value in gauges.values())


def test_values_that_are_not_numbers_are_left_out() -> None:
    entry = reports.process(5, "5", {0: 1.0})
    groups = entry["report"]
    groups["neuroncore_counters"]["neuroncores_in_use"] = {
        "0": {"neuroncore_utilization": "N/A", "flops": None},
        "one": {"neuroncore_utilization": 3},
        "2": None,
    }
    groups["memory_used"]["neuron_runtime_used_bytes"] = {"host": None, "neuron_device": True}
    groups["execution_stats"]["latency_stats"] = None
    groups["execution_stats"]["error_summary"] = "none"
    groups["neuron_runtime_vcpu_usage"] = []
    process = parse(reports.report(entry))["processes"][0]
    assert process["cores"] == {0: {}, 2: {}}
    assert process["memory"].keys() == {"models"}
    assert process["execution"].keys() == {"period_s", "status"}
    assert "vcpu" not in process


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b'{"neuron_runtime_data":null,"system_data":null,"instance_info":null,"neuron_hardware_info":null}',
        b'{"neuron_runtime_data":[null,3],"system_data":[],"neuron_k8s_info":{"neuroncores_k8s_info":3}}',
    ],
)
def test_a_report_with_nothing_in_it(line: bytes) -> None:
    report = parse(line)
    assert [process for process in report.pop("processes") if process] == []
    assert report == {"system": {}, "errors": {}}


def test_pods() -> None:
    pod = {"pod_name": "p", "namespace": "n", "container_name": ["c"]}
    read = document(reports.report())
    read["neuron_k8s_info"] = {
        "neuroncores_k8s_info": {"0": pod},
        "neurondevices_k8s_info": {"0": pod},
        "error": "",
    }
    assert parse(json.dumps(read).encode())["pods"] == {"cores": {0: pod}, "devices": {0: pod}}


def test_text_before_the_report_and_invalid_utf_8() -> None:
    line = b"WARN \xff old driver\n" + reports.report(reports.process(5, "\xe9", {0: 1.0}))
    assert parse(line)["processes"][0]["pid"] == 5


@pytest.mark.parametrize("line", [b"", b"usage: neuron-monitor [-c]", b"[]", b"[1]"])
def test_invalid_reports(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"invalid report|no JSON|the output is empty"):
        parse(line)


def test_an_incomplete_report() -> None:
    whole = reports.report(reports.process(5, "5", {0: 1.0}))
    with pytest.raises(ValueError, match="invalid JSON"):
        parse(whole[: len(whole) // 2])
