"""Meters of the machine: bars of CPU, cores, memory, disks and accelerators, and rates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from runvitals.base.terminal_text import inert
from runvitals.model.metrics import DEFINITIONS
from runvitals.terminal.leet import axes
from runvitals.terminal.leet.braille import Row
from runvitals.terminal.top.drawing import bar
from runvitals.terminal.top.vitals import Accelerator, Vitals, device_names

_CORE = re.compile(r"cpu\.(\d+)\.cpu_percent")
_LEVELS = " ▁▂▃▄▅▆▇█"
_MAX_BARS = 16
"""Cores that get a bar each; more cores get one character each."""
_LABEL = 8
_RATES = (
    ("Network", "network.recvMBps", "network.sentMBps"),
    ("Disk I/O", "disk.readMBps", "disk.writeMBps"),
)


def usage_style(percent: float) -> str:
    """Return the style of a share that is used: moderate below 70 %, heavy from 90 %."""
    return "bad" if percent >= 90.0 else "warn" if percent >= 70.0 else "good"


def meters(vitals: Vitals, width: int) -> list[Row]:
    """Return the rows of all meters."""
    metrics = vitals.metrics
    rows: list[Row] = []
    if "cpu.mean" in metrics:
        rows.append(meter("CPU", metrics["cpu.mean"], width, _loads(metrics)))
    rows += _cores(metrics, width)
    if "memory_percent" in metrics:
        used = metrics.get("memory.usedMB")
        rows.append(
            meter("Memory", metrics["memory_percent"], width, "" if used is None else axes.label(used, "MiB"))
        )
    if "swap.used_percent" in metrics:
        rows.append(meter("Swap", metrics["swap.used_percent"], width, ""))
    for key, value in metrics.items():
        match = DEFINITIONS.find(key) if key.endswith(".usagePercent") else None
        if match is not None and "path" in match.labels:
            free = metrics.get(f"disk.{match.labels['path']}.availableGB")
            note = "" if free is None else f"{axes.label(free, 'GiB')} free"
            rows.append(meter(inert(match.labels["path"]), value, width, note))
    rows += [row for name, inward, outward in _RATES if (row := _rates(metrics, name, inward, outward))]
    return [*rows, *_accelerators(vitals, width)]


def meter(name: str, percent: float, width: int, note: str) -> Row:
    """Return a bar with a label before, and a number and a note behind it."""
    room = max(width - _LABEL - 1 - 7 - 12, 4)
    label = f"{name[:_LABEL]:<{_LABEL}} "
    return [
        (label, "dim"),
        (bar(percent, room), usage_style(percent)),
        (f" {percent:4.0f} % ", "value"),
        (note[:12], "dim"),
    ]


def _loads(metrics: Mapping[str, float]) -> str:
    loads = [metrics[f"system.load{minutes}"] for minutes in (1, 5) if f"system.load{minutes}" in metrics]
    return " ".join(f"{load:.1f}" for load in loads)


def _cores(metrics: Mapping[str, float], width: int) -> Iterator[Row]:
    """Yield a short bar for each core, or one character where there are many."""
    unsorted = [(int(match[1]), value) for key, value in metrics.items() if (match := _CORE.fullmatch(key))]
    cores = sorted(unsorted)
    if len(cores) > _MAX_BARS:
        per_row = max(width - _LABEL - 1, 8)
        for start in range(0, len(cores), per_row):
            row: Row = [(f"{f'{cores[start][0]}…':<{_LABEL}} ", "dim")]
            for _, value in cores[start : start + per_row]:
                level = _LEVELS[min(max(round(value / 100.0 * 8), 0), 8)]
                row.append((level, usage_style(value)))
            yield row
        return
    columns = 2 if width >= 40 else 1
    room = max(width // columns - 9, 2)
    for start in range(0, len(cores), columns):
        row = []
        for number, value in cores[start : start + columns]:
            row += [(f"{number:>3} ", "dim"), (bar(value, room), usage_style(value)), (f"{value:4.0f} ", "")]
        yield row


def _rates(metrics: Mapping[str, float], name: str, inward: str, outward: str) -> Row:
    if inward not in metrics or outward not in metrics:
        return []
    rates = [f"{axes.label(metrics[key] * 1e6, 'bytes/s'):>12}" for key in (inward, outward)]
    return [(f"{name:<{_LABEL}} ", "dim"), (f"↓{rates[0]}  ↑{rates[1]}", "")]


def _accelerators(vitals: Vitals, width: int) -> Iterator[Row]:
    devices = vitals.accelerators
    if not devices:
        return
    names = device_names(vitals.machine, dict.fromkeys(device.family for device in devices))
    yield [("", "")]
    yield [(inert(names or devices[0].title), "title")]
    for device in devices:
        yield from _device(device, width)


def _device(device: Accelerator, width: int) -> Iterator[Row]:
    values = device.values
    name = f"{device.title} {device.id}"
    notes = []
    if "temp_c" in values:
        notes.append(f"{values['temp_c']:.0f} °C")
    if "power_w" in values:
        notes.append(f"{values['power_w']:.0f} W")
    if "use" in values:
        yield meter(name, values["use"], width, " ".join(notes))
    else:
        yield [(f"{name:<{_LABEL}} ", "dim"), (" ".join(notes) or "no values", "dim")]
    if "memory" in values:
        used = values.get("memory_bytes")
        note = "" if used is None else axes.label(used, "bytes")
        yield meter("  memory", values["memory"], width, note)
