"""Reports as neuron-monitor prints them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def process(
    utilization: Sequence[float], pid: int = 700, tag: str = "train", **groups: Any
) -> dict[str, Any]:
    cores = {str(i): {"neuroncore_utilization": value} for i, value in enumerate(utilization)}
    counters = {"period": 5.0, "neuroncores_in_use": cores, "error": ""}
    report = {"neuroncore_counters": counters, **groups}
    return {"pid": pid, "neuron_runtime_tag": tag, "error": "", "report": report}


def report(*processes: dict[str, Any], **system: Any) -> dict[str, Any]:
    return {
        "neuron_runtime_data": list(processes),
        "system_data": system or None,
        "instance_info": {"instance_id": "i-0feed", "instance_type": "trn1.2xlarge", "error": ""},
        "neuron_hardware_info": {"neuron_device_count": 1, "neuroncore_per_device_count": 4, "error": ""},
    }


def line(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def inferentia() -> dict[str, Any]:
    """Return what neuron-monitor prints on an inf1.xlarge: one device of four cores, no configuration."""
    percentiles = dict.fromkeys(("p0", "p1", "p25", "p50", "p75", "p99", "p100"), 0.02)
    core = dict.fromkeys(
        ("constants", "model_code", "model_shared_scratchpad", "runtime_memory", "tensors"), 3
    )
    used = {
        "host": 500,
        "neuron_device": 60,
        "usage_breakdown": {
            "host": {"application_memory": 500, "constants": 0, "dma_buffers": 0, "tensors": 0},
            "neuroncore_memory_usage": {str(i): core for i in range(4)},
        },
    }
    errors = dict.fromkeys(("generic", "numerical", "transient", "model", "runtime", "hardware"), 0)
    status = dict.fromkeys(
        (
            "completed",
            "completed_with_err",
            "completed_with_num_err",
            "timed_out",
            "incorrect_input",
            "failed_to_queue",
        ),
        1,
    )
    cpu = {"user": 20.0, "nice": 0, "system": 5.0, "idle": 75.0, "io_wait": 0, "irq": 0, "soft_irq": 0}
    device = dict.fromkeys(
        ("mem_ecc_corrected", "mem_ecc_uncorrected", "sram_ecc_corrected", "sram_ecc_uncorrected"), 2
    )
    return report(
        process(
            (30.0, 20.0, 0.0, 0.0),
            execution_stats={
                "period": 5.0,
                "error_summary": errors,
                "execution_summary": status,
                "latency_stats": {"total_latency": percentiles, "device_latency": percentiles},
                "error": "",
            },
            memory_used={
                "period": 5.0, "neuron_runtime_used_bytes": used, "loaded_models": [], "error": "",
            },
            neuron_runtime_vcpu_usage={"period": 5.0, "vcpu_usage": {"user": 24.0, "system": 3.0}},
        ),
        memory_info={
            "period": 5.0, "memory_total_bytes": 8000, "memory_used_bytes": 7000,
            "swap_total_bytes": 0, "swap_used_bytes": 0, "error": "",
        },
        neuron_hw_counters={
            "period": 5.0, "neuron_devices": [{"neuron_device_index": 0, **device}], "error": "",
        },
        vcpu_usage={
            "period": 5.0, "average_usage": cpu, "usage_data": {"0": cpu}, "context_switch_count": 9,
        },
    )  # fmt: skip
