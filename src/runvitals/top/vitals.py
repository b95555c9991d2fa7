"""Derives what is shown from readings: the machine's utilisation, and accelerators of any vendor."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runvitals.query.rates import between, rate_of

# As many points as the widest sparkline could show.
_KEPT = 240
# For how long a reading holds that is not renewed.
_HOLDS_S = 20.0

# Of each family of keys: what is to be shown → the ends of the keys that tell it, the best one first.
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
    """One device. What is not known of it is not in `values`.

    Args:
        family: the first word of its keys.
        place: what tells it from others: an index, or `0.mig.1.0` of a slice.
        values: use and memory (%), memory_bytes, power_w, limit_w, temp_c, clock_mhz.
        uses: its use at the last samples, oldest first.
    """

    family: str
    place: str
    values: dict[str, float] = field(default_factory=dict)
    uses: list[float] = field(default_factory=list)

    @property
    def title(self) -> str:
        """What its kind is called."""
        return _TITLES[self.family]


def accelerators(metrics: Mapping[str, float]) -> list[Accelerator]:
    """Every accelerator in the readings, in the order of families and numbers.

    Example:
        >>> [one.values["use"] for one in accelerators({"gpu.0.gpu": 97.0, "gpu.0.temp": 61.0})]
        [97.0]
    """
    found: dict[tuple[str, str], dict[str, float]] = {}
    for key, value in metrics.items():
        family, _, rest = key.partition(".")
        if family not in _FAMILIES or rest.startswith("process."):
            continue
        place, _, name = _split(rest)
        if place:
            found.setdefault((family, place), {})[name] = value
    devices = []
    for (family, place), named in sorted(found.items(), key=lambda one: (one[0][0], _order(one[0][1]))):
        values = {
            what: named[name]
            for what, names in _FAMILIES[family].items()
            for name in names[::-1]
            if name in named
        }
        parts = [value for name, value in named.items() if name.startswith("neuroncore_memory_usage.")]
        if parts:
            values["memory_bytes"] = sum(parts)
        if values:
            devices.append(Accelerator(family, place, values))
    return devices


def _split(rest: str) -> tuple[str, str, str]:
    """(place, ".", name) of a key without its family; place "" where the key is of no single device."""
    number, dot, name = rest.partition(".")
    if not number.isdigit():
        return "", dot, name
    if name.startswith("mig."):
        _, instance, compute, of_slice = [*name.split(".", 3), ""][:4]
        return f"{number}.mig.{instance}.{compute}", dot, of_slice
    return number, dot, name


def _order(place: str) -> tuple[int, ...]:
    return tuple(int(part) for part in place.split(".") if part.isdigit())


def names(machine: Mapping[str, Any], families: Iterable[str]) -> str:
    """What the accelerators are called, by the facts that sources tell: `8 × NVIDIA H100 80GB HBM3`."""
    counts: dict[str, int] = {}
    for family in families:
        for fact in (*_FACTS[family], *(name for name in machine if name.startswith("accelerator_"))):
            told = machine.get(fact)
            # A list of devices, or one description of all of them.
            for one in told if isinstance(told, list) else (told,):
                if isinstance(one, dict) and one.get("name"):
                    many = one.get("count") or one.get("neuron_device_count") or 1
                    counts[str(one["name"])] = counts.get(str(one["name"]), 0) + int(many)
    return ", ".join(f"{count} × {name}" if count > 1 else name for name, count in counts.items())


class Vitals:
    """What is known of the machine, sample after sample.

    Attributes:
        metrics: the newest sample, the rates of its counters too.
        accelerators: those that are in it.
        history: key → its values at the last samples, for those that are drawn as curves.
        machine: facts that sources tell of their devices.
        troubles: source → why it does not work at present.

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
        self.troubles: dict[str, str] = {}
        self._seen: dict[str, tuple[float, float]] = {}  # key → when it was read last, and what

    def add(self, mono_s: float, values: Mapping[str, float]) -> None:
        """Take in a sample: gauges, and counters as they grow. A gap (NaN) is no value."""
        known = {key: value for key, value in values.items() if value == value}
        rates = self._rates(mono_s, known)
        self._seen.update({key: (mono_s, value) for key, value in known.items()})
        # Some sources are not asked at every sample: what they said last holds for a while.
        self._seen = {key: seen for key, seen in self._seen.items() if mono_s - seen[0] <= _HOLDS_S}
        self.metrics = {**{key: value for key, (_, value) in self._seen.items()}, **rates}
        self.accelerators = accelerators(self.metrics)
        for key in self.DRAWN:
            if key in self.metrics:
                self._keep(key, self.metrics[key])
        for device in self.accelerators:
            if "use" in device.values:
                key = f"{device.family}.{device.place}"
                self._keep(key, device.values["use"])
                device.uses = list(self.history[key])

    def _keep(self, key: str, value: float) -> None:
        self.history.setdefault(key, deque(maxlen=_KEPT)).append(value)

    def _rates(self, mono_s: float, values: Mapping[str, float]) -> dict[str, float]:
        rates = {}
        for key, value in values.items():
            seen = self._seen.get(key)
            rate = None if seen is None else rate_of(key)
            if seen is None or rate is None:
                continue
            found = between(round(seen[0] * 1000), seen[1], round(mono_s * 1000), value, rate.factor)
            if found == found:
                rates[rate.key] = found
        return rates
