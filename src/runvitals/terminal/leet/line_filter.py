"""The filter of nodes, ranks and devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from runvitals.base.regular_expressions import finder
from runvitals.model.metrics import DEFINITIONS
from runvitals.terminal.leet.charts import Chart, SeriesName

GRAMMAR = "node:REGEX rank:0-3,8 device:0,1"
# The labels of metric definitions that number a device.
_DEVICE_LABELS = ("i", "device_id")
_NO_DEVICES = ("cpu.",)  # cores are not devices here


def _everything(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class LineFilter:
    """Nodes by a regular expression, ranks and devices by numbers. None: all.

    Example:
        >>> only = LineFilter.parse("node:^gpu rank:0-3,8")
        >>> only.shows_process("gpu-7", 2), only.shows_process("cpu-1", 2)
        (True, False)
    """

    text: str = ""
    is_node: Callable[[str], bool] = field(default=_everything, repr=False, compare=False)
    ranks: tuple[range, ...] | None = None
    devices: tuple[range, ...] | None = None

    @classmethod
    def parse(cls, text: str) -> LineFilter:
        """Parse a filter such as `node:^gpu rank:0-3,8`.

        Raises:
            ValueError: the text does not follow `GRAMMAR`.
        """
        is_node: Callable[[str], bool] = _everything
        ranks, devices = None, None
        for term in text.split():
            name, colon, value = term.partition(":")
            if not (colon and value) or name not in ("node", "rank", "device"):
                raise ValueError(f"expected {GRAMMAR}, not {term[:40]!r}")
            if name == "node":
                is_node = finder(value)
            elif name == "rank":
                ranks = _ranges(value)
            else:
                devices = _ranges(value)
        return cls(text, is_node, ranks, devices)

    def shows_process(self, host: str, rank: int | None) -> bool:
        """Return whether what a process logged is shown. One without a rank has all."""
        is_rank = self.ranks is None or rank is None or any(rank in ranks for ranks in self.ranks)
        return is_rank and self.is_node(host)

    def shows(self, line: SeriesName) -> bool:
        """Return whether a series of system metrics is shown. One of no device is of all."""
        if not self.is_node(line.origin):
            return False
        number = device_of(line.key)
        return self.devices is None or number is None or any(number in devices for devices in self.devices)

    def of_system(self, chart: Chart) -> Chart:
        """Return a chart with only the lines that are shown."""
        if not self.text:
            return chart
        return chart._replace(lines=tuple(line for line in chart.lines if self.shows(line)))


def device_of(key: str) -> int | None:
    """Return the number of the device that a key is about.

    Example:
        >>> device_of("gpu.3.temp"), device_of("cpu")
        (3, None)
    """
    match = None if key.startswith(_NO_DEVICES) else DEFINITIONS.find(key)
    labels = {} if match is None else match.labels
    number = next((labels[name] for name in _DEVICE_LABELS if name in labels), "")
    return int(number) if number.isdecimal() else None


def _ranges(text: str) -> tuple[range, ...]:
    ranges = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()) or len(low) > 6 or len(high) > 6:
            raise ValueError(f"expected numbers such as 0-3,8, not {part[:40]!r}")
        ranges.append(range(int(low), int(high or low) + 1))
    return tuple(ranges)
