"""The hosts of runs and their devices as they are now, and which of them need attention.

A device is **idle** if a run uses it, or may use it, and it was used less than 5 % in the mean of the last 15
minutes, and its multiprocessors less than 2 % where that is known. It is **throttled** if heat or the power
brake lowered its clocks for more than 5 % of the last 10 minutes; the power cap does not count, since healthy
devices reach it. It is **hot** from 85 °C on. A host is **lost** if its newest run ended without saying so
(`model/state.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Literal, NamedTuple, Protocol

from runvitals.model.device import RunDevice
from runvitals.model.durations import MINUTE_MS
from runvitals.model.filter import ReadableRuns
from runvitals.model.metrics import DEFINITIONS
from runvitals.model.run import RunAuthor
from runvitals.model.run_state import State
from runvitals.model.state import LOST, RUNNING, silence_ms
from runvitals.readers.journals.key_filter import KeyFilter

IDLE_PERCENT, IDLE_SM_PERCENT, IDLE_WINDOW_MS = 5.0, 2.0, 15 * MINUTE_MS
THROTTLED_SHARE, THROTTLE_WINDOW_MS = 0.05, 10 * MINUTE_MS
HOT_CELSIUS = 85.0
SEEN_MS = 7 * 24 * 60 * MINUTE_MS
"""Hosts without a record for this long are not listed."""

Flag = Literal["idle", "throttled", "hot", "lost"]
FLAGS: tuple[Flag, ...] = ("lost", "throttled", "hot", "idle")
HostState = Literal["running", "lost", "ended"]
HOST_STATES: tuple[HostState, ...] = ("running", "lost", "ended")

_FIELDS = {
    "gpu.{i}.gpu": "use",
    "gpu.{i}.memoryAllocated": "memory",
    "gpu.{i}.memoryAllocatedBytes": "memory_used_bytes",
    "gpu.{i}.powerWatts": "power",
    "gpu.{i}.enforcedPowerLimitWatts": "power_limit",
    "gpu.{i}.temp": "temperature",
    "gpu.{i}.smActive": "sm_active",
    "gpu.process.{i}.gpu": "use_by_run",
    "tpu.{i}.dutyCycle": "use",
    "tpu.{i}.memoryUsage": "memory",
    "tpu.{i}.memoryUsageBytes": "memory_used_bytes",
    "trn.{core}.neuroncore_utilization": "use",
    "ipu.{device_id}.ipu utilisation (%)": "use",
    "ipu.{device_id}.ipu power (W)": "power",
    "ipu.{device_id}.average die temp (C)": "temperature",
}
"""The fields of devices that metrics measure, by key template."""
_CPU = ("cpu.mean", "cpu")
"""The use of the whole machine, and that of the run's processes where only it was recorded."""
_THROTTLING = "gpu.{i}.throttle.{reason}Seconds"
_REASONS = ("hwSlowdown", "swThermal", "hwThermal", "hwPowerBrake")
_PARTS = re.compile("[0-9]+|[^0-9]+")


@cache
def shown_keys() -> KeyFilter:
    """Return the series whose newest values are needed."""
    of_devices = (re.sub(r"\{\w+\}", "*", template) for template in (*_FIELDS, _THROTTLING))
    return KeyFilter([*_CPU, "memory_percent", *of_devices])


@dataclass(frozen=True, slots=True)
class DeviceKey:
    """The device and field that a key measures: its kind (`gpu`), its index, and the field."""

    kind: str
    index: str
    field: str


@lru_cache(16_384)
def device_key(key: str) -> DeviceKey | None:
    """Return the device and field that a key measures; None if it measures none.

    Example:
        >>> device_key("gpu.3.powerWatts")
        DeviceKey(kind='gpu', index='3', field='power')
    """
    match = DEFINITIONS.find(key)
    if match is None or match.metric.scope not in ("device", "process"):
        return None
    field = _FIELDS.get(match.metric.key)
    if match.metric.key == _THROTTLING and match.labels["reason"] in _REASONS:
        field = f"throttled.{match.labels['reason']}"
    if field is None:
        return None
    return DeviceKey(match.metric.key.partition(".")[0], next(iter(match.labels.values())), field)


