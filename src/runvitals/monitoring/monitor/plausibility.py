"""Leaves out readings that are impossible, and marks power that hardly is possible.

Drivers and tools have codes for "no value", such as 4294967295, which a factor may turn into a number that
looks like a reading. Sensors and firmware fail. So each reading is compared with the range of its metric
before it is recorded, whatever source it is from.
"""

from __future__ import annotations

from _operator import le

from runvitals.monitoring.monitor.ranges import SHARES, name_of, range_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runvitals.monitoring.collectors.base import Tick
    from runvitals.monitoring.monitor.baselines import Baselines

# A share is computed from two readings that are not of quite the same time: so much more than all is all, and
# so much less than nothing is nothing. But -1 stands for no value.
ALL, SLACK = 100.0, 10.0
ABSENT = -1.0
# Their readings come from drivers and tools with codes for "no value".
DEVICES = ("gpu.", "tpu.", "trn.", "ipu.")
_CODES = (0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1, (1 << 64) - 1, *range(0x7FFFFFF0, 0x7FFFFFFF))
_PER_UNIT = (1, 10, 100, 1000, 1_000_000, 1_000_000_000)
# Codes of 16 bits. Amounts of memory and counters, which may be higher than _LARGE, have such values too.
_SHORT_CODES = frozenset(0xFFFF / count for count in _PER_UNIT)
_LARGE = 1e6
_UNITS = (100.0, 1024.0, 1048576.0)
# Amounts from which a share is computed, besides those that it is the share of.
_PARTS = {
    "gpu.powerWatts": "gpu.powerPercent",
    "gpu.enforcedPowerLimitWatts": "gpu.powerPercent",
    "gpu.memoryTotal": "gpu.memoryAllocated",
    "tpu.hbmCapacityTotal": "tpu.memoryUsage",
}
_DERIVED = {**SHARES, **{amount: share for share, amount in SHARES.items()}, **_PARTS}
# More sets of keys than a machine has. When there are more, they are looked up again.
MAX_CHECKS = 256


class Fault:
    """A value that was left out of a tick, and why. ``place``: its place among the gauges or counters."""

    __slots__ = ("is_counter", "key", "position", "reason", "value")

    def __init__(self, key: str, value: float, position: int, reason: str, is_counter: bool = False) -> None:
        self.key = key
        self.value = value
        self.position = position
        self.reason = reason
        self.is_counter = is_counter


class KeyChecks:
    """The limits of one set of keys."""

    __slots__ = ("has_devices", "least", "most")

    def __init__(self, keys: tuple[str, ...]) -> None:
        ranges = [range_of(key) for key in keys]
        self.least = [least for least, _, _ in ranges]
        self.most = [most for _, most, _ in ranges]
        self.has_devices = any(key.startswith(DEVICES) for key in keys)


