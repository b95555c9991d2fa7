"""The processes: sorted, filtered, as a list or a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from runvitals.base.regular_expressions import finder
from runvitals.base.terminal_text import inert
from runvitals.terminal.leet import axes
from runvitals.terminal.leet.braille import Row
from runvitals.terminal.top.gpu_processes import GpuUse
from runvitals.terminal.top.processes import ProcessLine

Order = Literal["CPU", "memory", "GPU memory", "CPU time", "PID"]
ORDERS: tuple[Order, ...] = ("CPU", "memory", "GPU memory", "CPU time", "PID")
# Title and format of the columns before the command, in their order.
_COLUMNS = {
    "pid": ("PID", ">8"),
    "user": ("USER", "<9"),
    "state": ("S", "<1"),
    "cpu": ("CPU %", ">6"),
    "memory": ("MEMORY", ">9"),
    "time": ("TIME", ">7"),
    "devices": ("GPU", ">5"),
    "device_memory": ("GPU MEM", ">9"),
}
_OF_GPUS = ("devices", "device_memory")
_LEFT_OUT = ("state", "time", "user")
"""Columns that are hidden, in this order, if there is no room for the command."""
_COMMAND_WIDTH = 24


class ShownProcess(NamedTuple):
    """A process, its use of GPUs, and its depth in the tree."""

    process: ProcessLine
    gpu: GpuUse | None
    depth: int = 0


class ProcessTable:
    """The processes with a cursor, which stays on its process.

    Example:
        >>> table = ProcessTable()
        >>> table.set_processes(machine.processes, machine.gpu_use)
        >>> table.next_order()
        >>> table.order
        'memory'
    """

    def __init__(self) -> None:
        self.order: Order = "CPU"
        self.is_tree = False
        self.pattern = ""
        self.shown: list[ShownProcess] = []
        self.count = 0
        self._is_wanted: Callable[[str], bool] | None = None
        self._all: list[ShownProcess] = []
        self._current: tuple[int, int] | None = None

    def set_processes(self, processes: Iterable[ProcessLine], gpu_use: Mapping[int, GpuUse]) -> None:
        """Show these processes."""
        self._all = [ShownProcess(process, gpu_use.get(process.pid)) for process in processes]
        self.count = len(self._all)
        self._arrange()

    def set_filter(self, pattern: str) -> None:
        """Show only processes with a PID, user or command that matches a regex, or raise ValueError."""
        self._is_wanted = finder(pattern) if pattern else None
        self.pattern = pattern
        self._arrange()

    def next_order(self) -> None:
        """Sort by the next order of `ORDERS`."""
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        self._arrange()

    def toggle_tree(self) -> None:
        """Show who started whom, or the list."""
        self.is_tree = not self.is_tree
        self._arrange()

    @property
    def cursor(self) -> int:
        """The index of the process at the cursor."""
        indexes = (index for index, process in enumerate(self.shown) if _identity(process) == self._current)
        return next(indexes, 0)

    @property
    def current(self) -> ProcessLine | None:
        """The process at the cursor."""
        return self.shown[self.cursor].process if self.shown else None

    def move(self, rows: int) -> None:
        """Move the cursor, not beyond the ends."""
        if self.shown:
            index = min(max(self.cursor + rows, 0), len(self.shown) - 1)
            self._current = _identity(self.shown[index])

    def _arrange(self) -> None:
        processes = self._all
        if self._is_wanted is not None:
            matches = self._is_wanted
            processes = [process for process in processes if matches(_search_text(process.process))]
        processes = sorted(
            processes, key=lambda process: _key(process, self.order), reverse=self.order != "PID"
        )
        self.shown = _tree(processes) if self.is_tree else processes
        if self.cursor == 0 and self.shown:
            self._current = _identity(self.shown[0])

    def rows(self, width: int, first: int, height: int) -> list[Row]:
        """Return the heading, and the processes from an index on."""
        cursor, names = self.cursor, self._columns(width)
        heads = [f"{_COLUMNS[name][0]:{_COLUMNS[name][1]}}" for name in names]
        rows: list[Row] = [[(" ".join([*heads, " COMMAND"]), "title")]]
        for index, process in enumerate(self.shown[first : first + height], first):
            rows.append(_row(process, names, index == cursor))
        return rows

    def _columns(self, width: int) -> list[str]:
        """Return the columns that are shown: of GPUs if they are used, and others if there is room."""
        uses_gpus = any(column.gpu is not None for column in self._all)
        names = [name for name in _COLUMNS if uses_gpus or name not in _OF_GPUS]
        for name in _LEFT_OUT:
            if sum(int(_COLUMNS[column][1][1:]) + 1 for column in names) + _COMMAND_WIDTH > width:
                names.remove(name)
        return names


def _row(line: ShownProcess, names: Sequence[str], is_current: bool) -> Row:
    process, gpu = line.process, line.gpu
    cells = {
        "pid": str(process.pid),
        "user": inert(process.user)[:9],
        "state": process.state,
        "cpu": f"{process.cpu_percent:.1f}",
        "memory": axes.label(process.rss_mib, "MiB"),
        "time": axes.elapsed(process.cpu_s * 1000.0),
        "devices": "" if gpu is None else ",".join(gpu.devices)[:5],
        "device_memory": ""
        if gpu is None or gpu.memory_bytes is None
        else axes.label(gpu.memory_bytes, "bytes"),
    }
    numbers = " ".join([*(f"{cells[name]:{_COLUMNS[name][1]}}" for name in names), " "])
    branch = "  " * (line.depth - 1) + "└ " if line.depth else ""
    style = "cursor" if is_current else "value" if gpu is not None else ""
    return [(numbers, style), (branch, "dim"), (inert(process.command), style)]


def _identity(line: ShownProcess) -> tuple[int, int]:
    return line.process.pid, line.process.started


def _search_text(process: ProcessLine) -> str:
    return f"{process.pid} {process.user} {process.command}"


def _key(line: ShownProcess, order: Order) -> tuple[float, float]:
    process = line.process
    if order == "PID":
        return process.pid, 0.0
    if order == "memory":
        return process.rss_mib, process.cpu_percent
    if order == "CPU time":
        return process.cpu_s, process.cpu_percent
    if order == "GPU memory":
        return (-1.0 if line.gpu is None else line.gpu.memory_bytes or 0.0), process.cpu_percent
    return process.cpu_percent, process.rss_mib


def _tree(ordered: list[ShownProcess]) -> list[ShownProcess]:
    """Return processes below the one that started them, siblings in their order."""
    pids = {process.process.pid for process in ordered}
    children: dict[int, list[ShownProcess]] = {}
    for process in ordered:
        parent = process.process.parent if process.process.parent in pids else 0
        children.setdefault(parent, []).append(process)
    lines: list[ShownProcess] = []
    waiting = [(process, 0) for process in reversed(children.get(0, []))]
    while waiting:
        process, depth = waiting.pop()
        lines.append(process._replace(depth=depth))
        below = children.get(process.process.pid, []) if process.process.pid else []
        waiting += [(child, depth + 1) for child in reversed(below)]
    return lines
