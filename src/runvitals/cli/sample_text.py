"""Formats a reading as text, grouped by subject and device, with units and the state of each source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from runvitals.base.terminal_text import inert
from runvitals.cli.formatting import number
from runvitals.model.metrics import DEFINITIONS, SUBJECTS
from runvitals.monitoring.collectors.sources import is_partial

if TYPE_CHECKING:
    from runvitals.sdk.probe import MachineReading

_SUBJECT_OF = {row.key: subject for subject, rows in SUBJECTS.items() for row in rows}
_OTHERS = "Other sources"
# Prefix of a device's keys → name of the device.
_DEVICES = {"gpu": "GPU", "ipu": "IPU", "tpu": "TPU", "trn": "Trainium core"}
# States that are listed with reasons, the most important first.
_STATES = ("failing", "partial", "absent")
_BINARY = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


class _Group:
    """The keys under one heading: a subject, or a device."""

    def __init__(self, order: tuple[int, str, int], heading: str) -> None:
        self.order = order
        self.heading = heading
        self.keys: list[str] = []


def lines(reading: MachineReading) -> Iterator[str]:
    r"""Yield headings of subjects and devices, each with lines of its values, then the sources.

    Example:
        >>> print(*lines(read_once(values)), sep="\n")
        CPU
          cpu.mean              12.5 %
        …
        GPU 0: NVIDIA H100 80GB HBM3, 0000:18:00.0
          gpu.0.gpu               87 %
    """
    width = max((len(key) for key in reading.metrics), default=0)
    for group in sorted(_groups(reading), key=lambda group: group.order):
        yield inert(group.heading)
        for key in sorted(group.keys, key=_natural):
            yield f"  {inert(key):<{width}}  {_format_value(key, reading.metrics[key])}"
        yield ""
    yield from _sources(reading.states)


def _groups(reading: MachineReading) -> list[_Group]:
    groups: dict[str, _Group] = {}
    subjects = [*SUBJECTS, _OTHERS]
    for key in reading.metrics:
        device = _device(key)
        if device is None:
            match = DEFINITIONS.find(key)
            name = _SUBJECT_OF[match.metric.key] if match is not None else _OTHERS
            order = (subjects.index(name), "", 0)
        else:
            kind, index = device
            name = f"{_DEVICES[kind]} {index}"
            order = (len(subjects), kind, int(index))
        title = _title(reading.machine, *device) if device is not None and name not in groups else ""
        group = groups.setdefault(name, _Group(order, f"{name}: {title}" if title else name))
        group.keys.append(key)
    return list(groups.values())


def _device(key: str) -> tuple[str, str] | None:
    """Return kind and index of the device in a key; None for other keys."""
    kind, _, rest = key.partition(".")
    index = rest.removeprefix("process.").partition(".")[0]
    return (kind, index) if kind in _DEVICES and index.isdigit() else None


def _title(machine: Mapping[str, Any], kind: str, index: str) -> str:
    """Return a device's name and PCI address, from the facts that its source reports."""
    for name, about in machine.items():
        if _kind(name) != kind:
            continue
        shared = about if isinstance(about, dict) else {}
        listed = shared.get("devices", []) if shared else about
        for device in listed if isinstance(listed, list) else ():
            if isinstance(device, dict) and str(device.get("index", device.get("id"))) == index:
                return _words({"name": shared.get("name"), **device})
        if shared.get("name"):
            return _words(shared)
    return ""


def _kind(fact: str) -> str:
    """Return the key prefix of the devices that a fact describes."""
    if fact.startswith(("gpu_", "accelerator_")) or fact == "apple":
        return "gpu"
    return "trn" if fact == "trainium" else fact


def _words(device: Mapping[str, Any]) -> str:
    words = [device.get("name") or device.get("board type"), device.get("pci") or device.get("pci id")]
    words.append("lost" if device.get("lost") else None)
    return ", ".join(str(word) for word in words if word)


def _format_value(key: str, value: float) -> str:
    match = DEFINITIONS.find(key)
    unit = match.metric.unit if match is not None else ""
    if unit == "bytes":
        step = 0
        while abs(value) >= 1024.0 and step + 1 < len(_BINARY):
            value, step = value / 1024.0, step + 1
        unit = _BINARY[step]
    return f"{number(value):>12} {unit.removeprefix('1')}".rstrip()


def _natural(key: str) -> list[tuple[int, str]]:
    """Return a sort key with numbers in numeric order: core 10 after core 9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in key.split(".")]


def _sources(states: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield the active sources, and the others with reasons."""
    by_state: dict[str, list[tuple[str, str]]] = {state: [] for state in ("on", *_STATES)}
    for name, state in states.items():
        reason = state.get("reason", "")
        state_text = "partial" if state["state"] == "on" and is_partial(state) else state["state"]
        by_state.setdefault(state_text, []).append((name, reason))
    width = max((len(name) for name in states), default=0)
    yield "Sources"
    if by_state["on"]:
        yield f"  working: {', '.join(inert(name) for name, _ in by_state['on'])}"
    for heading in _STATES:
        if by_state[heading]:
            yield f"  {heading}:"
        for name, reason in by_state[heading]:
            yield f"    {inert(name):<{width}}  {inert(reason)}"
