"""Converts a report of neuron-monitor to readings: all its numbers, merged over the processes.

The utilization of a core is the maximum over processes, because every process lists all cores and only those
it uses are not zero. Memory, executions and CPU are summed. Latencies are the maximum: those of the slowest
process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import add
from typing import Any, NamedTuple

from runvitals.monitoring.collectors.trainium.report import parse
from runvitals.relay.destinations.cloudwatch import limits
from runvitals.relay.destinations.cloudwatch.datum import MetricReading, MetricSeries

Merge = Callable[[float, float], float]

RUNTIME_GROUPS = ("neuroncore_counters", "memory_used", "neuron_runtime_vcpu_usage", "execution_stats")
SYSTEM_GROUPS = ("vcpu_usage", "memory_info", "neuron_hw_counters")
GROUPS = frozenset(RUNTIME_GROUPS + SYSTEM_GROUPS)


class NeuronReport(NamedTuple):
    """The contents of one report.

    Args:
        readings: its numbers.
        errors: the errors it contains, `vcpu_usage: open /proc/1/stat: …`.
        instance: the known fields of `instance_info`: instance_id, instance_type, ….
    """

    readings: list[MetricReading]
    errors: list[str]
    instance: dict[str, str]


class NamedValue(NamedTuple):
    """A number of one process or of the system, before merging."""

    group: str
    name: str
    unit: str
    merge: Merge
    field: str
    value: float


def read(line: bytes, by_tag: bool = False) -> NeuronReport:
    """Return the readings of one report.

    Args:
        line: the report, as neuron-monitor prints it.
        by_tag: distinguish processes with different tags by a dimension `RuntimeTag`.

    Raises:
        ValueError: not a report of neuron-monitor.

    Example:
        >>> report = read(b'{"neuron_runtime_data": [{"report": {"neuroncore_counters": '
        ...               b'{"neuroncores_in_use": {"0": {"neuroncore_utilization": 42.0}}}}}]}')
        >>> report.readings[0].series.name, report.readings[0].value
        ('NeuronCoreUtilizationNC0', 42.0)
    """
    parsed = parse(line)
    if not any(parsed.values()):
        raise ValueError("not a report of neuron-monitor: no known field")
    merged: dict[MetricSeries, MetricReading] = {}
    errors = [f"{group}: {error}" for group, error in parsed["errors"].items()]
    for process in parsed["processes"]:
        errors += [f"{group}: {error}" for group, error in process.get("errors", {}).items()]
        if "error" in process:
            errors.append(f"process {process.get('pid', '?')}: {process['error']}")
        tag = limits.valid_name(process.get("tag", "")) if by_tag and process.get("tag") else ""
        for reading in _of_process(process):
            _merge(merged, reading, (("RuntimeTag", tag),) if tag else ())
    for reading in _of_system(parsed["system"]):
        _merge(merged, reading, ())
    instance = {key: value for key, value in parsed.get("instance", {}).items() if isinstance(value, str)}
    return NeuronReport(list(merged.values()), errors, instance)


def _merge(
    merged: dict[MetricSeries, MetricReading], reading: NamedValue, dimensions: tuple[tuple[str, str], ...]
) -> None:
    series = MetricSeries(limits.valid_name(reading.name), reading.unit, dimensions)
    before = merged.get(series)
    value = _float(reading.value)
    if before is not None:
        value = reading.merge(before.value, value)
    merged[series] = MetricReading(series, value, reading.group, reading.field)


def _float(value: float) -> float:
    """Convert a number; an integer too large for a float becomes infinity, which is rejected later."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def camel(name: str) -> str:
    """Return a name of a report in camel case.

    Example:
        >>> camel("completed_with_err")
        'CompletedWithErr'
    """
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _of_process(process: Mapping[str, Any]) -> Iterator[NamedValue]:
    for core, numbers in process.get("cores", {}).items():
        yield from _core(core, numbers)
    yield from _memory(process.get("memory", {}))
    for use, value in process.get("vcpu", {}).items():
        group, name = "neuron_runtime_vcpu_usage", f"RuntimeVcpu{camel(use)}"
        yield NamedValue(group, name, "Percent", add, f"vcpu_usage.{use}", value)
    yield from _execution(process.get("execution", {}))


