"""The list of Neuron devices from `neuron-ls`, in the formats of its releases."""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing import lenient_json, pci
from runvitals.monitoring.collectors.plumbing.plain_text import first_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Arguments for JSON output; releases from 2.34 on have another flag and another format.
ARGUMENTS = (("-j",), ("--output-format", "json"))


def parse(output: bytes) -> list[dict[str, Any]]:
    """List the devices, ordered by index.

    Each has ``index``, ``pci``, ``core_ids``, ``memory_bytes``, ``numa_node``, ``connected_to``,
    ``logical_neuroncore_config``, and ``pids`` of the processes that use it. Unknown values are left out.

    Raises:
        ValueError: there is no JSON, or no device in it.

    Example:
        >>> parse(b'[{"neuron_device": 0, "bdf": "cc:00.0", "nc_count": 2, "numa_node": "-1"}]')
        [{'index': 0, 'pci': '0000:cc:00.0', 'cores': 2}]
    """
    devices = {}
    for entry in _devices(lenient_json.find(output)):
        device = _device(entry)
        devices[device["index"]] = device
    if not devices:
        raise ValueError(f"neuron-ls lists no device: {first_lines(output)}")
    return [devices[index] for index in sorted(devices)]


def _devices(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the device objects, however deep in lists and objects: of instances, of UltraServers."""
    if isinstance(document, dict) and isinstance(document.get("neuron_device"), int):
        yield document
    elif isinstance(document, (dict, list)):
        for each in document.values() if isinstance(document, dict) else document:
            yield from _devices(each)


def _device(entry: dict[str, Any]) -> dict[str, Any]:
    processes = entry.get("neuron_processes")
    numa = str(entry.get("numa_node", ""))
    device = {
        "index": entry["neuron_device"],
        "pci": pci.normal(str(entry.get("bdf", ""))),
        "cores": entry.get("nc_count"),
        "core_ids": entry.get("neuroncore_ids"),
        "logical_neuroncore_config": entry.get("logical_neuroncore_config"),
        "memory_bytes": entry.get("memory_size"),
        "numa_node": int(numa) if numa.isdigit() else None,
        "cpus": entry.get("cpu_affinity"),
        "connected_to": entry.get("connected_to"),
        "pids": [each["pid"] for each in processes if isinstance(each, dict) and "pid" in each]
        if isinstance(processes, list)
        else None,
    }
    return {name: value for name, value in device.items() if value not in (None, "", [])}
