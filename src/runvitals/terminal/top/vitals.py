"""Derives what `runvitals top` shows from samples: utilisation of the machine and of its accelerators."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runvitals.readers.journals.rates import rate_between, rate_of

# At least as many points as the widest sparkline shows.
_HISTORY = 240
# How long a value without an update is shown.
_STALE_S = 20.0

# By family of keys: value to show → suffixes of the keys that have it, in order of preference.
_FAMILIES: dict[str, dict[str, tuple[str, ...]]] = {
    "gpu": {
        "use": ("gpu", "smActive", "graphicsActive"),
        "memory": ("memoryAllocated",),
        "memory_bytes": ("memoryAllocatedBytes",),
        "power_w": ("powerWatts",),
        "limit_w": ("enforcedPowerLimitWatts",),
        "temp_c": ("temp",),
        "clock_mhz": ("smClock", "graphicsClock"),
    },
    "tpu": {
        "use": ("dutyCycle", "tensorcoreUtilization"),
        "memory": ("memoryUsage",),
        "memory_bytes": ("memoryUsageBytes",),
    },
    "trn": {"use": ("neuroncore_utilization",)},
    "ipu": {
        "use": ("ipu utilisation (%)",),
        "power_w": ("ipu power (W)", "total board power (W)"),
        "temp_c": ("average die temp (C)", "average board temp (C)"),
        "clock_mhz": ("clock (MHz)",),
    },
}
_TITLES = {"gpu": "GPU", "tpu": "TPU", "trn": "NeuronCore", "ipu": "IPU"}
_FACTS = {"gpu": ("gpu_nvidia", "gpu_amd"), "tpu": ("tpu",), "trn": ("trainium",), "ipu": ("ipu",)}


@dataclass(slots=True)
class Accelerator:
    """A device and its known values.

    Args:
        family: the first word of its keys.
        id: its index, or `0.mig.1.0` for a MIG instance.
        values: use and memory (%), memory_bytes, power_w, limit_w, temp_c, clock_mhz.
        uses: its recent utilisation, oldest first.
    """

    family: str
    id: str
    values: dict[str, float] = field(default_factory=dict)
    uses: list[float] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The name of this kind of device."""
        return _TITLES[self.family]


def accelerators(metrics: Mapping[str, float]) -> list[Accelerator]:
    """Return the accelerators in a sample, ordered by family and id.

    Example:
        >>> [device.values["use"] for device in accelerators({"gpu.0.gpu": 97.0, "gpu.0.temp": 61.0})]
        [97.0]
    """
    by_device: dict[tuple[str, str], dict[str, float]] = {}
    for key, value in metrics.items():
        family, _, rest = key.partition(".")
        if family not in _FAMILIES or rest.startswith("process."):
            continue
        device_id, name = _split(rest)
        if device_id:
            by_device.setdefault((family, device_id), {})[name] = value
    devices = []
    for (family, device_id), readings in sorted(
        by_device.items(), key=lambda item: (item[0][0], _order(item[0][1]))
    ):
        values = {
            field: readings[name]
            for field, names in _FAMILIES[family].items()
            for name in names[::-1]
            if name in readings
        }
        parts = [value for name, value in readings.items() if name.startswith("neuroncore_memory_usage.")]
        if parts:
            values["memory_bytes"] = sum(parts)
        if values:
            devices.append(Accelerator(family, device_id, values))
    return devices


def _split(rest: str) -> tuple[str, str]:
    """Return (device id, name) of a key without its family; id "" if it belongs to no single device."""
    number, _, name = rest.partition(".")
    if not number.isdigit():
        return "", name
    if name.startswith("mig."):
        _, instance, compute, mig_name = [*name.split(".", 3), ""][:4]
        return f"{number}.mig.{instance}.{compute}", mig_name
    return number, name


def _order(device_id: str) -> tuple[int, ...]:
    return tuple(int(part) for part in device_id.split(".") if part.isdigit())


def device_names(machine: Mapping[str, Any], families: Iterable[str]) -> str:
    """Return the models of the accelerators in the machine's facts: `8 × NVIDIA H100 80GB HBM3`."""
    counts: dict[str, int] = {}
    for family in families:
        for name in (*_FACTS[family], *(name for name in machine if name.startswith("accelerator_"))):
            fact = machine.get(name)
            # A list of devices, or one description of all of them.
            for device in fact if isinstance(fact, list) else (fact,):
                if isinstance(device, dict) and device.get("name"):
                    count = device.get("count") or device.get("neuron_device_count") or 1
                    counts[str(device["name"])] = counts.get(str(device["name"]), 0) + int(count)
    return ", ".join(f"{count} × {name}" if count > 1 else name for name, count in counts.items())


class Vitals:
    """The current state of the machine, updated with each sample.

    Attributes:
        metrics: the newest values, including rates of counters.
        accelerators: derived from `metrics`.
        history: key → recent values, for keys that are drawn as sparklines.
        machine: facts that sources report about their devices.
        failures: source → reason why it is failing.

    Example:
        >>> vitals = Vitals()
        >>> vitals.add(100.0, {"cpu.mean": 12.0, "network.recv": 0.0})
        >>> vitals.add(101.0, {"cpu.mean": 14.0, "network.recv": 1048576.0})
        >>> vitals.metrics["network.recvMBps"], list(vitals.history["cpu.mean"])
        (1.0, [12.0, 14.0])
    """

    DRAWN = (
        "cpu.mean",
        "memory_percent",
        "disk.readMBps",
        "disk.writeMBps",
        "network.recvMBps",
        "network.sentMBps",
    )

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}
        self.accelerators: list[Accelerator] = []
        self.history: dict[str, deque[float]] = {}
        self.machine: dict[str, Any] = {}
        self.failures: dict[str, str] = {}
        self._last_readings: dict[str, tuple[float, float]] = {}  # key → (time, value) of its last reading

    def add(self, mono_s: float, values: Mapping[str, float]) -> None:
        """Add a sample of gauges and counters. NaN values (gaps) are ignored."""
        numbers = {key: value for key, value in values.items() if value == value}
        rates = self._rates(mono_s, numbers)
        self._last_readings.update({key: (mono_s, value) for key, value in numbers.items()})
        # Some sources are not read at every sample; their last values stay valid for a while.
        self._last_readings = {
            key: last for key, last in self._last_readings.items() if mono_s - last[0] <= _STALE_S
        }
        self.metrics = {**{key: value for key, (_, value) in self._last_readings.items()}, **rates}
        self.accelerators = accelerators(self.metrics)
        for key in self.DRAWN:
            if key in self.metrics:
                self._append(key, self.metrics[key])
        for device in self.accelerators:
            if "use" in device.values:
                key = f"{device.family}.{device.id}"
                self._append(key, device.values["use"])
                device.uses = list(self.history[key])

    def _append(self, key: str, value: float) -> None:
        self.history.setdefault(key, deque(maxlen=_HISTORY)).append(value)

    def _rates(self, mono_s: float, values: Mapping[str, float]) -> dict[str, float]:
        rates = {}
        for key, value in values.items():
            last = self._last_readings.get(key)
            rate = None if last is None else rate_of(key)
            if last is None or rate is None:
                continue
            speed = rate_between(round(last[0] * 1000), last[1], round(mono_s * 1000), value, rate.factor)
            if speed == speed:
                rates[rate.key] = speed
        return rates
