"""neuron-monitor as our child: what it is asked for, and what it prints."""

from __future__ import annotations

import os

from runvitals.collectors.neuron.report import parse
from runvitals.collectors.plumbing.tool import StreamingTool, ToolFailed
from runvitals.journal import json_codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RUNTIME_METRICS = ("neuroncore_counters", "memory_used", "neuron_runtime_vcpu_usage", "execution_stats")
# Of the instance's CPU and memory the host's own sources tell.
SYSTEM_METRICS = ("neuron_hw_counters",)
# neuron-monitor cannot do it more often.
SHORTEST_PERIOD_S = 1.0
# What it does when it is not told.
USUAL_PERIOD_S = 5.0
# One that says nothing for so long hangs, and is started anew. A configuration of the user may have a long
# period.
SILENCE_S, LONG_SILENCE_S = 60.0, 900.0
# A report of 128 processes of 20 models.
LONGEST_LINE = 8 << 20


class NeuronMonitor:
    """Starts neuron-monitor, keeps it running, and reads its reports.

    Args:
        path: where the program lies.
        interval_s: the sampling interval; reports come at it, and at most once a second.
        config: the user's configuration file; None = ours, which is a file in memory alone, gone with us.

    ``malformed`` counts the lines that were no reports, ``complaint`` is what was wrong with the last one.
    """

    def __init__(self, path: str, interval_s: float, config: str | None = None) -> None:
        self.path = path
        self.malformed = 0
        self.complaint = ""
        self.period_s = USUAL_PERIOD_S
        self._silence_s = LONG_SILENCE_S
        self._heard_s: float | None = None
        self._config_fd = -1
        if config is None:
            period_s = max(interval_s, SHORTEST_PERIOD_S)
            self._config_fd = _file_in_memory(configuration(period_s))
            if self._config_fd >= 0:
                config = f"/proc/{os.getpid()}/fd/{self._config_fd}"
                self.period_s = period_s
            self._silence_s = max(SILENCE_S, 3 * self.period_s)
        self._argv = [path] if config is None else [path, "-c", config]
        self._stream = StreamingTool(self._argv, LONGEST_LINE)

    def reports(self, mono_s: float) -> list[dict[str, Any]]:
        """What has come since the last call, as `report.parse` has it; usually one or none.

        Raises:
            ToolFailed: it could not be started, has ended, or says nothing. It is started again, 1, 2, 4 …
                60 s after its end.
        """
        lines = self._stream.lines(mono_s)
        if self._heard_s is None or lines:
            self._heard_s = mono_s
        elif mono_s - self._heard_s > self._silence_s:
            silent_s, self._heard_s = mono_s - self._heard_s, None
            self._stream.close()
            self._stream = StreamingTool(self._argv, LONGEST_LINE)
            raise ToolFailed(f"{self.path} has said nothing for {silent_s:.0f} s, and is started anew")
        reports = []
        for line in lines:
            if not line.strip():
                continue
            try:
                reports.append(parse(line, models=False))
            except ValueError as error:
                self.malformed += 1
                self.complaint = str(error)
        return reports

    def close(self) -> None:
        """Kill it."""
        self._stream.close()
        if self._config_fd >= 0:
            os.close(self._config_fd)
            self._config_fd = -1


def configuration(period_s: float) -> dict[str, Any]:
    """All that neuron-monitor knows of processes and devices, of every process.

    Example:
        >>> configuration(1.0)["period"], configuration(1.0)["system_metrics"]
        ('1s', [{'type': 'neuron_hw_counters'}])
    """
    return {
        "period": f"{period_s:g}s",
        "neuron_runtimes": [{"tag_filter": ".*", "metrics": [{"type": name} for name in RUNTIME_METRICS]}],
        "system_metrics": [{"type": name} for name in SYSTEM_METRICS],
    }


def _file_in_memory(config: dict[str, Any]) -> int:
    """Its descriptor; -1 on a kernel that has none: neuron-monitor's defaults have to do then."""
    try:
        fd = os.memfd_create("neuron-monitor.json")
    except OSError:
        return -1
    os.write(fd, json_codec.dumps(config))
    return fd
