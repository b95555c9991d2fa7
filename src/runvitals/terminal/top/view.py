"""Lays out the view for a screen of any size."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from runvitals.base.terminal_text import cut, display_width, in_ascii, inert
from runvitals.terminal.top.drawing import ScreenLine, bar, format_size, sparkline
from runvitals.terminal.top.processes import ProcessLine
from runvitals.terminal.top.vitals import Accelerator, Vitals, device_names

_MIB = 2.0**20
_MIN_PROCESSES = 3
# Below this width the bar of a device in a grid is too short to be useful.
_CELL_WIDTH = 19


@dataclass(frozen=True, slots=True)
class Style:
    """The terminal's size and capabilities."""

    width: int
    height: int
    unicode: bool = True


class View:
    """Draws the vitals of a machine.

    Args:
        host: its name.
        style: size and characters of the terminal.
        hint: shown in the upper right corner.
    """

    def __init__(self, host: str, style: Style, hint: str = "") -> None:
        self._host = inert(host)
        self._hint = hint
        self._style = style
        # A line holds a label, a bar, a number, a sparkline, and text that should not be cut.
        self._bar_width = max(6, min(40, style.width // 6))
        self._curve_width = max(0, min(60, style.width // 4 - 10))

    def lines(self, vitals: Vitals, processes: Sequence[ProcessLine], time_s: float) -> list[str]:
        """Return the lines of the whole screen. They fit its width and height."""
        top = [self._head(vitals, time_s), *self._machine(vitals)]
        failures = self._failures(vitals)
        room = self._style.height - len(top) - len(failures)
        devices = self._devices(vitals, room - _MIN_PROCESSES - 1)
        room -= len(devices)
        listed = self._processes(processes, room)
        texts = [line.text for line in [*top, *devices, *listed, *failures]][: self._style.height]
        return texts if self._style.unicode else [in_ascii(line) for line in texts]

    def _line(self) -> ScreenLine:
        return ScreenLine(self._style.width)

    def _head(self, vitals: Vitals, time_s: float) -> ScreenLine:
        loads = [vitals.metrics.get(f"system.load{minutes}") for minutes in (1, 5, 15)]
        load_text = " ".join(f"{load:.2f}" for load in loads if load is not None)
        clock = time.strftime("%H:%M:%S", time.localtime(time_s))
        line = self._line().add("runvitals top").add(f"  {self._host}  {clock}")
        if load_text:
            line.add(f"  load {load_text}")
        return line.to(self._style.width - len(self._hint), self._style.width).add(self._hint)

    # -- the machine

    def _machine(self, vitals: Vitals) -> list[ScreenLine]:
        metrics = vitals.metrics
        rows = []
        if "cpu.mean" in metrics:
            parts = [
                f"{name} {metrics[f'cpu.{name}']:.1f}"
                for name in ("user", "system", "iowait", "steal")
                if name != "steal" or metrics.get("cpu.steal")
                if f"cpu.{name}" in metrics
            ]
            rows.append(self._gauge("CPU", "cpu.mean", vitals, "  ".join(parts)))
        if "memory_percent" in metrics:
            rows.append(self._gauge("Memory", "memory_percent", vitals, self._memory(vitals)))
        rows += self._flow("Disk", vitals, ("disk.readMBps", "read"), ("disk.writeMBps", "written"))
        rows += self._flow("Network", vitals, ("network.recvMBps", "received"), ("network.sentMBps", "sent"))
        rows += self._space(vitals)
        return rows

    def _gauge(self, name: str, key: str, vitals: Vitals, words: str) -> ScreenLine:
        value = vitals.metrics[key]
        drawn = sparkline(vitals.history[key], self._curve_width, 100.0, self._style.unicode)
        line = self._line().add(f"{name:<8} ")
        line.add(bar(value, self._bar_width, self._style.unicode))
        return line.add(f" {value:5.1f} %  ").add(drawn).add(f"  {words}")

    def _memory(self, vitals: Vitals) -> str:
        metrics = vitals.metrics
        words = []
        if "memory.usedMB" in metrics:
            words.append(f"{format_size(metrics['memory.usedMB'] * _MIB)} used")
        if "proc.memory.availableMB" in metrics:
            words.append(f"{format_size(metrics['proc.memory.availableMB'] * _MIB)} free")
        if metrics.get("swap.used_percent"):
            words.append(f"swap {metrics['swap.used_percent']:.0f} %")
        return "  ".join(words)

    def _flow(self, name: str, vitals: Vitals, *ways: tuple[str, str]) -> list[ScreenLine]:
        measured = [(key, word) for key, word in ways if key in vitals.metrics]
        if not measured:
            return []
        line = self._line().add(f"{name:<8} ")
        for key, word in measured:
            speed = format_size(vitals.metrics[key] * _MIB, "B/s")
            drawn = sparkline(vitals.history[key], max(self._curve_width // 2, 6), None, self._style.unicode)
            line.add(f"{word:<8} {speed:>11}  ").add(drawn).add("   ")
        return [line]

    def _space(self, vitals: Vitals) -> list[ScreenLine]:
        """Return the usage of file systems, as many as fit in the line."""
        line = self._line().add(f"{'Space':<8} ")
        has_disks = False
        for key, used in vitals.metrics.items():
            if not (key.startswith("disk.") and key.endswith(".usagePercent")):
                continue
            path = key[len("disk.") : -len(".usagePercent")]
            free = vitals.metrics.get(f"disk.{path}.availableGB")
            words = f"{inert(path)} {used:.0f} %"
            words += f" ({format_size(free * 2**30)} free)  " if free is not None else "  "
            has_disks = True
            line.add(words)
        return [line] if has_disks else []

    # -- accelerators

    def _devices(self, vitals: Vitals, room: int) -> list[ScreenLine]:
        """Return one line per accelerator if they fit, otherwise a grid."""
        devices = vitals.accelerators
        if not devices or room < 2:
            return []
        families = list(dict.fromkeys(device.family for device in devices))
        title = device_names(vitals.machine, families) or ", ".join(
            f"{sum(device.family == family for device in devices)} × {title}"
            for family, title in {device.family: device.title for device in devices}.items()
        )
        lines = [self._line(), self._line().add(inert(title))]
        if len(devices) <= room - len(lines):
            return lines + [self._device(device) for device in devices]
        return lines + self._grid(devices, room - len(lines))

    def _device(self, device: Accelerator) -> ScreenLine:
        values, style = device.values, self._style
        width = max(6, min(24, style.width // 11))
        line = self._line().add(f"{device.title} {device.id:<3}")
        use = values.get("use")
        if use is not None:
            line.add(" ").add(bar(use, width, style.unicode)).add(f" {use:3.0f} %")
        memory = values.get("memory")
        if memory is not None:
            line.add("  mem ").add(bar(memory, width, style.unicode)).add(f" {memory:3.0f} %")
        if "memory_bytes" in values:
            line.add(f" {format_size(values['memory_bytes']):>8}")
        if "power_w" in values:
            limit = f"/{values['limit_w']:.0f}" if "limit_w" in values else ""
            line.add(f"  {values['power_w']:>4.0f}{limit} W")
        if "temp_c" in values:
            line.add(f"  {values['temp_c']:>3.0f} °C")
        if "clock_mhz" in values:
            line.add(f"  {values['clock_mhz']:.0f} MHz")
        if line.left > 6:
            line.add("  ").add(sparkline(device.uses, min(line.left, 60), 100.0, style.unicode).strip())
        return line

    def _grid(self, devices: Sequence[Accelerator], room: int) -> list[ScreenLine]:
        """Return devices in columns, and the number of those that do not fit."""
        columns = max(1, self._style.width // _CELL_WIDTH)
        cells = columns * max(1, room)
        drawn = devices if len(devices) <= cells else devices[: cells - columns]
        columns = min(columns, -(-len(drawn) // max(1, room if drawn is devices else room - 1)))
        rows = -(-len(drawn) // columns)
        cell = self._style.width // columns
        lines = []
        for row in range(rows):
            line = self._line()
            for column, device in enumerate(drawn[row::rows]):
                line.to(column * cell, self._style.width)
                self._cell(line, device, cell)
            lines.append(line)
        if drawn is not devices:
            lines.append(self._line().add(f"and {len(devices) - len(drawn)} more"))
        return lines

    def _cell(self, line: ScreenLine, device: Accelerator, width: int) -> None:
        line.add(f"{device.id:>4} ")
        use = device.values.get("use")
        if use is None:
            line.add("-")
            return
        line.add(bar(use, width - 13, self._style.unicode)).add(f" {use:3.0f} %")

    # -- processes and failing sources

    def _processes(self, processes: Sequence[ProcessLine], room: int) -> list[ScreenLine]:
        if not processes or room < 3:
            return []
        head = self._line().add(f"{'PID':>8} {'USER':<10} {'CPU %':>6} {'MEMORY':>9}  COMMAND")
        lines = [self._line(), head]
        for process in processes[: room - 2]:
            user = cut(inert(process.user), 10)
            memory = format_size(process.rss_mib * _MIB)
            line = self._line().add(f"{process.pid:>8} {user}").add(" " * (10 - display_width(user)))
            line.add(f" {process.cpu_percent:>6.1f} {memory:>9}  {inert(process.command)}")
            lines.append(line)
        return lines

    def _failures(self, vitals: Vitals) -> list[ScreenLine]:
        return [
            self._line().add(f"{inert(name)}: {inert(why)}")
            for name, why in list(vitals.failures.items())[:3]
        ]
