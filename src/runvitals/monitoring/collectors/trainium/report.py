"""Parses reports of neuron-monitor of any version into one structure.

neuron-monitor prints one JSON document per line: 700 bytes when idle, 450 KB with 32 processes of 20 models.
The content depends on its version (1.x with neuron-rtd, 2.x with the runtime inside each process) and on its
configuration. Both are converted to this form; what cannot be read is left out::

    {
      "processes": [{
        "pid": 2499, "tag": "11",          # PID on the host; the tag is the PID in its container, or the
                                           # value of NEURON_PROCESS_TAG
        "error": "…",                      # the whole process could not be read
        "errors": {"memory_used": "…"},    # groups that could not be read; their zeros are left out
        "periods": {"cores": 1.0, "memory": 5.02, …},                            # seconds, of each section
        "cores": {0: {"utilization": 42.0, "flops": 1.2e12, "effective_flops": 1e12,
                      "physical": {0: 21.0, 1: 63.0}}},                         # % and 1/s
        "memory": {"host": 6997643264, "device": 12519788544,                    # bytes
                   "host_uses": {"tensors": 0, …}, "core_uses": {0: {"tensors": 20971520, …}},
                   "models": [{"name": "neff", …}]},                             # as neuron-monitor has them
        "vcpu": {"user": 24.8, "system": 3.06},                                  # %
        "execution": {"period_s": 1.03, "errors": {"generic": 0, …}, "status": {"completed": 123, …},
                      "latency": {"total": {"p50": 0.011, …}, "device": {…}}},   # seconds
      }],
      "system": {"vcpu": {"user": 32.77, …}, "vcpus": {0: {"user": 34.41, …}}, "context_switches": 123456,
                 "memory": {"memory_total_bytes": …, …}, "ecc": {0: {"mem_ecc_corrected": 0, …}},
                 "periods": {"vcpu": 1.0, "memory": 5.3}},
      "errors": {"vcpu_usage": "…"},       # groups of the system that could not be read
      "instance": {"instance_type": "trn1.2xlarge", …},
      "hardware": {"neuron_device_count": 1, "neuroncore_per_device_count": 2, …},
      "pods": {"cores": {0: {"pod_name": …}}, "devices": {0: {…}}},
    }

Sections without any value are absent, except ``processes``, ``system`` and ``errors``.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing import lenient_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Names in version 2 -> their names in version 1, in order of preference.
_CORES = ("neuroncore_counters", "nc_counters")
_VCPU = ("neuron_runtime_vcpu_usage", "runtime_cpu_usage")
_EXECUTION = ("execution_stats", "inference_stats")
_STATUS = ("execution_summary", "inference_summary")
_ECC = ("neuron_hw_counters", "hw_counters")
_DEVICE = ("neuron_device", "device")
_CORE_NUMBERS = {
    "neuroncore_utilization": "utilization",
    "flops": "flops",
    "effective_flops": "effective_flops",
}
# Section of a process here -> all names of its group.
GROUPS = {"cores": _CORES, "memory": ("memory_used",), "vcpu": _VCPU, "execution": _EXECUTION}
SYSTEM_GROUPS = {"vcpu": ("vcpu_usage",), "memory": ("memory_info",)}

# Limits JSON numbers so that their sums are finite.
_MOST = 1e300
_MODELS, _AFTER_MODELS = b'"loaded_models":[', b'],"error":'


def parse(line: bytes, models: bool = True) -> dict[str, Any]:
    """Parse one line of neuron-monitor's output.

    Args:
        line: JSON, optionally after other text. Invalid UTF-8 becomes U+FFFD.
        models: whether to include ``models``, which make up most of a long report.

    Raises:
        ValueError: the line contains no complete JSON object.

    Takes 0.1 ms when idle, 0.3 ms for one process, 25 ms for 32 processes of 20 models; without the models 3
    ms.

    Example:
        >>> parse(b'{"neuron_runtime_data": []}')
        {'processes': [], 'system': {}, 'errors': {}}
    """
    document = _without_models(line) if not models else lenient_json.find(line)
    if not isinstance(document, dict):
        raise ValueError(f"invalid report: {line[:80]!r}")
    report: dict[str, Any] = {"processes": [], "system": {}, "errors": {}}
    for entry in _list(document.get("neuron_runtime_data")):
        process = _process(_object(entry))
        ecc = process.pop("ecc", None)
        if ecc:
            report["system"].setdefault("ecc", {}).update(ecc)
        report["processes"].append(process)
    _system(_object(document.get("system_data")), report)
    sections = {
        "instance": _without_empty(_first(document, ("instance_info", "instance_data"))),
        "hardware": _without_empty(_object(document.get("neuron_hardware_info"))),
        "pods": _pods(_object(document.get("neuron_k8s_info"))),
    }
    report.update({name: section for name, section in sections.items() if section})
    return report


def _without_models(line: bytes) -> Any:
    """The document without its lists of models, which are cut out of the text in neuron-monitor's format."""
    parts = []
    end = 0
    while (start := line.find(_MODELS, end)) >= 0:
        after = line.find(_AFTER_MODELS, start)
        if after < 0:
            break
        parts.append(line[end : start + len(_MODELS)])
        end = after
    if parts:
        try:
            return lenient_json.find(b"".join((*parts, line[end:])))
        except ValueError:  # another format: parse the whole line
            return lenient_json.find(line)
    return lenient_json.find(line)


