"""Power, clocks, temperatures and load from macmon: the Python package `macmon-lib`, else the program.

Both use undocumented interfaces of macOS, which may change with any release. So both run in a child process,
which prints a line for each sample.
"""

from __future__ import annotations

import os
import sys

from runvitals.base import json_codec
from runvitals.monitoring.collectors.apple.chip import UNKNOWN_WATTS
from runvitals.monitoring.collectors.apple.macmon_output import MacmonSample, elapsed_s, mean
from runvitals.monitoring.collectors.plumbing.plain_text import MAX_LINES, first_lines
from runvitals.monitoring.collectors.plumbing.tool import StillFailing, StreamingTool, ToolFailed, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.monitoring.collectors.apple.chip import AppleChip
    from runvitals.monitoring.collectors.base import Tick

PLACES = ("/opt/homebrew/bin/macmon", "/opt/local/bin/macmon", "/usr/local/bin/macmon")
# A line each second, or less often at longer sampling intervals: a tick gets the mean of its lines.
MIN_PERIOD_S, MAX_PERIOD_S = 1.0, 5.0
# The first line takes 1.5 s. A child that prints nothing for longer than this is considered hung.
SILENCE_S = 30.0
# Key of a power reading -> key of its energy counter.
_ENERGY = {
    "gpu.0.powerWatts": "gpu.0.energyJoules",
    "cpu.powerWatts": "energy.cpu",
    "ane.power": "energy.ane",
    "memory.powerWatts": "energy.dram",
}


def commands(folders: Sequence[str], period_s: float) -> list[list[str]]:
    """Return the commands that can run macmon here, the best first.

    They are the library, the program (0.6.1 or later), and any program.

    Args:
        folders: folders that may contain Python packages.
        period_s: seconds between lines.
    """
    command_lines: list[list[str]] = []
    for folder in folders:
        if folder and os.path.isfile(f"{folder}/macmon/__init__.py"):
            script = os.path.join(os.path.dirname(__file__), "macmon_child.py")
            command_lines.append([sys.executable, "-I", "-S", "-E", script, str(period_s), folder])
            break
    program = find("macmon", *PLACES)
    if program is not None:
        pipe = [program, "pipe", "-s", "0", "-i", str(round(period_s * 1000.0))]
        command_lines += [[*pipe, "--soc-info"], pipe]
    return command_lines


def period(interval_s: float) -> float:
    """Seconds between lines, for a sampling interval."""
    return min(max(interval_s, MIN_PERIOD_S), MAX_PERIOD_S)


class Macmon:
    """`cpu.powerWatts`, `gpu.0.powerWatts`, `ane.power`, `system.powerWatts`, clocks, temperatures, energy.

    Args:
        commands: in order of preference; the next one is tried if one fails before its first line.
        chip: receives what macmon reports about the chip, and has the power limit of its GPU.
        period_s: seconds between lines.

    ``has_load`` is whether the last values included the GPU's load.
    """

    name = "macmon"

    def __init__(self, commands: Sequence[Sequence[str]], chip: AppleChip, period_s: float) -> None:
        self.has_load = False
        self._chip = chip
        self._period_s = period_s
        self._streams = [StreamingTool(command) for command in commands]
        self._works = False
        self._failed = ""
        self._remarks: list[bytes] = []
        self._joules: dict[str, float] = {}
        self._clock_s: float | None = None
        self._heard_s: float | None = None

    @property
    def pending(self) -> bool:
        """Whether the first line has not arrived yet."""
        return self._heard_s is not None and not self._works

    def sample(self, tick: Tick) -> None:
        """Write the mean of the lines since the last tick.

        Raises:
            ToolFailed: macmon exited, hangs, cannot be started, or prints nothing valid. Raised at each call
                until a valid line arrives.
        """
        if self._heard_s is None:
            self._heard_s = tick.mono_s
        try:
            samples = self._samples(tick.mono_s)
        except StillFailing:
            raise
        except ToolFailed as failed:
            self._failed = str(failed)
            self._restart()
            raise
        if samples:
            self._works = True
            self._failed = ""
            self._heard_s = tick.mono_s
            self._write(tick, samples)
        elif self._failed:
            raise StillFailing(self._failed)

    def close(self) -> None:
        """Stop the child process."""
        for stream in self._streams:
            stream.close()

    def _samples(self, mono_s: float) -> list[MacmonSample]:
        """Return the samples since the last call.

        Other lines before the first sample are ignored, unless none follows.
        """
        stream = self._streams[0]
        lines = [line for line in stream.lines(mono_s) if line.strip()]
        samples = _samples(lines)
        if samples:
            self._remarks = []
            return samples
        if any(line.lstrip().startswith(b"{") for line in lines):
            raise stream.reject(lines)
        self._remarks = [*self._remarks, *lines][:MAX_LINES]
        if self._heard_s is not None and mono_s - self._heard_s > SILENCE_S + self._period_s:
            program, remarks = " ".join(stream.argv[:2]), first_lines(b"\n".join(self._remarks))
            stream.close()
            printed = "nothing" if remarks == "nothing" else f"no sample, but {remarks},"
            raise ToolFailed(f"{program} printed {printed} for {SILENCE_S:.0f} s and was killed")
        return []

    def _restart(self) -> None:
        """After an exit: discard the last values, and try the next command if this one never worked."""
        self._heard_s = self._clock_s = None
        self._remarks = []
        self.has_load = False
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
        self.has_load = "gpu.0.gpu" in gauges
        watts = gauges.get("gpu.0.powerWatts")
        if watts is not None and self._chip.is_settled:
            gauges["gpu.0.powerPercent"] = watts * 100.0 / (self._chip.gpu_watts or UNKNOWN_WATTS)
        tick.gauges.update(gauges)


def _samples(lines: Sequence[bytes]) -> list[MacmonSample]:
    """Return the lines that contain a sample with a known reading."""
    samples = []
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
            samples.append(sample)
    return samples
