"""A report of neuron-monitor as readings: every number that it has, merged over the processes in it.

All shapes that neuron-monitor has printed are read: those of 1.x (`inference_stats`, `hw_counters` within a
process, no breakdown of memory) and 2.x, with any groups missing, and with keys that did not exist yet.
A group or process with an error has zeros in place of numbers; they are left out, and the error is told.

Over the processes of a report: of a core's utilization the largest counts, because every process lists all
cores and only its own are not zero; memory, executions and CPU are added up; of latencies the largest counts,
that is those of the slowest process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import nan
from typing import Any, NamedTuple

from runvitals.relay.cloudwatch import limits
from runvitals.relay.cloudwatch.datum import Reading, Series

Json = Any
Merge = Callable[[float, float], float]

# Names of groups in versions 1.x and before.
_RENAMED = {
    "nc_counters": "neuroncore_counters",
    "runtime_cpu_usage": "neuron_runtime_vcpu_usage",
    "inference_stats": "execution_stats",
    "hw_counters": "neuron_hw_counters",
}


class Report(NamedTuple):
    """What a report says.

    Args:
        readings: its numbers.
        period_s: the shortest time that one of its groups covers, None where none says.
        errors: what neuron-monitor says it could not read: `vcpu_usage: open /proc/1/stat: …`.
        instance: `instance_info`: instance_id, instance_type, …; "" where it does not know them.
    """

    readings: list[Reading]
    period_s: float | None
    errors: list[str]
    instance: dict[str, str]


class Found(NamedTuple):
    """One number of one process's report, before merging."""

    name: str
    unit: str
    merge: Merge
    field: str
    value: object


def add(a: float, b: float) -> float:
    return a + b


def read(document: Json, by_tag: bool = False) -> Report:
    """The readings of one report.

    Args:
        document: the report, decoded.
        by_tag: keep processes of different tags apart, by a dimension `RuntimeTag`.

    Raises:
        ValueError: no report of neuron-monitor.

    Example:
        >>> report = read({"neuron_runtime_data": [{"report": {"neuroncore_counters": {
        ...     "neuroncores_in_use": {"0": {"neuroncore_utilization": 42.0}}, "error": ""}}}]})
        >>> report.readings[0].series.name, report.readings[0].value
        ('NeuronCoreUtilizationNC0', 42.0)
    """
    if not isinstance(document, dict) or not {"neuron_runtime_data", "system_data"} & document.keys():
        raise ValueError("no report of neuron-monitor: neither neuron_runtime_data nor system_data is in it")
    merged = _Merged()
    for process in _list(document.get("neuron_runtime_data")):
        tag = str(process.get("neuron_runtime_tag", "")) if by_tag else ""
        if process.get("error"):
            merged.errors.append(f"process {process.get('pid', '?')}: {process['error']}")
        else:
            merged.groups(_dict(process.get("report")), tag)
    merged.groups(_dict(document.get("system_data")), "")
    instance = _dict(document.get("instance_info")) or _dict(document.get("instance_data"))
    texts = {key: value for key, value in instance.items() if isinstance(value, str)}
    return Report(list(merged.readings.values()), merged.period_s, merged.errors, texts)


class _Merged:
    """The readings of a report as they come together."""

    def __init__(self) -> None:
        self.readings: dict[Series, Reading] = {}
        self.errors: list[str] = []
        self.period_s: float | None = None

    def groups(self, groups: dict[str, Json], tag: str) -> None:
        for name, content in groups.items():
            group = _RENAMED.get(name, name)
            walk = _GROUPS.get(group)
            if walk is None or not isinstance(content, dict):
                continue
            if content.get("error"):
                self.errors.append(f"{name}: {content['error']}")
                continue
            period_s = _number(content.get("period"))
            if period_s and not (self.period_s and self.period_s <= period_s):
                self.period_s = period_s
            for found in walk(content):
                self._put(found, group, tag if group in RUNTIME_GROUPS else "")

    def _put(self, found: Found, group: str, tag: str) -> None:
        value = _number(found.value)
        if value is None:
            return
        dimensions = (("RuntimeTag", limits.legal_name(tag)),) if tag else ()
        series = Series(limits.legal_name(found.name), found.unit, dimensions)
        before = self.readings.get(series)
        if before is not None:
            value = found.merge(before.value, value)
        self.readings[series] = Reading(series, value, group, found.field)


