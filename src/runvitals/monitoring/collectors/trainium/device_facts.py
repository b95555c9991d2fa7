"""Facts about the Neuron devices.

From neuron-monitor, the driver and neuron-ls, each of which may be missing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from runvitals.monitoring.collectors.trainium.run_processes import RunProcessFilter

# neuron-monitor's names -> ours. The counts keep the names of W&B's metadata.
_HARDWARE = {
    "neuron_device_type": "name",
    "neuron_device_version": "device_version",
    "neuroncore_version": "core_version",
    "neuron_device_count": "neuron_device_count",
    "neuroncore_per_device_count": "neuroncore_per_device_count",
    "neuron_device_memory_size": "memory_bytes",
    "logical_neuroncore_config": "logical_neuroncore_config",
    "logical_neuroncore_size": "logical_neuroncore_config",
}


def describe(
    report: Mapping[str, Any],
    driver: Mapping[str, Any],
    listed: Sequence[Mapping[str, Any]],
    own: RunProcessFilter,
) -> dict[str, object]:
    """Return the fact `trainium`; {} if nothing is known yet.

    The devices are in `neuron_devices`. The numbers in keys, `trn.{core}`, are core numbers.

    Args:
        report: the newest report of neuron-monitor, from `report.parse`.
        driver: ``devices``, ``instance_type``, ``version``.
        listed: the devices from neuron-ls.
        own: selects the processes of the run.
    """
    hardware = report.get("hardware", {})
    fact: dict[str, object] = {
        ours: hardware[theirs] for theirs, ours in _HARDWARE.items() if theirs in hardware
    }
    devices = _merge(driver.get("devices", ()), listed)
    if not fact and not devices:
        return {}
    fact = {"vendor": "AWS", **fact}
    if devices:
        fact.setdefault("neuron_device_count", len(devices))
        first = devices[0]
        for key, ours in (("name", "name"), ("cores", "neuroncore_per_device_count"),
                          ("memory_bytes", "memory_bytes"),
                          ("logical_neuroncore_config", "logical_neuroncore_config")):  # fmt: skip
            if key in first:
                fact.setdefault(ours, first[key])
    instance = report.get("instance", {}).get("instance_type") or driver.get("instance_type")
    if instance:
        fact["instance_type"] = instance
    if driver.get("version"):
        fact["driver"] = driver["version"]
    per_device = fact.get("neuroncore_per_device_count")
    if own.processes:
        fact["processes"] = own.processes
    if devices:
        used = own.cores
        for device in devices:
            device["used"] = _is_used(device, per_device, used) if own.processes and not own.unknown else None
        fact["neuron_devices"] = devices
    return fact


def _merge(driver: Sequence[Mapping[str, Any]], listed: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Merge devices by index. If both report a value, that of neuron-ls is used."""
    merged: dict[int, dict[str, Any]] = {}
    for device in (*driver, *listed):
        merged.setdefault(device["index"], {}).update(device)
        merged[device["index"]].pop("pids", None)
    return [merged[index] for index in sorted(merged)]


def _is_used(device: Mapping[str, Any], per_device: object, used: set[int]) -> bool | None:
    cores = device.get("core_ids")
    if cores is None and isinstance(per_device, (int, float)):
        first = device["index"] * int(per_device)
        cores = range(first, first + int(per_device))
    return None if cores is None else not used.isdisjoint(cores)