@dataclass(frozen=True, slots=True)
class HostRun:
    """A run on a host. Times are ms UTC, of its part on this host.

    Args:
        state: of this host's part of the run.
        devices: the indexes of the devices that it used; None: not known.
        number: its number in the metadata store; None for a journal.
    """

    id: str
    entity: str | None
    project: str
    name: str
    author: RunAuthor | None
    state: State
    started_ms: int
    last_ms: int
    devices: tuple[int, ...] | None = None
    number: int | None = None


class Recent(NamedTuple):
    """A series over the last minutes: its mean, and by how much it grew."""

    mean: float
    growth: float


@dataclass(frozen=True, slots=True)
class HostReading:
    """The facts that a running run has about one of its hosts.

    Args:
        values: by key: time and newest value.
        recent: the series that `windows` asked for.
    """

    host: str
    run: HostRun
    interval_s: float | None
    values: Mapping[str, tuple[int, float]]
    devices: Sequence[RunDevice] = ()
    recent: Mapping[str, Recent] = field(default_factory=dict)

    def fresh(self) -> dict[str, float]:
        """Return the values of sources that still report: none is much older than the newest of this host."""
        newest = max((t for t, _ in self.values.values()), default=0)
        oldest = newest - max(silence_ms(self.interval_s), MINUTE_MS)
        return {key: value for key, (t, value) in self.values.items() if t >= oldest}

    def windows(self, now_ms: int) -> dict[str, int]:
        """Return the series that decide whether a device is idle or throttled, with their lengths.

        Most devices need none: they are busy now, and were never throttled.
        """
        windows: dict[str, int] = {}
        is_new = now_ms - self.run.started_ms < IDLE_WINDOW_MS
        fresh = self.fresh()
        for key, value in fresh.items():
            about = device_key(key)
            if about is None:
                continue
            if about.field == "use" and value < IDLE_PERCENT and not is_new:
                windows[key] = IDLE_WINDOW_MS
                active = f"{about.kind}.{about.index}.smActive"
                if active in fresh:
                    windows[active] = IDLE_WINDOW_MS
            elif about.field.startswith("throttled.") and value > 0:
                windows[key] = THROTTLE_WINDOW_MS
        return windows


@dataclass(slots=True)
class FleetDevice:
    """A device as it is now. None: not known.

    Args:
        in_use: whether a run uses it.
    """

    kind: str
    index: str
    model: str | None = None
    memory_bytes: int | None = None
    use: float | None = None
    memory: float | None = None
    memory_used_bytes: float | None = None
    power: float | None = None
    power_limit: float | None = None
    temperature: float | None = None
    in_use: bool | None = None
    runs: list[str] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)


@dataclass(slots=True)
class FleetHost:
    """A host as it is now.

    Args:
        state: `running`: a run is on it; `lost`: its newest run was lost; `ended`: its newest run has ended.
        last_ms: of its newest record.
        runs: those that are on it now; otherwise its newest one.
        flags: its own and those of its devices.
    """

    name: str
    state: HostState
    last_ms: int
    runs: list[HostRun]
    cpu: float | None = None
    memory: float | None = None
    devices: list[FleetDevice] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)


class HostLibrary(Protocol):
    """A library that knows the hosts of its runs."""

    async def hosts(self, readable: ReadableRuns | None = None) -> list[FleetHost]:
        """Return the hosts with a record of the last 7 days, by name.

        Args:
            readable: only as far as runs tell that the principal may read; None: all.
        """

    async def host_runs(
        self, host: str, t0: int, t1: int, limit: int, readable: ReadableRuns | None = None
    ) -> list[HostRun] | None:
        """Return the newest runs on a host that overlap a time range, the newest first.

        None: no run was ever on such a host, as far as the principal may know.
        """


def fleet(readings: Iterable[HostReading], newest: Mapping[str, HostRun]) -> list[FleetHost]:
    """Return the hosts of running runs, and others by their newest run.

    Args:
        readings: of running runs.
        newest: by host, its newest run.
    """
    by_host: dict[str, list[HostReading]] = {}
    for reading in readings:
        by_host.setdefault(reading.host, []).append(reading)
    hosts = [_running(name, of_host) for name, of_host in by_host.items()]
    for name, run in newest.items():
        if name in by_host:
            continue
        lost = run.state == LOST
        flags: list[Flag] = ["lost"] if lost else []
        hosts.append(FleetHost(name, "lost" if lost else "ended", run.last_ms, [run], flags=flags))
    return sorted(hosts, key=lambda host: natural(host.name))


