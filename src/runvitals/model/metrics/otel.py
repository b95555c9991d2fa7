"""OpenTelemetry's names of metrics, in both directions: `attributes_of` a key, and `find`, the key of a name.

https://opentelemetry.io/docs/specs/semconv/system/system-metrics/
https://opentelemetry.io/docs/specs/semconv/hardware/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final, NamedTuple

from runvitals.model.metrics import DEFINITIONS
from runvitals.model.metrics.definitions import Match
from runvitals.model.metrics.labels import label
from runvitals.model.metrics.metric import Metric, pattern, placeholders
from runvitals.model.metrics.unit import UNITS

Attributes = Mapping[str, str]
PREFIX: Final = "runvitals."
"""Prefix of names and attributes that the conventions do not have."""


def attribute_templates(metric: Metric) -> dict[str, str]:
    """Return the attributes of a metric, with the placeholders of its key in them.

    Example:
        >>> attribute_templates(DEFINITIONS.by_template["network.{nic}.sent"])
        {'network.io.direction': 'transmit', 'network.interface.name': '{nic}'}
    """
    used = {name for text in metric.attributes.values() for name in placeholders(text)}
    others = (name for name in placeholders(metric.key) if name not in used)
    return {**metric.attributes, **{f"{PREFIX}{label(metric, name)}": f"{{{name}}}" for name in others}}


def attributes_of(match: Match) -> dict[str, str]:
    """Return the attributes of a key."""
    templates = attribute_templates(match.metric)
    return {name: text.format(**match.labels) for name, text in templates.items()}


class Found(NamedTuple):
    """The key of an instrument with attributes.

    Args:
        factor: to the unit of the key.
        is_counter: whether the key is a total that only grows.
    """

    key: str
    factor: float
    is_counter: bool


class _Row(NamedTuple):
    metric: Metric
    attributes: Mapping[str, re.Pattern[str]]


# Names of the collector's receivers and of earlier versions of the conventions.
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "system.cpu.load_average.1m": "system.load1",
    "system.cpu.load_average.5m": "system.load5",
    "system.cpu.load_average.15m": "system.load15",
    "system.linux.memory.available": "proc.memory.availableMB",
    "k8s.node.memory.available": "proc.memory.availableMB",
    "k8s.node.uptime": "system.uptime",
    "process.memory.physical_usage": "proc.memory.rssMB",
    "process.threads": "proc.cpu.threads",
    "container.memory.working_set": "cgroup.memory.workingSetMB",
    "k8s.container.cpu_limit": "cgroup.cpu.limit",
    "k8s.container.cpu_limit_utilization": "cpu.ofLimit",
    "k8s.container.memory_limit": "cgroup.memory.limitMB",
    "k8s.container.memory_limit_utilization": "memory_percent",
}
# The attributes that they call otherwise, by the beginning of the metric's name.
_OTHER_ATTRIBUTES: Final[Mapping[str, Mapping[str, str]]] = {
    "system.cpu.": {"state": "cpu.mode", "system.cpu.state": "cpu.mode", "cpu": "cpu.logical_number"},
    "system.memory.": {"state": "system.memory.state"},
    "system.paging.": {"state": "system.paging.state"},
    "system.network.": {
        "device": "network.interface.name",
        "system.device": "network.interface.name",
        "direction": "network.io.direction",
        "system.network.direction": "network.io.direction",
    },
    "system.disk.": {
        "device": "system.device",
        "direction": "disk.io.direction",
        "system.disk.direction": "disk.io.direction",
    },
    "system.filesystem.": {
        "mountpoint": "system.filesystem.mountpoint",
        "state": "system.filesystem.state",
    },
    "process.disk.": {"direction": "disk.io.direction"},
    "hw.": {"id": "hw.id", "type": "hw.type", "name": "hw.name", "task": "hw.gpu.task"},
}
# Attributes that do not distinguish what our keys do.
_IGNORED: Final[Mapping[str, frozenset[str]]] = {
    "system.filesystem.": frozenset(
        ("device", "type", "mode", "system.device", "system.filesystem.type", "system.filesystem.mode")
    ),
    "hw.": frozenset(
        f"hw.{name}"
        for name in (
            *("name", "vendor", "model", "serial_number", "driver_version", "firmware_version", "parent"),
            *("type", "sensor_location"),
        )
    ),
}
_DEFAULTS: Final[Mapping[str, Attributes]] = {
    "hw.gpu.utilization": {"hw.gpu.task": "general"},
    "hw.temperature": {"hw.sensor_location": "core"},
}
# (base unit, factor to it) of units in UCUM notation.
_UNITS: Final[Mapping[str, tuple[str, float]]] = {
    **{unit: (unit, 1.0) for unit in ("1", "s", "By", "Hz", "Cel", "W", "V", "J", "rpm", "1/s", "By/s")},
    "%": ("1", 0.01),
    "ms": ("s", 1e-3),
    "us": ("s", 1e-6),
    "ns": ("s", 1e-9),
    "min": ("s", 60.0),
    "h": ("s", 3600.0),
    "KiBy": ("By", 2.0**10),
    "MiBy": ("By", 2.0**20),
    "GiBy": ("By", 2.0**30),
    "kBy": ("By", 1e3),
    "MBy": ("By", 1e6),
    "GBy": ("By", 1e9),
    "kHz": ("Hz", 1e3),
    "MHz": ("Hz", 1e6),
    "GHz": ("Hz", 1e9),
    "mW": ("W", 1e-3),
    "kW": ("W", 1e3),
    "mV": ("V", 1e-3),
    "mJ": ("J", 1e-3),
    "kJ": ("J", 1e3),
    "KiBy/s": ("By/s", 2.0**10),
    "MiBy/s": ("By/s", 2.0**20),
}


def find(name: str, attributes: Attributes, unit: str, is_counter: bool) -> Found | None:
    """Return the key of an instrument with attributes; None if none of ours has its meaning.

    Args:
        unit: in UCUM notation; "" is taken as the unit of the conventions.
        is_counter: whether its values are totals that only grow.

    Example:
        >>> find("system.memory.usage", {"state": "used"}, "By", False)
        Found(key='memory.usedMB', factor=9.5367431640625e-07, is_counter=False)
    """
    rows = _rows().get(name)
    if rows is None:
        return None
    sent = _rename_attributes(name, attributes)
    for row in rows:
        if (row.metric.kind == "counter") != is_counter:
            continue
        labels = _labels(name, row, sent)
        factor = None if labels is None else _factor(row.metric, unit)
        if labels is not None and factor is not None:
            return Found(row.metric.key.format(**labels), factor, is_counter)
    return None


@cache
def _rows() -> Mapping[str, list[_Row]]:
    """Return the metrics by name; of one name, those with the most attributes first."""
    by_name: dict[str, list[_Row]] = {}
    for metric in DEFINITIONS.metrics:
        if metric.otel:
            by_name.setdefault(metric.otel, []).append(_Row(metric, _patterns(metric)))
    for name, key in _OTHER_NAMES.items():
        by_name.setdefault(name, []).append(_Row(DEFINITIONS.by_template[key], {}))
    for rows in by_name.values():
        rows.sort(key=lambda row: -len(row.attributes))
    return by_name


def _patterns(metric: Metric) -> dict[str, re.Pattern[str]]:
    templates = attribute_templates(metric)
    if "hw.id" in templates:  # the name of a device says the same, in words that senders choose
        templates.pop("hw.name", None)
    return {name: pattern(text) for name, text in templates.items()}


def _rename_attributes(name: str, attributes: Attributes) -> Attributes:
    """Return the attributes under the names of the conventions, with those that may be left out."""
    defaults = _DEFAULTS.get(name, {})
    for beginning, names in _OTHER_ATTRIBUTES.items():
        if name.startswith(beginning):
            return {**defaults, **{names.get(key, key): text for key, text in attributes.items()}}
    return {**defaults, **attributes}


def _labels(name: str, row: _Row, sent: Attributes) -> dict[str, str] | None:
    """Return the placeholders of a metric; None if the attributes are not its."""
    labels: dict[str, str] = {}
    for attribute, expected in row.attributes.items():
        match = expected.fullmatch(sent.get(attribute, ""))
        if match is None:
            return None
        labels |= match.groupdict()
    others = sent.keys() - row.attributes.keys()
    return labels if others <= _ignored_attributes(name) else None


@cache
def _ignored_attributes(name: str) -> frozenset[str]:
    matching: Iterable[frozenset[str]] = (
        names for beginning, names in _IGNORED.items() if name.startswith(beginning)
    )
    return next(iter(matching), frozenset())


def _factor(metric: Metric, unit: str) -> float | None:
    """From a unit to that of a metric; None if it measures something else."""
    own = UNITS[metric.unit]
    if not unit or unit == own.otel:
        return 1.0 / own.to_base
    base, factor = ("1", 1.0) if unit.startswith("{") and unit.endswith("}") else _UNITS.get(unit, ("", 0.0))
    return factor / own.to_base if base == own.otel else None