def _core(core: int, numbers: Mapping[str, Any]) -> Iterator[NamedValue]:
    group = "neuroncore_counters"
    for key, (field, name, unit) in _CORE_NUMBERS.items():
        if key in numbers:
            yield NamedValue(group, f"{name}NC{core}", unit, max, field, numbers[key])
    # On Trainium2 and later, a logical core consists of physical ones.
    for physical, value in numbers.get("physical", {}).items():
        name = f"NeuronCorePhysicalUtilizationNC{physical}"
        yield NamedValue(group, name, "Percent", max, "v3d.neuroncore_utilization", value)


_CORE_NUMBERS = {
    "utilization": ("neuroncore_utilization", "NeuronCoreUtilization", "Percent"),
    "flops": ("flops", "NeuronCoreFlops", "Count/Second"),
    "effective_flops": ("effective_flops", "NeuronCoreEffectiveFlops", "Count/Second"),
}


def _memory(memory: Mapping[str, Any]) -> Iterator[NamedValue]:
    group = "memory_used"
    for key, field in (("host", "host"), ("device", "neuron_device")):
        if key in memory:
            yield NamedValue(group, f"RuntimeMemory{camel(key)}", "Bytes", add, field, memory[key])
    for use, value in memory.get("host_uses", {}).items():
        name = f"RuntimeMemoryHost{camel(use)}"
        yield NamedValue(group, name, "Bytes", add, f"usage_breakdown.host.{use}", value)
    for core, uses in memory.get("core_uses", {}).items():
        for use, value in uses.items():
            name = f"NeuronCoreMemory{camel(use)}NC{core}"
            yield NamedValue(group, name, "Bytes", add, f"neuroncore_memory_usage.{use}", value)


def _execution(execution: Mapping[str, Any]) -> Iterator[NamedValue]:
    group = "execution_stats"
    for kind, value in execution.get("errors", {}).items():
        yield NamedValue(group, f"ExecutionErrors{camel(kind)}", "Count", add, f"error_summary.{kind}", value)
    for status, value in execution.get("status", {}).items():
        name = f"ExecutionStatus{camel(status)}"
        yield NamedValue(group, name, "Count", add, f"execution_summary.{status}", value)
    for kind, percentiles in execution.get("latency", {}).items():
        name = "ExecutionLatency" if kind == "total" else f"{camel(kind)}Latency"
        for percentile, value in percentiles.items():
            field = f"{kind}_latency.{percentile}"
            yield NamedValue(group, f"{name}{camel(percentile)}", "Seconds", max, field, value)


def _of_system(system: Mapping[str, Any]) -> Iterator[NamedValue]:
    for use, value in system.get("vcpu", {}).items():
        yield NamedValue(
            "vcpu_usage", f"SystemVcpu{camel(use)}", "Percent", max, f"average_usage.{use}", value
        )
    if "context_switches" in system:
        name, value = "SystemContextSwitches", system["context_switches"]
        yield NamedValue("vcpu_usage", name, "Count", max, "context_switch_count", value)
    for key, value in system.get("memory", {}).items():
        name = f"System{camel(key.removesuffix('_bytes'))}"
        yield NamedValue("memory_info", name, "Bytes", max, key, value)
    # Memory errors: the sum over all devices, and those of each device.
    for device, counts in system.get("ecc", {}).items():
        for kind, value in counts.items():
            name = f"Ecc{camel(kind.replace('_ecc_', '_'))}"
            yield NamedValue("neuron_hw_counters", name, "Count", add, kind, value)
            field = f"neuron_devices.{kind}"
            yield NamedValue("neuron_hw_counters", f"{name}ND{device}", "Count", max, field, value)