class Plausibility:
    """Checks each tick before its values are recorded.

    Usually nothing is wrong. Then a comparison of all values with their limits, in C, costs 3 µs.

    Args:
        baselines: those of the counters. While the power of a device cannot be right, its energy does not
            grow.
    """

    __slots__ = ("_baselines", "_checks", "_codes", "_reported")

    def __init__(self, baselines: Baselines) -> None:
        self._baselines = baselines
        self._checks: dict[tuple[str, ...], KeyChecks] = {}
        self._codes: frozenset[float] = frozenset()  # filled when there are devices
        self._reported: set[str] = set()  # devices whose power sensor was reported

    def check(self, tick: Tick) -> list[Fault]:
        """Remove impossible values from the tick. Returns them."""
        keys = tuple(tick.gauges)
        checks = self._checks.get(keys) or self._add(keys)
        values = tick.gauges.values()
        try:
            if all(map(le, values, checks.most)) and all(map(le, checks.least, values)):
                if not checks.has_devices:
                    return []
                if self._codes.isdisjoint(values) and self._codes.isdisjoint(tick.counters.values()):
                    return []
        except TypeError:  # not a number: the recorder reports it
            pass
        return self._remove_faults(tick, checks)

    def _add(self, keys: tuple[str, ...]) -> KeyChecks:
        if len(self._checks) >= MAX_CHECKS:
            self._checks.clear()
        checks = self._checks[keys] = KeyChecks(keys)
        if checks.has_devices and not self._codes:
            self._codes = codes()
        return checks

    def _remove_faults(self, tick: Tick, checks: KeyChecks) -> list[Fault]:
        faults = {fault.key: fault for fault in self._impossible_gauges(tick.gauges, checks)}
        for position, (key, total) in enumerate(tick.counters.items()):
            if self._is_code(key, total):
                faults[key] = Fault(key, total, position, _no_value(total), is_counter=True)
        for key in faults:
            tick.gauges.pop(key, None)
            tick.counters.pop(key, None)
        for key, fault in faults.items():
            device, _, name = key.rpartition(".")
            if name == "powerPercent" and fault.value > range_of(key)[1]:
                self._mark_power(tick, device)
        return list(faults.values())

    def _impossible_gauges(self, gauges: dict[str, float], checks: KeyChecks) -> Iterable[Fault]:
        """Yield the gauges that are out of range, and those computed from them.

        Rounds what is out by a little.
        """
        faults = []
        for position, (key, value) in enumerate(gauges.items()):
            least, most = checks.least[position], checks.most[position]
            if self._is_code(key, value):
                faults.append(Fault(key, value, position, _no_value(value)))
            elif not is_number(value) or value != value or least <= value <= most:
                continue
            elif most == ALL and -SLACK <= value <= ALL + SLACK and value != ABSENT:
                gauges[key] = min(max(value, 0.0), ALL)
            else:
                limits = f"{least:g} to {most:g} {range_of(key)[2]}".rstrip()
                faults.append(Fault(key, value, position, f"{value:.12g} is left out: expected {limits}"))
        positions = {key: position for position, key in enumerate(gauges)}
        for fault in faults:
            yield from _derive(fault, gauges, positions)
        yield from faults

    def _is_code(self, key: str, value: float) -> bool:
        if not is_number(value) or value not in self._codes or not key.startswith(DEVICES):
            return False
        return value not in _SHORT_CODES or range_of(key)[1] <= _LARGE

    def _mark_power(self, tick: Tick, device: str) -> None:
        """Mark the power of a device that is far above its limit, and do not count its energy."""
        watts = tick.gauges.get(f"{device}.powerWatts")
        if watts is None or device.startswith("gpu.process."):
            return
        tick.gauges[f"{device}.powerSuspect"] = 1.0
        energy = f"{device}.energyJoules"
        joules = tick.counters.pop(energy, None)
        if joules is not None:
            self._baselines.leave_out(energy, joules)
        if device not in self._reported:
            self._reported.add(device)
            text = (
                f"{device}: the sensor reports {watts:g} W, more than twice the power limit; it is recorded, "
                "but not counted as energy"
            )
            tick.events.append({"name": "sensor_implausible", "level": "warning", "text": text})


def codes() -> frozenset[float]:
    """Numbers that mean "no value".

    The highest ones of signed and unsigned integers, and those of DCGM, in the units of drivers and tools as
    they are converted to ours.

    >>> codes() >= {4294967295.0, 4294967.295, 65.535, 2147483632.0}
    True
    """
    multiples = {float(code * unit) for code in _CODES for unit in _UNITS}
    parts = {code / count for code in _CODES for count in _PER_UNIT}
    parts |= {code * (1.0 / count) for code in _CODES for count in _PER_UNIT}
    return frozenset(multiples | parts | _SHORT_CODES)


def with_reasons(state: dict[str, str], impossible: Mapping[str, str]) -> dict[str, str]:
    """Return the state of a source, with what was left out and why.

    >>> with_reasons({"state": "on"}, {"gpu.0.gpu": "184213 is left out"})
    {'state': 'on', 'reason': 'gpu.0.gpu: 184213 is left out'}
    """
    reasons = [state["reason"]] if "reason" in state else []
    reasons += [f"{key}: {why}" for key, why in impossible.items()]
    return {**state, "reason": "; ".join(reasons)} if reasons else state


def is_number(value: object) -> bool:
    """Return whether a value can be recorded. An int can be larger than the largest float64."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 1023)


def _derive(fault: Fault, gauges: Mapping[str, float], positions: Mapping[str, int]) -> Iterable[Fault]:
    """Yield the share of an impossible amount, and the amount of an impossible share."""
    name = _DERIVED.get(name_of(fault.key), "")
    key = f"{fault.key.rpartition('.')[0]}.{name.partition('.')[2]}"
    if name and key in gauges:
        reason = f"is left out: {name_of(fault.key).partition('.')[2]} is {fault.value:.12g}"
        yield Fault(key, gauges[key], positions[key], reason)


def _no_value(value: float) -> str:
    return f"{value:.12g} is left out: it stands for no value"
