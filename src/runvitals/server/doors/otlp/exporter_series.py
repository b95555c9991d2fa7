"""Metrics of OpenTelemetry that a Prometheus exporter has too.

What is computed from several series of the exporter is computed from them.

The collector's receiver for hosts sends the time of each processor, from which our keys with shares of it are
computed. Its receiver for Prometheus sends the metrics of exporters under their own names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from runvitals.server.doors.exporters import translate
from runvitals.server.doors.exporters.translation import Translation
from runvitals.server.doors.routing import RoutingRules, device

_MODES: Final = {"wait": "iowait", "interrupt": "irq"}
_CPU: Final = re.compile(r"(?:cpu)?([0-9]+)")
_FLOWS: Final = {
    ("system.disk.io", "read"): "node_disk_read_bytes_total",
    ("system.disk.io", "write"): "node_disk_written_bytes_total",
    ("system.network.io", "transmit"): "node_network_transmit_bytes_total",
    ("system.network.io", "receive"): "node_network_receive_bytes_total",
}


def translation(
    name: str, attributes: Mapping[str, str], unit: str, rules: RoutingRules
) -> Translation | None:
    """Return how a metric becomes ours, if it is an exporter's.

    Example:
        >>> found = translation("system.cpu.time", {"cpu": "cpu0", "state": "user"}, "s", DEFAULT_RULES)
        >>> found.key is None, found.inputs[0].name
        (True, '0/user')
    """
    if name == "system.cpu.time" and unit in ("s", ""):
        cpu = _CPU.fullmatch(_first(attributes, "cpu.logical_number", "cpu"))
        mode = _first(attributes, "cpu.mode", "system.cpu.state", "state")
        if cpu is None or not mode:
            return None
        return translate("node_cpu_seconds_total", {"cpu": cpu[1], "mode": _MODES.get(mode, mode)}, None)
    if name in ("system.disk.io", "system.network.io") and unit in ("By", ""):
        direction = _first(attributes, "disk.io.direction", "network.io.direction", "direction")
        exporter_name = _FLOWS.get((name, direction))
        of = _first(attributes, "system.device", "network.interface.name", "device")
        return None if exporter_name is None else translate(exporter_name, {"device": of}, None)
    return translate(name, attributes, device(attributes, rules))


def _first(attributes: Mapping[str, str], *names: str) -> str:
    return next((attributes[name] for name in names if name in attributes), "")
