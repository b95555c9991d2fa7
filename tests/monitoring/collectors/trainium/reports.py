"""Reports in neuron-monitor's format, with made-up values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

HOST_USES = {"application_memory": 600, "constants": 1, "dma_buffers": 300, "tensors": 99}
CORE_USES = {
    "constants": 5000,
    "model_code": 400,
    "model_shared_scratchpad": 30,
    "runtime_memory": 2,
    "tensors": 70000,
}
PERCENTILES = {
    "p0": 0.001,
    "p1": 0.002,
    "p25": 0.003,
    "p50": 0.004,
    "p75": 0.005,
    "p99": 0.006,
    "p100": 0.007,
}


def process(
    pid: int,
    tag: str,
    busy: Mapping[int, float],
    cores: int = 4,
    completed: int = 10,
    errors: Mapping[str, int] | None = None,
    latency: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """One process's entry: all cores of the machine are listed, those in `busy` with this utilization
    and hold memory, beside the other core of their device, which holds none.
    """
    listed = {str(core): {"neuroncore_utilization": busy.get(core, 0), "flops": 0} for core in range(cores)}
    for core, percent in busy.items():
        listed[str(core)]["flops"] = int(percent * 1e12)
    of_devices = {core: core for busy_core in busy for core in (busy_core & ~1, busy_core | 1)}
    memory = {str(core): CORE_USES if core in busy else dict.fromkeys(CORE_USES, 0) for core in of_devices}
    return {
        "pid": pid,
        "address": "",
        "neuron_runtime_tag": tag,
        "error": "",
        "report": {
            "execution_stats": {
                "period": 1.0,
                "error_summary": {"generic": 0, "numerical": 0, "model": 0, "hardware": 0, **(errors or {})},
                "execution_summary": {"completed": completed, "completed_with_err": 0, "timed_out": 0},
                "latency_stats": {"total_latency": latency or PERCENTILES, "device_latency": None},
                "error": "",
            },
            "memory_used": {
                "period": 1.0,
                "neuron_runtime_used_bytes": {
                    "host": sum(HOST_USES.values()),
                    "neuron_device": sum(CORE_USES.values()) * len(busy),
                    "usage_breakdown": {"host": HOST_USES, "neuroncore_memory_usage": memory},
                },
                "loaded_models": [{"name": "m.neff", "uuid": "ab", "model_id": 1, "subgraphs": {}}],
                "error": "",
            },
            "neuron_runtime_vcpu_usage": {
                "period": 1.0,
                "vcpu_usage": {"user": 20.5, "system": 4.5},
                "error": "",
            },
            "neuroncore_counters": {"period": 1.0, "neuroncores_in_use": listed, "error": ""},
        },
    }


def ecc(corrected: Sequence[int]) -> dict[str, Any]:
    """Counters of each device, with these numbers of corrected memory errors."""
    devices = [
        {
            "neuron_device_index": index,
            "mem_ecc_corrected": count,
            "mem_ecc_uncorrected": 0,
            "sram_ecc_uncorrected": 0,
            "sram_ecc_corrected": 0,
        }
        for index, count in enumerate(corrected)
    ]
    return {"period": 2.0, "neuron_devices": devices, "error": ""}


def report(*processes: dict[str, Any], system: Mapping[str, Any] | None = None) -> bytes:
    """A complete report, as one line."""
    document = {
        "neuron_runtime_data": list(processes),
        "system_data": dict(system) if system is not None else None,
        "instance_info": {"instance_name": "", "instance_type": "trn1.2xlarge", "error": ""},
        "neuron_hardware_info": {
            "neuron_device_type": "trainium",
            "neuron_device_count": 2,
            "neuroncore_per_device_count": 2,
            "neuron_device_memory_size": 34359738368,
            "logical_neuroncore_config": 1,
            "error": "",
        },
    }
    return json.dumps(document, separators=(",", ":")).encode()
