"""The collector of the IPUs that the run uses: reads gcipuinfo in a background thread."""

from __future__ import annotations

import sys

from runvitals.monitoring.collectors.base import Every
from runvitals.monitoring.collectors.graphcore.attributes import LASTING, VARYING, identity, readings, user
from runvitals.monitoring.collectors.plumbing.background import BackgroundReader
from runvitals.monitoring.collectors.plumbing.missing_readings import explain
from runvitals.monitoring.collectors.plumbing.run_processes import RunProcesses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from runvitals.monitoring.collectors.base import Scope, Tick

# How long a tick waits: cards in this host respond within milliseconds. Results of an IPU-Machine, read over
# the network, may go into the next tick.
PATIENCE_S = 0.05
# Constant values are written again after this time, so that every part of a long run has them.
LASTING_EVERY_S = 300.0


class Ipus:
    """`ipu.{id}.…` of the IPUs that the run's processes use, children included.

    Args:
        folder: the folder of `gcipuinfo`.
        patience_s: how long a tick waits.
        proc: the procfs of our PID namespace.

    Raises:
        ImportError, Hung, and every exception of gcipuinfo: by `sample`.
    """

    name = "graphcore"

    def __init__(
        self, scope: Scope, folder: str, patience_s: float = PATIENCE_S, proc: str = "/proc"
    ) -> None:
        self.absent: dict[str, str] = {}
        self.facts: dict[str, object] | None = None
        self._folder = folder
        self._scope = scope
        self._run = RunProcesses(scope, proc)
        self._info: Any = None
        self._last_values: dict[str, float] = {}
        self._repeat = Every(LASTING_EVERY_S)
        self._ipus: dict[str, dict[str, object]] | None = None
        self._lost: set[str] = set()
        self._reader = BackgroundReader(self._read, patience_s=patience_s)

    @property
    def pending(self) -> bool:
        """Whether the library has not responded yet."""
        return self._reader.pending

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        self._reader.sample(tick)

    def close(self) -> None:
        """Stop the thread."""
        self._reader.close()

    # -- in the thread

    def _read(self, tick: Tick) -> None:
        if self._info is None:
            self._info = _open(self._folder)
        devices = [
            {"id": str(position), **{str(name): str(value) for name, value in dict(device).items()}}
            for position, device in enumerate(self._info.getDevices())
        ]
        if self._repeat.due(tick.mono_s):
            self._last_values.clear()
        run = self._run.pids(tick.mono_s)
        all_ipus = self._scope.whole_machine
        ours = {device["id"]: readings(device) for device in devices if all_ipus or user(device) in run}
        for number, numbers in ours.items():
            self._write(tick, f"ipu.{number}.", numbers)
        self._update_facts(tick, devices, ours)

    def _write(self, tick: Tick, prefix: str, numbers: Mapping[str, float]) -> None:
        for name in VARYING:
            if name in numbers:
                tick.gauges[prefix + name] = numbers[name]
        for name, ours in LASTING.items():
            key = prefix + ours
            if name in numbers and self._last_values.get(key) != numbers[name]:
                self._last_values[key] = tick.gauges[key] = numbers[name]

    # -- facts and reasons

    def _update_facts(
        self, tick: Tick, devices: Sequence[Mapping[str, str]], ours: Mapping[str, Mapping[str, float]]
    ) -> None:
        ipus = {device["id"]: identity(device) for device in devices}
        if self._ipus is not None:
            for number in sorted(self._ipus.keys() - ipus.keys() - self._lost):
                self._lost.add(number)
                tick.events.append(
                    _event("device_lost", "error", f"IPU {number} is no longer listed", number)
                )
            for number in sorted(self._lost & ipus.keys()):
                self._lost.remove(number)
                tick.events.append(_event("device_back", "info", f"IPU {number} is back", number))
        self._ipus = {**(self._ipus or {}), **ipus}
        listed = [
            {**about, "used": number in ours} for number, about in sorted(self._ipus.items(), key=_by_number)
        ]
        facts: dict[str, object] = {
            "ipu": {"vendor": "Graphcore", "device_count": len(listed), "devices": listed}
        }
        if facts != self.facts:
            self.facts = facts
        absent = _missing(devices, ours, self._lost)
        if absent != self.absent:
            self.absent = absent


def _open(folder: str) -> Any:
    """The library's interface to the IPUs of this host's partition, which it reads again at every call."""
    if folder not in sys.path:
        sys.path.append(folder)
    __import__("gcipuinfo")
    info = sys.modules["gcipuinfo"].gcipuinfo()
    info.setUpdateMode(True)
    return info


def _missing(
    devices: Sequence[Mapping[str, str]], ours: Mapping[str, Mapping[str, float]], lost: set[str]
) -> dict[str, str]:
    """Reading -> why it is missing."""
    absent = {f"ipu.{number}": "lost" for number in sorted(lost)}
    busy = sum(user(device) is not None for device in devices)
    if not devices:
        absent["ipu"] = "gcipuinfo lists no IPU: there is no partition, or it has no IPU"
    elif not ours and busy:
        absent["ipu"] = (
            f"{busy} of {len(devices)} are in use, none by a process of the run (in a container, gcipuinfo "
            "may report the PIDs of the host: start it with --pid=host)"
        )
    elif not ours:
        absent["ipu"] = f"none of {len(devices)} IPUs is in use"
    names = (*VARYING, *LASTING.values())
    missing = {
        int(number): {name: "not reported by the board" for name in names if name not in rename(numbers)}
        for number, numbers in ours.items()
        if number.isdigit()
    }
    return {**absent, **explain(missing, "IPU")}


def rename(numbers: Mapping[str, float]) -> set[str]:
    """Return the names in our keys of what a board reports."""
    return {LASTING.get(name, name) for name in numbers}


def _event(name: str, level: str, text: str, number: str) -> dict[str, object]:
    return {"name": name, "level": level, "source": "graphcore", "text": text, "ipu": number}


def _by_number(item: tuple[str, object]) -> tuple[int, str]:
    number = item[0]
    return (int(number) if number.isdigit() else 1 << 30), number
