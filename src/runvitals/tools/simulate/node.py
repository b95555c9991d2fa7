"""A simulated host: its devices and processes, and their journals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from runvitals.journal import frames
from runvitals.journal.records import CONSOLE_HEAD
from runvitals.journal.sealing import SegmentSealer
from runvitals.journal.writer import JournalWriter
from runvitals.readers.journals.file_ends import EDGE_BYTES
from runvitals.tools.simulate.block import ScenarioBlock
from runvitals.tools.simulate.host import SimulatedHost
from runvitals.tools.simulate.noise import Floats
from runvitals.tools.simulate.profiles import MAX_DEVICES, Profile

_LAUNCHER_PID = 4000
_FIRST_PID = 4100
_SIGKILL = 9
# Streams of noise: the first ones belong to the training, the others to hosts and their devices.
_FIRST_STREAM = 16
_HOST_SOURCES = ("process", "cpu", "load", "pressure", "memory", "cgroup", "disk", "filesystem", "network")


@dataclass(frozen=True, slots=True)
class RunLocation:
    """The run to write, and where to.

    Args:
        folder: the run's folder.
        interval_s: seconds between two samples.
        start_ms: start of the run, ms UTC.
    """

    run_id: str
    project: str
    folder: str
    interval_s: float
    start_ms: int


@dataclass(slots=True)
class SimulatedProcess:
    """One training process and its journal."""

    rank: int
    pid: int
    journal: JournalWriter


class Node:
    """A host of a simulated run.

    It writes the journals of a monitor, of a launcher that records the output, and of the training processes.

    Args:
        location: the run, and where to write it.
        profile: its machine.
        number: the host's number, from 0.
        nodes: number of hosts of the run.

    Attributes:
        values: number of values written.
    """

    def __init__(self, location: RunLocation, profile: Profile, number: int, nodes: int) -> None:
        self.name = f"sim-{number}"
        self.number = number
        self.values = 0
        self.host = SimulatedHost(profile, number, nodes)
        self.processes: list[SimulatedProcess] = []
        self._location = location
        self._profile = profile
        self._devices = profile.devices()
        for device in self._devices:
            if "uuid" in device.about:  # hosts do not share devices
                device.about["uuid"] = f"{device.about['uuid']}-{number}"
        self._keys: tuple[str, ...] = ()
        self._block: Floats = np.empty((0, 0))
        self._journal = self._writer(
            f"monitor.{self.name}.{location.start_ms:x}", "monitor", location.start_ms, pid=_LAUNCHER_PID + 1,
            interval_s=location.interval_s, boot_id="simulated",
        )  # fmt: skip
        self._console = self._writer(
            f"console.{self.name}.{_LAUNCHER_PID}.{location.start_ms:x}", "console", location.start_ms,
            pid=_LAUNCHER_PID,
        )  # fmt: skip
        self._alive_at = -1, 0
        self._sealer: SegmentSealer | None = None
        self._pids = _FIRST_PID

    def _writer(self, name: str, role: str, time_ms: int, **about: object) -> JournalWriter:
        location = self._location
        head = {"run": location.run_id, "project": location.project, "host": self.name, "role": role}
        return JournalWriter(location.folder, name, {**head, "t": time_ms, "simulated": True, **about})

    @property
    def journals(self) -> list[JournalWriter]:
        """The open journals."""
        return [self._journal, self._console, *(process.journal for process in self.processes)]

    # -- the run

    def begin(self, about: Mapping[str, object], settings: Mapping[str, object], notice: str) -> None:
        """Record the description of the run, and that it is simulated.

        Args:
            about: name, project, tags, notes …
            settings: the settings to record.
            notice: states that the run is simulated.
        """
        time_ms = self._location.start_ms
        machine = self.host.facts(self.name)
        if self._devices:
            machine[self._profile.kind.fact] = [device.about for device in self._devices]
        names = (*_HOST_SOURCES, self._profile.kind.source)
        sources = {name: {"state": "on"} for name in names if name}
        machine["simulated"] = notice
        self.note(frames.INFO, time_ms, run=about, settings=settings, machine=machine, sources=sources)
        self.event(time_ms, "simulated", "info", notice)
        self._attach(time_ms, _LAUNCHER_PID, role="command")

    def prepare(self, block: ScenarioBlock) -> None:
        """Compute the next block of samples of the host and all its devices."""
        stream = _FIRST_STREAM + (1 + MAX_DEVICES) * self.number
        read = self.host.read(block, block.noise(stream))
        keys, values = list(read), list(read.values())
        for index, device in enumerate(self._devices):
            z = block.noise(stream + 1 + index)
            keys += device.keys
            values += device.read(block.load(self.number, index, z), z)
        self._keys = tuple(keys)
        self._block = np.empty((len(block.ticks), len(keys)))
        for column, value in enumerate(values):
            self._block[:, column] = value

    def sample(self, time_ms: int, index: int) -> None:
        """Write the sample with this index in the block."""
        row = self._block[index].tolist()
        self._journal.sample(time_ms, dict(zip(self._keys, row, strict=True)))
        self.values += len(row)
        self._seal_step()

    def note(self, type: int, time_ms: int, **value: object) -> None:
        """Write a record of the host's monitor."""
        self._journal.json(type, {"t": time_ms, **value})

    def note_alive(self, now_ms: int) -> None:
        """Record that the host is there at this time, though its samples are of earlier times."""
        self.note(frames.INFO, now_ms)
        self._alive_at = self._journal.segment, self._journal.size

    @property
    def shows_life(self) -> bool:
        """Whether lists of runs, which read the end of the newest file only, see that it is there."""
        segment, size = self._alive_at
        return self._journal.segment == segment and self._journal.size - size < EDGE_BYTES // 2

    def event(self, time_ms: int, name: str, level: str, text: str) -> None:
        """Write an event of the host's monitor."""
        self.note(frames.EVENT, time_ms, name=name, level=level, text=text)

    def print(self, time_ms: int, text: str, stream: int = 1) -> None:
        """Record output of the training on stdout (1) or stderr (2)."""
        self._console.record(frames.CONSOLE, CONSOLE_HEAD.pack(stream, time_ms) + text.encode())

    # -- processes

    def start(self, time_ms: int, first_rank: int, world_size: int) -> None:
        """Start the training processes of this host."""
        for local_rank in range(self._profile.ranks):
            rank, pid = first_rank + local_rank, self._pids + local_rank
            ranks = {"rank": rank, "local_rank": local_rank, "world_size": world_size}
            name = f"train.{self.name}.{pid}.{time_ms:x}"
            journal = self._writer(name, "train", time_ms, pid=pid, **ranks)
            self.processes.append(SimulatedProcess(rank, pid, journal))
            self._attach(time_ms, pid, role="train", writer=name, **ranks)
        self._pids += 100

    def _attach(self, time_ms: int, pid: int, **about: object) -> None:
        self.note(frames.LIFECYCLE, time_ms, what="attach", pid=pid, **about)

    def stop(
        self, time_ms: int, exit_code: int | None, signal: int | None, killed: int | None = None
    ) -> None:
        """End the training processes of this host.

        Args:
            exit_code, signal: those with which they end.
            killed: index of the one that the kernel kills because the host is out of memory.
        """
        for index, process in enumerate(self.processes):
            how: dict[str, object] = {"exit_code": exit_code, "signal": signal, "out_of_memory": False}
            if index == killed:
                how = {"exit_code": None, "signal": _SIGKILL, "out_of_memory": True}
            self.note(frames.LIFECYCLE, time_ms, what="exit", pid=process.pid, **how)
            process.journal.close()
        self.processes = []

    def end(self, time_ms: int, state: str, exit_code: int | None, signal: int | None) -> None:
        """Record the end of the run on this host."""
        self.stop(time_ms, exit_code, signal)
        how: dict[str, object] = {"exit_code": exit_code, "signal": signal, "out_of_memory": False}
        self.note(frames.LIFECYCLE, time_ms, what="exit", pid=_LAUNCHER_PID, **how)
        self.note(frames.LIFECYCLE, time_ms, what="end", state=state, **how)

    def close(self) -> None:
        """Close the journals, after sealing full files as a monitor does."""
        while self._sealer is not None or self._journal.rotated:
            self._seal_step()
        for journal in self.journals:
            journal.close()

    def _seal_step(self) -> None:
        if self._sealer is None and self._journal.rotated:
            self._sealer = SegmentSealer(self._journal.rotated.pop(0))
        if self._sealer is not None and not self._sealer.step():
            self._sealer = None
