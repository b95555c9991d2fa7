"""Readings of the whole machine, and of the run, from reports of neuron-monitor.

How processes are combined: each one lists all cores of the machine, with 0 for those it does not use. So the
largest utilization of a core is used. Memory, operations and CPU are added up. Of latencies the largest is
used, which is that of the slowest process.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing.quantity import is_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from runvitals.monitoring.collectors.trainium.counters import RunningTotals

    Process = Mapping[str, Any]

# A reading is kept until the next one is overdue: a report until the next report, a group with a longer
# period until its next value.
HELD_PERIODS = 2.5


class HeldReadings:
    """The entries of the newest report, completed with earlier groups that are still current.

    Args:
        groups: section of an entry -> neuron-monitor's names of its group.
    """

    __slots__ = ("_groups", "_held")

    def __init__(self, groups: Mapping[str, Sequence[str]]) -> None:
        self._groups = groups
        self._held: dict[object, dict[str, tuple[float, Any]]] = {}

    def take(self, entries: Iterable[Process], mono_s: float) -> list[dict[str, Any]]:
        """Return the entries of a report, each with all its current sections.

        A process that is not in the report has ended. A group with an error has no numbers.
        """
        readings: dict[object, dict[str, tuple[float, Any]]] = {}
        complete = []
        for entry in entries:
            identity = source(entry)
            errors, periods = entry.get("errors", {}), entry.get("periods", {})
            sections = {} if "error" in entry else dict(self._held.get(identity, {}))
            for section, names in self._groups.items():
                if section in entry:
                    until_s = mono_s + HELD_PERIODS * periods.get(section, 0.0)
                    sections[section] = until_s, entry[section]
                elif section in sections and (
                    section in periods  # reported without values
                    or mono_s > sections[section][0]
                    or any(name in errors for name in names)
                ):
                    del sections[section]
            readings[identity] = sections
            process = {name: entry[name] for name in ("pid", "tag") if name in entry}
            process.update((section, values) for section, (_, values) in sections.items())
            complete.append(process)
        self._held = readings
        return complete


def source(process: Process) -> object:
    """Return the identity of a process: its PID, or the id that neuron-rtd reported instead."""
    return process.get("pid", ("tag", process.get("tag")))


def write(gauges: dict[str, float], processes: Iterable[Process]) -> None:
    """The readings of the whole machine, as `trn.…`."""
    cores: dict[int, dict[str, Any]] = {}
    for process in processes:
        for core, numbers in process.get("cores", {}).items():
            before = cores.get(core)
            cores[core] = numbers if before is None else _merge(before, numbers)
        memory = process.get("memory", {})
        _memory(gauges, memory, "trn.")
        for use, size in memory.get("host_uses", {}).items():
            _add(gauges, f"trn.host_total_memory_usage.{use}", size)
        for core, uses in memory.get("core_uses", {}).items():
            for use, size in uses.items():
                _add(gauges, f"trn.{core}.neuroncore_memory_usage.{use}", size)
        for use, percent in process.get("vcpu", {}).items():
            _add(gauges, f"trn.runtime_vcpu_usage.{use}", percent)
        for kind, percentiles in process.get("execution", {}).get("latency", {}).items():
            for percentile, seconds in percentiles.items():
                _most(gauges, f"trn.{kind}_latency.{percentile}", seconds)
    for core, numbers in sorted(cores.items()):
        _core(gauges, core, numbers)


def write_run(gauges: dict[str, float], processes: Iterable[Process]) -> None:
    """The readings of the run's processes, as `trn.process.…`, for the cores they use."""
    for process in processes:
        memory = process.get("memory", {})
        sizes = {core: _sum(uses.values()) for core, uses in memory.get("core_uses", {}).items()}
        _memory(gauges, memory, "trn.process.")
        for core, size in sizes.items():
            if size:
                _add(gauges, f"trn.process.{core}.neuroncore_memory_usage", size)
        for core, numbers in process.get("cores", {}).items():
            percent = numbers.get("utilization")
            if percent is not None and (percent or sizes.get(core)):
                _most(gauges, f"trn.process.{core}.neuroncore_utilization", percent)


def cores_of(process: Process) -> list[int]:
    """Return the cores that a process uses, or has memory on."""
    busy = {core for core, numbers in process.get("cores", {}).items() if numbers.get("utilization")}
    uses = process.get("memory", {}).get("core_uses", {})
    return sorted(busy | {core for core, sizes in uses.items() if any(sizes.values())})


def count(totals: RunningTotals, report: Mapping[str, Any], first: bool) -> None:
    """Add one report to the counters.

    Args:
        totals: the counters.
        report: what neuron-monitor has printed.
        first: whether it is the first report, whose totals include earlier times.
    """
    processes = report["processes"]
    for process in processes:
        execution = process.get("execution", {})
        for status, number in execution.get("status", {}).items():
            totals.add(f"trn.execution_status.{status}", number)
        for kind, number in execution.get("errors", {}).items():
            totals.grow(f"trn.execution_errors.{kind}", source(process), number, not first)
    switches = report["system"].get("context_switches")
    if switches is not None:
        totals.add("trn.context_switches", switches)
    for device, errors in report["system"].get("ecc", {}).items():
        for kind, number in errors.items():
            totals.grow(f"trn.device.{device}.{kind}", "device", number, False)
    totals.forget({"device", *(source(process) for process in processes)})


def write_system(gauges: dict[str, float], system: Mapping[str, Any]) -> None:
    """CPU and memory of the instance, if the configuration of neuron-monitor includes them."""
    for use, percent in system.get("vcpu", {}).items():
        gauges[f"trn.vcpu_usage.{use}"] = percent
    for key, size in system.get("memory", {}).items():
        gauges[f"trn.memory_info.{key}"] = size


def _merge(before: dict[str, Any], numbers: dict[str, Any]) -> dict[str, Any]:
    """Merge one core of two processes. Nearly always one of them does not use it."""
    if not any(numbers.values()) and before.keys() >= numbers.keys():
        return before
    merged = {**numbers, **before}
    for key, value in numbers.items():
        if key == "physical":
            theirs = before.get(key, {})
            merged[key] = {each: max(value.get(each, 0), theirs.get(each, 0)) for each in {**value, **theirs}}
        elif key in before:
            merged[key] = max(value, before[key]) if key == "utilization" else value + before[key]
    return merged


def _core(gauges: dict[str, float], core: int, numbers: Mapping[str, Any]) -> None:
    for key, value in numbers.items():
        if key == "utilization":
            gauges[f"trn.{core}.neuroncore_utilization"] = value
        elif key == "physical":
            for physical, share in value.items():
                gauges[f"trn.physical.{physical}.neuroncore_utilization"] = share
        else:
            gauges[f"trn.{core}.{key}"] = value


def _memory(gauges: dict[str, float], memory: Mapping[str, Any], prefix: str) -> None:
    if "host" in memory:
        _add(gauges, f"{prefix}host_total_memory_usage", memory["host"])
    if "device" in memory:
        _add(gauges, f"{prefix}neuron_device_total_memory_usage", memory["device"])


def _add(gauges: dict[str, float], key: str, value: float) -> None:
    gauges[key] = _sum((gauges.get(key, 0.0), value))


def _sum(values: Iterable[float]) -> float:
    """Return the sum; if one is a code for "no value", that code, which the monitor recognizes."""
    numbers = list(values)
    return next((value for value in numbers if is_code(value)), None) or sum(numbers)


def _most(gauges: dict[str, float], key: str, value: float) -> None:
    before = gauges.get(key)
    if before is None or value > before:
        gauges[key] = value
