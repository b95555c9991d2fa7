"""Power, clocks, temperatures and loads from macmon: the Python package `macmon-lib`, else the program.

Both ask interfaces of macOS that Apple has not documented, and may fall over with a new macOS; so both run
beside the monitor. They go on printing, a line for each moment.
"""

from __future__ import annotations

import os
import sys

from runvitals.collectors.apple.chip import UNKNOWN_WATTS
from runvitals.collectors.apple.macmon_output import MacmonSample, elapsed_s, mean
from runvitals.collectors.plumbing.excerpt import MOST_LINES, first_lines
from runvitals.collectors.plumbing.tool import StillFailing, StreamingTool, ToolFailed, find
from runvitals.journal import json_codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.collectors.apple.chip import AppleChip
    from runvitals.collectors.base import Tick

PLACES = ("/opt/homebrew/bin/macmon", "/opt/local/bin/macmon", "/usr/local/bin/macmon")
# A line each second; less often where ticks are rarer, so that a tick tells the mean of its time.
SHORTEST_PERIOD_S, LONGEST_PERIOD_S = 1.0, 5.0
# A first line takes a second and a half; whoever prints nothing for longer than this hangs.
SILENCE_S = 30.0
# Power of what -> the counter of its energy.
_ENERGY = {
    "gpu.0.powerWatts": "gpu.0.energyJoules",
    "cpu.powerWatts": "energy.cpu",
    "ane.power": "energy.ane",
    "memory.powerWatts": "energy.dram",
}


def commands(folders: Sequence[str], period_s: float) -> list[list[str]]:
    """How macmon can be asked here, best first: the library, the program of 0.6.1 or newer, any program.

    Args:
        folders: where Python packages may lie.
        period_s: seconds from line to line.
    """
    found: list[list[str]] = []
    for folder in folders:
        if folder and os.path.isfile(f"{folder}/macmon/__init__.py"):
            script = os.path.join(os.path.dirname(__file__), "macmon_child.py")
            found.append([sys.executable, "-I", "-S", "-E", script, str(period_s), folder])
            break
    program = find("macmon", *PLACES)
    if program is not None:
        ask = [program, "pipe", "-s", "0", "-i", str(round(period_s * 1000.0))]
        found += [[*ask, "--soc-info"], ask]
    return found


def period(interval_s: float) -> float:
    """Seconds from line to line, for a sampling interval."""
    return min(max(interval_s, SHORTEST_PERIOD_S), LONGEST_PERIOD_S)


class Macmon:
    """`cpu.powerWatts`, `gpu.0.powerWatts`, `ane.power`, `system.powerWatts`, clocks, temperatures, energy.

    Args:
        ways: commands, best first; the next one is tried when one fails before its first line.
        chip: learns what this is, and knows what its GPU may draw.
        period_s: seconds from line to line.

    ``tells_load`` says whether the GPU's load was among the last values.
    """

    name = "macmon"

    def __init__(self, ways: Sequence[Sequence[str]], chip: AppleChip, period_s: float) -> None:
        self.tells_load = False
        self._chip = chip
        self._period_s = period_s
        self._streams = [StreamingTool(way) for way in ways]
        self._works = False
        self._failed = ""
        self._remarks: list[bytes] = []
        self._joules: dict[str, float] = {}
        self._clock_s: float | None = None
        self._heard_s: float | None = None

    @property
    def pending(self) -> bool:
        """Whether a first line is awaited."""
        return self._heard_s is not None and not self._works

    def sample(self, tick: Tick) -> None:
        """Write the mean of the lines since the last tick.

        Raises:
            ToolFailed: macmon has ended, hangs, cannot be started, or prints nothing that is understood;
                again at each call until a line is.
        """
        if self._heard_s is None:
            self._heard_s = tick.mono_s
        try:
            samples = self._samples(tick.mono_s)
        except StillFailing:
            raise
        except ToolFailed as failed:
            self._failed = str(failed)
            self._next()
            raise
        if samples:
            self._works = True
            self._failed = ""
            self._heard_s = tick.mono_s
            self._write(tick, samples)
        elif self._failed:
            raise StillFailing(self._failed)

    def close(self) -> None:
        """End what runs."""
        for stream in self._streams:
            stream.close()

    def _samples(self, mono_s: float) -> list[MacmonSample]:
        """The samples since the last call. Remarks before the first one are no fault, unless none follows."""
        stream = self._streams[0]
        lines = [line for line in stream.lines(mono_s) if line.strip()]
        samples = _samples(lines)
        if samples:
            self._remarks = []
            return samples
        if any(line.lstrip().startswith(b"{") for line in lines):
            raise stream.reject(lines)
        self._remarks = [*self._remarks, *lines][:MOST_LINES]
        if self._heard_s is not None and mono_s - self._heard_s > SILENCE_S + self._period_s:
            program, remarks = " ".join(stream.argv[:2]), first_lines(b"\n".join(self._remarks))
            stream.close()
            said = "nothing" if remarks == "nothing" else f"no sample, but {remarks},"
            raise ToolFailed(f"{program} has printed {said} for {SILENCE_S:.0f} s and was killed")
        return []

    def _next(self) -> None:
        """It has ended: what it told last is not true now, and there may be another way to ask."""
        self._heard_s = self._clock_s = None
        self._remarks = []
        self.tells_load = False
        if not self._works:
            self._streams[0].close()
            self._streams = [*self._streams[1:], self._streams[0]]

    def _write(self, tick: Tick, samples: Sequence[MacmonSample]) -> None:
        for sample in samples:
            self._chip.learn(sample.chip, sample.about)
            between_s = elapsed_s(self._clock_s, sample.clock_s, self._period_s)
            self._clock_s = sample.clock_s
            for power, energy in _ENERGY.items():
                if power in sample.gauges:
                    joules = self._joules.get(energy, 0.0) + sample.gauges[power] * between_s
                    self._joules[energy] = tick.counters[energy] = joules
        gauges = mean(list(samples))
        self.tells_load = "gpu.0.gpu" in gauges
        watts = gauges.get("gpu.0.powerWatts")
        if watts is not None and self._chip.is_settled:
            gauges["gpu.0.powerPercent"] = watts * 100.0 / (self._chip.gpu_watts or UNKNOWN_WATTS)
        tick.gauges.update(gauges)


def _samples(lines: Sequence[bytes]) -> list[MacmonSample]:
    """The lines that hold a sample with a reading that we know."""
    found = []
    for line in lines:
        text = line.decode("utf-8", "replace").strip()
        if not text.startswith("{"):
            continue
        try:
            value = json_codec.loads(text)
        except ValueError:
            continue
        if "error" in value:
            raise ToolFailed(f"macmon-lib: {value['error']}")
        sample = MacmonSample(value)
        if sample.gauges:
            found.append(sample)
    return found