def _running(name: str, readings: list[HostReading]) -> FleetHost:
    readings.sort(key=lambda reading: reading.run.started_ms, reverse=True)
    last_ms = max(reading.run.last_ms for reading in readings)
    host = FleetHost(name, RUNNING, last_ms, [reading.run for reading in readings])
    devices: dict[tuple[str, str], FleetDevice] = {}
    # The newest run is taken first: several runs measure the same devices.
    for reading in readings:
        fresh = reading.fresh()
        cpu = next((fresh[key] for key in _CPU if key in fresh), None)
        host.cpu = cpu if host.cpu is None else host.cpu
        host.memory = fresh.get("memory_percent") if host.memory is None else host.memory
        values = _device_values(fresh)
        knows_users = any("use_by_run" in fields for fields in values.values())
        for device, fields in values.items():
            _add(devices.setdefault(device, FleetDevice(*device)), fields, reading, knows_users)
    host.devices = sorted(devices.values(), key=lambda device: (device.kind, natural(device.index)))
    flags = {flag for device in host.devices for flag in device.flags}
    host.flags = [flag for flag in FLAGS if flag in flags]
    return host


def _device_values(fresh: Mapping[str, float]) -> dict[tuple[str, str], dict[str, tuple[str, float]]]:
    """By device and field: key and value."""
    values: dict[tuple[str, str], dict[str, tuple[str, float]]] = {}
    for key, value in fresh.items():
        about = device_key(key)
        if about is not None:
            values.setdefault((about.kind, about.index), {})[about.field] = key, value
    return values


_SHOWN = ("use", "memory", "memory_used_bytes", "power", "power_limit", "temperature")


def _add(
    device: FleetDevice, values: Mapping[str, tuple[str, float]], reading: HostReading, knows_users: bool
) -> None:
    """Add what one run knows about a device.

    Args:
        knows_users: whether the run's monitor sees which devices its processes use.
    """
    for name in _SHOWN:
        if getattr(device, name) is None and name in values:
            setattr(device, name, values[name][1])
    about = next((each for each in reading.devices if _is(each, device)), None)
    if about is not None:
        device.model = device.model or about.model
        device.memory_bytes = device.memory_bytes or about.memory_bytes
    used = None if about is None else about.used
    if knows_users:
        used = "use_by_run" in values
    if used:
        device.runs.append(reading.run.id)
    if used is not None:
        device.in_use = bool(device.in_use) or used
    for flag in _flags(values, reading.recent, used):
        if flag not in device.flags:
            device.flags.append(flag)


def _is(reported: RunDevice, device: FleetDevice) -> bool:
    return device.kind == "gpu" and reported.position is not None and str(reported.position) == device.index


def _flags(
    values: Mapping[str, tuple[str, float]], recent: Mapping[str, Recent], used: bool | None
) -> Iterator[Flag]:
    seconds = (
        recent[key].growth
        for name, (key, _) in values.items()
        if name.startswith("throttled.") and key in recent
    )
    throttled_s = max(seconds, default=0.0)  # several reasons apply at the same time
    if throttled_s > THROTTLED_SHARE * THROTTLE_WINDOW_MS / 1000:
        yield "throttled"
    if "temperature" in values and values["temperature"][1] >= HOT_CELSIUS:
        yield "hot"
    use = recent.get(values["use"][0]) if "use" in values else None
    active = recent.get(values["sm_active"][0]) if "sm_active" in values else None
    is_still = active is None or active.mean < IDLE_SM_PERCENT
    if used is not False and use is not None and use.mean < IDLE_PERCENT and is_still:
        yield "idle"


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key that sorts numbers in names by their value.

    Example:
        >>> sorted(["node10", "node9"], key=natural)
        ['node9', 'node10']
    """
    return tuple(
        (0, int(part[:18]), "") if part[0].isdigit() else (1, 0, part) for part in _PARTS.findall(name)
    )