def _process(entry: dict[str, Any]) -> dict[str, Any]:
    process: dict[str, Any] = {}
    pid = _number(entry.get("pid"))
    if pid:  # 0 is neuron-rtd, which served all processes
        process["pid"] = int(pid)
    tag = entry.get("neuron_runtime_tag", entry.get("neuron_runtime_index"))
    if tag is not None:
        process["tag"] = str(tag)
    error = entry.get("error")
    if error:
        return {**process, "error": str(error)}
    groups = _object(entry.get("report"))
    errors: dict[str, str] = {}
    by_section = {section: _group(groups, names, errors) for section, names in GROUPS.items()}
    sections = {
        "cores": _cores(by_section["cores"]),
        "memory": _memory(by_section["memory"]),
        "vcpu": _numbers(_object(by_section["vcpu"].get("vcpu_usage"))),
        "execution": _execution(by_section["execution"]),
        "ecc": _ecc(_group(groups, _ECC, errors)),
        "errors": errors,
        "periods": _periods(by_section),
    }
    process.update({name: section for name, section in sections.items() if section})
    return process


def _cores(group: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Return the cores.

    Every process lists all cores of the machine, so this takes most of the time: 3 µs a core.
    """
    cores: dict[int, dict[str, Any]] = {}
    for name, numbers in _object(group.get("neuroncores_in_use")).items():
        index = _index(name)
        if index is None:
            continue
        core: dict[str, Any] = {}
        for key, value in numbers.items() if isinstance(numbers, dict) else ():
            kind = type(value)
            if kind is float or kind is int:
                ours = _CORE_NUMBERS.get(key)
                if ours is not None and -_MOST < value < _MOST:
                    core[ours] = value
            elif kind is dict:
                core.setdefault("physical", {}).update(_physical(value))
        if "physical" in core and not core["physical"]:
            del core["physical"]
        cores[index] = core
    return cores


def _physical(group: dict[str, Any]) -> dict[int, float]:
    """Return the physical cores of a logical one, listed as `nc_v3.0` in a key such as `v3d`."""
    uses: dict[int, float] = {}
    for name, numbers in group.items():
        index = _index(name.rpartition(".")[2])
        utilization = _number(_object(numbers).get("neuroncore_utilization"))
        if index is not None and utilization is not None:
            uses[index] = utilization
    return uses


def _memory(group: dict[str, Any]) -> dict[str, Any]:
    used = _object(group.get("neuron_runtime_used_bytes"))
    memory: dict[str, Any] = {}
    host = _number(used.get("host"))
    if host is not None:
        memory["host"] = host
    device = next((number for name in _DEVICE if (number := _number(used.get(name))) is not None), None)
    if device is not None:
        memory["device"] = device
    breakdown = _object(used.get("usage_breakdown"))
    host_uses = _numbers(_object(breakdown.get("host")))
    if host_uses:
        memory["host_uses"] = host_uses
    core_uses = {
        index: _numbers(_object(uses))
        for name, uses in _object(breakdown.get("neuroncore_memory_usage")).items()
        if (index := _index(name)) is not None
    }
    if core_uses:
        memory["core_uses"] = core_uses
    models = _list(group.get("loaded_models"))
    if models:
        memory["models"] = models
    return memory


def _execution(group: dict[str, Any]) -> dict[str, Any]:
    latencies = _object(group.get("latency_stats"))
    latency = {
        name.removesuffix("_latency"): percentiles
        for name, values in latencies.items()
        if (percentiles := _numbers(_object(values)))
    }
    sections = {
        "errors": _numbers(_object(group.get("error_summary"))),
        "status": _numbers(_first(group, _STATUS)),
        "latency": latency,
    }
    execution: dict[str, Any] = {name: section for name, section in sections.items() if section}
    period_s = _number(group.get("period"))
    if execution and period_s is not None:
        execution["period_s"] = period_s
    return execution


def _ecc(group: dict[str, Any]) -> dict[int, dict[str, float]]:
    devices = {}
    for device in _list(group.get("neuron_devices")):
        counts = _numbers(_object(device))
        index = counts.pop("neuron_device_index", None)
        if index is not None:
            devices[int(index)] = counts
    return devices


def _system(groups: dict[str, Any], report: dict[str, Any]) -> None:
    errors = report["errors"]
    by_section = {section: _group(groups, names, errors) for section, names in SYSTEM_GROUPS.items()}
    vcpu, memory = by_section["vcpu"], _numbers(by_section["memory"])
    memory.pop("period", None)
    sections = {
        "vcpu": _numbers(_object(vcpu.get("average_usage"))),
        "vcpus": {
            index: _numbers(_object(shares))
            for name, shares in _object(vcpu.get("usage_data")).items()
            if (index := _index(name)) is not None
        },
        "memory": memory,
        "ecc": _ecc(_group(groups, _ECC, errors)),
        "periods": _periods(by_section),
    }
    report["system"].update({name: section for name, section in sections.items() if section})
    switches = _number(vcpu.get("context_switch_count"))
    if switches is not None:
        report["system"]["context_switches"] = switches


def _pods(group: dict[str, Any]) -> dict[str, dict[int, Any]]:
    pods = {}
    for ours, theirs in (("cores", "neuroncores_k8s_info"), ("devices", "neurondevices_k8s_info")):
        devices = {
            index: pod
            for name, pod in _object(group.get(theirs)).items()
            if (index := _index(name)) is not None
        }
        if devices:
            pods[ours] = devices
    return pods


def _group(groups: dict[str, Any], names: tuple[str, ...], errors: dict[str, str]) -> dict[str, Any]:
    """Return a group, under the first of its names that exists.

    For a group with an error, record the error and return {}: its numbers are zeros that were not measured.
    """
    for name in names:
        if name in groups:
            group = _object(groups[name])
            error = group.get("error")
            if not error:
                return group
            errors[name] = str(error)
    return {}


def _periods(sections: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Return the measured period of each section's group, if reported."""
    periods = {section: _number(group.get("period")) for section, group in sections.items()}
    return {section: period_s for section, period_s in periods.items() if period_s is not None}


def _without_empty(section: dict[str, Any]) -> dict[str, Any]:
    """Return a section without empty values, such as the instance's name if the region is unknown."""
    return {name: value for name, value in section.items() if value not in ("", None)}


def _first(groups: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return next((_object(groups[name]) for name in names if name in groups), {})


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any) -> float | None:
    """Return a finite number in the range of a float; None for everything else, including "N/A" and null."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -_MOST < value < _MOST:
        return None
    return value


def _numbers(numbers: dict[str, Any]) -> dict[str, float]:
    return {name: number for name, value in numbers.items() if (number := _number(value)) is not None}


def _index(name: object) -> int | None:
    text = str(name)
    return int(text) if text.isdecimal() and text.isascii() else None