def _number(value: object) -> float | None:
    """A number of JSON; None for what is none. What is beyond all floats becomes NaN, which is counted."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return nan


def _dict(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[dict[str, Json]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def camel(name: str) -> str:
    """
    Example:
        >>> camel("completed_with_err")
        'CompletedWithErr'
    """
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _cores(group: dict[str, Json]) -> Iterator[Found]:
    for core, numbers in _dict(group.get("neuroncores_in_use")).items():
        for key, value in _dict(numbers).items():
            if key == "v3d":
                yield from _physical_cores(_dict(value))
            elif not isinstance(value, (dict, list)):  # 1.x lists a core's models here
                name, unit = _CORE_NUMBERS.get(key) or (f"NeuronCore{camel(key)}", "None")
                yield Found(f"{name}NC{core}", unit, max, key, value)


_CORE_NUMBERS = {
    "neuroncore_utilization": ("NeuronCoreUtilization", "Percent"),
    "flops": ("NeuronCoreFlops", "Count/Second"),
    "effective_flops": ("NeuronCoreEffectiveFlops", "Count/Second"),
}


def _physical_cores(cores: dict[str, Json]) -> Iterator[Found]:
    """The physical cores of a logical one, `nc_v3.0` and `nc_v3.1`, on Trainium2 and later."""
    for core, numbers in cores.items():
        number = core.rpartition(".")[2]
        utilization = _dict(numbers).get("neuroncore_utilization")
        name = f"NeuronCorePhysicalUtilizationNC{number}"
        yield Found(name, "Percent", max, "v3d.neuroncore_utilization", utilization)


def _memory(group: dict[str, Json]) -> Iterator[Found]:
    used = _dict(group.get("neuron_runtime_used_bytes"))
    yield Found("RuntimeMemoryHost", "Bytes", add, "host", used.get("host"))
    device = used.get("neuron_device", used.get("device"))  # the latter in some version of the runtime
    yield Found("RuntimeMemoryDevice", "Bytes", add, "neuron_device", device)
    breakdown = _dict(used.get("usage_breakdown"))
    for use, value in _dict(breakdown.get("host")).items():
        yield Found(f"RuntimeMemoryHost{camel(use)}", "Bytes", add, f"usage_breakdown.host.{use}", value)
    for core, uses in _dict(breakdown.get("neuroncore_memory_usage")).items():
        for use, value in _dict(uses).items():
            name = f"NeuronCoreMemory{camel(use)}NC{core}"
            yield Found(name, "Bytes", add, f"neuroncore_memory_usage.{use}", value)


def _runtime_cpu(group: dict[str, Json]) -> Iterator[Found]:
    for use, value in _dict(group.get("vcpu_usage")).items():
        yield Found(f"RuntimeVcpu{camel(use)}", "Percent", add, f"vcpu_usage.{use}", value)


def _execution(group: dict[str, Json]) -> Iterator[Found]:
    for kind, value in _dict(group.get("error_summary")).items():
        yield Found(f"ExecutionErrors{camel(kind)}", "Count", add, f"error_summary.{kind}", value)
    summary = _dict(group.get("execution_summary")) or _dict(group.get("inference_summary"))
    for status, value in summary.items():
        yield Found(f"ExecutionStatus{camel(status)}", "Count", add, f"execution_summary.{status}", value)
    latencies = _dict(group.get("latency_stats"))
    for kind, name in (("total_latency", "ExecutionLatency"), ("device_latency", "DeviceLatency")):
        for percentile, value in _dict(latencies.get(kind)).items():
            yield Found(f"{name}{camel(percentile)}", "Seconds", max, f"{kind}.{percentile}", value)


def _host_cpu(group: dict[str, Json]) -> Iterator[Found]:
    for use, value in _dict(group.get("average_usage")).items():
        yield Found(f"SystemVcpu{camel(use)}", "Percent", max, f"average_usage.{use}", value)
    switches = group.get("context_switch_count")
    yield Found("SystemContextSwitches", "Count", max, "context_switch_count", switches)


def _host_memory(group: dict[str, Json]) -> Iterator[Found]:
    for key, value in group.items():
        if key.endswith("_bytes"):
            yield Found(f"System{camel(key.removesuffix('_bytes'))}", "Bytes", max, key, value)


def _ecc(group: dict[str, Json]) -> Iterator[Found]:
    """Errors in memory: of all devices together, and of each."""
    totals: dict[str, float] = {}
    for device in _list(group.get("neuron_devices")):
        number = device.get("neuron_device_index", "")
        for kind, value in device.items():
            count = _number(value)
            if kind == "neuron_device_index" or count is None:
                continue
            totals[kind] = totals.get(kind, 0.0) + count
            yield Found(f"Ecc{_ecc_name(kind)}ND{number}", "Count", max, f"neuron_devices.{kind}", value)
    for kind, total in totals.items():
        yield Found(f"Ecc{_ecc_name(kind)}", "Count", max, kind, total)


def _ecc_name(kind: str) -> str:
    return camel(kind.replace("_ecc_", "_"))


RUNTIME_GROUPS = ("neuroncore_counters", "memory_used", "neuron_runtime_vcpu_usage", "execution_stats")
SYSTEM_GROUPS = ("vcpu_usage", "memory_info", "neuron_hw_counters")

_GROUPS: dict[str, Callable[[dict[str, Json]], Iterator[Found]]] = {
    "neuroncore_counters": _cores,
    "memory_used": _memory,
    "neuron_runtime_vcpu_usage": _runtime_cpu,
    "execution_stats": _execution,
    "vcpu_usage": _host_cpu,
    "memory_info": _host_memory,
    "neuron_hw_counters": _ecc,
}
