"""The time for which a GPU's clocks were throttled, by reason."""

from __future__ import annotations

from runvitals.monitoring.collectors.nvidia.nvml import FUNCTION_NOT_FOUND, NvmlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from runvitals.monitoring.collectors.nvidia.nvml import Nvml

# Field that counts nanoseconds, name of the reason in a key.
_COUNTERS = (
    (74, "swPowerCap"),
    (76, "syncBoost"),
    (77, "boardLimit"),
    (79, "reliability"),
    (269, "swThermal"),
    (270, "hwThermal"),
    (271, "hwPowerBrake"),
)
FIELDS = tuple(field for field, _ in _COUNTERS)
# Bits of the active reasons. Idle clocks and clocks set by a user are not throttling.
_BITS = (
    (0x4, "swPowerCap"),
    (0x8, "hwSlowdown"),
    (0x10, "syncBoost"),
    (0x20, "swThermal"),
    (0x40, "hwThermal"),
    (0x80, "hwPowerBrake"),
    (0x200, "boardLimit"),
    (0x400, "reliability"),
)
REASONS = tuple(name for _, name in _BITS)
SAMPLED = (
    "sampled: there is no counter for it, so it is the time during which its bit was set; shorter "
    "throttling is missed"
)
# At most this much time is counted between two reads: the monitor may have been suspended.
MAX_INTERVAL_S = 60.0


class ThrottledTime:
    """Seconds by reason, from the driver's counters.

    For a reason without a counter, the time during which its bit was set; `sampled` lists those. A counter
    that appears later continues that time.

    Example:
        >>> throttled = ThrottledTime()
        >>> throttled.note(0x4, 100.0)
        >>> throttled.note(0x0, 101.0)
        >>> throttled.seconds()["throttle.swPowerCapSeconds"]
        1.0
    """

    __slots__ = ("_ahead_s", "_bits", "_counted", "_read_s", "_seen_s", "_was_returned")

    def __init__(self) -> None:
        self._counted: dict[str, float] = {}
        # How far the time that was sampled before a counter appeared is ahead of the counter.
        self._ahead_s: dict[str, float] = {}
        self._seen_s = {name: 0.0 for _, name in _BITS}
        self._was_returned = False  # whether `seconds` has returned sampled times
        self._bits = 0
        self._read_s: float | None = None

    def read_bits(self, nvml: Nvml, handle: object) -> int:
        """Return the bits of the active reasons.

        Raises:
            NvmlError: the device does not report them.
        """
        for function in _REASON_FUNCTIONS:
            try:
                return nvml.ulong(function, handle)
            except NvmlError as error:
                if error.code != FUNCTION_NOT_FOUND:
                    raise
        raise NvmlError(FUNCTION_NOT_FOUND, _REASON_FUNCTIONS[0])

    def note(self, bits: int, mono_s: float) -> None:
        """Record the active reasons. The time since the last call counts for the reasons active then."""
        if self._read_s is not None:
            for bit, name in _BITS:
                if self._bits & bit:
                    self._seen_s[name] += min(mono_s - self._read_s, MAX_INTERVAL_S)
        self._bits = bits
        self._read_s = mono_s

    def note_counters(self, values: Mapping[int, float]) -> None:
        """Take the driver's counters, by field. A missing one keeps its value."""
        for field, name in _COUNTERS:
            if field in values:
                self.count(name, values[field] / 1e9)

    def count(self, name: str, seconds: float) -> None:
        """Set the driver's total for one reason."""
        if self._was_returned and name in self._seen_s and name not in self._counted:
            self._ahead_s[name] = self._seen_s[name] - seconds
        self._counted[name] = seconds + self._ahead_s.get(name, 0.0)

    def sampled_reasons(self) -> list[str]:
        """Return the reasons without a counter."""
        return [] if self._read_s is None else [name for name in self._seen_s if name not in self._counted]

    def explain(self, why: str | None) -> dict[str, str]:
        """Return why a key has no value, or one from samples; `why` the bits cannot be read."""
        unseen = why if self._read_s is None or why else SAMPLED
        return {key_of(name): unseen for name in REASONS if unseen and name not in self._counted}

    def seconds(self) -> dict[str, float]:
        """Totals by the end of their key."""
        self._was_returned = self._read_s is not None
        seen_s = self._seen_s if self._was_returned else {}
        totals = {**seen_s, **self._counted}
        return {key_of(name): seconds for name, seconds in totals.items()}


def key_of(name: str) -> str:
    """Return the end of the key of a reason."""
    return f"throttle.{name}Seconds"


_REASON_FUNCTIONS = (
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetCurrentClocksThrottleReasons",
)
