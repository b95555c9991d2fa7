"""AWS's exporter of neuron-monitor (`neuron-monitor-prometheus.py`).

Its series have the tag of a runtime; ours are of all runtimes of a host together.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from runvitals.server.doors.exporters.translation import Derived, Input, Translation, sum_of, total_of

_CORE_MEMORY = "neuroncore_memory_usage_"
_USES = ("constants", "model_code", "model_shared_scratchpad", "runtime_memory", "tensors")
_RUNTIME_MEMORY = {
    "host": "trn.host_total_memory_usage",
    "neuron_device": "trn.neuron_device_total_memory_usage",
}
_STATUS = ("completed", "completed_with_err", "completed_with_num_err", "timed_out", "incorrect_input",
           "failed_to_queue")  # fmt: skip
_ERRORS = ("generic", "numerical", "transient", "model", "runtime", "hardware")
_ECC = ("mem_ecc_corrected", "mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected", "sram_ecc_corrected",
        "sram_ecc_uncorrected")  # fmt: skip
_PERCENTILES = ("p0", "p1", "p25", "p50", "p75", "p99", "p100")


def translate(name: str, labels: Mapping[str, str], device: int | None) -> Translation | None:
    """Return how a series of the exporter becomes ours."""
    runtime = labels.get("runtime_tag", "")
    if name == "hardware_ecc_events_total":
        kind, index = labels.get("event_type"), labels.get("neuron_device_index", "")
        return Translation(f"trn.device.{int(index)}.{kind}") if kind in _ECC and _is_index(index) else None
    if name == "execution_latency_seconds":
        percentile = labels.get("percentile")
        return Translation(f"trn.total_latency.{percentile}") if percentile in _PERCENTILES else None
    derived = _derived_metric(name, labels)
    return None if derived is None else Translation(inputs=(Input(derived, runtime),))


def _derived_metric(name: str, labels: Mapping[str, str]) -> Derived | None:
    core, use = labels.get("neuroncore", ""), name.removeprefix(_CORE_MEMORY)
    if name == "neuroncore_utilization_ratio" and _is_index(core):
        return _sum(f"trn.{int(core)}.neuroncore_utilization", 100.0)
    if name.startswith(_CORE_MEMORY) and use in _USES and _is_index(core):
        return _sum(f"trn.{int(core)}.neuroncore_memory_usage.{use}", 1.0)
    if name == "neuron_runtime_memory_used_bytes":
        key = _RUNTIME_MEMORY.get(labels.get("memory_location", ""))
        return None if key is None else _sum(key, 1.0)
    if name == "neuron_runtime_vcpu_usage_ratio" and labels.get("usage_type") in ("user", "system"):
        return _sum(f"trn.runtime_vcpu_usage.{labels['usage_type']}", 100.0)
    if name == "execution_status_total" and labels.get("status_type") in _STATUS:
        return _total(f"trn.execution_status.{labels['status_type']}")
    if name == "execution_errors_total" and labels.get("error_type") in _ERRORS:
        return _total(f"trn.execution_errors.{labels['error_type']}")
    return None


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 5


@lru_cache(4096)
def _sum(key: str, factor: float) -> Derived:
    return sum_of(key, factor)


@lru_cache(64)
def _total(key: str) -> Derived:
    return total_of(key)
