"""Runs neuron-monitor as a child: its configuration and its output."""

from __future__ import annotations

import os

from runvitals.base import json_codec
from runvitals.monitoring.collectors.plumbing.tool import StreamingTool, ToolFailed
from runvitals.monitoring.collectors.trainium.report import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RUNTIME_METRICS = ("neuroncore_counters", "memory_used", "neuron_runtime_vcpu_usage", "execution_stats")
# The host's collectors read CPU and memory of the instance.
SYSTEM_METRICS = ("neuron_hw_counters",)
# The shortest period of neuron-monitor.
MIN_PERIOD_S = 1.0
# Its default period.
USUAL_PERIOD_S = 5.0
# A neuron-monitor that prints nothing for this long hangs and is restarted. A user's configuration may have a
# long period.
SILENCE_S, LONG_SILENCE_S = 60.0, 900.0
# Enough for a report of 128 processes with 20 models each.
MAX_LINE_LENGTH = 8 << 20


class NeuronMonitor:
    """Starts neuron-monitor, keeps it running, and reads its reports.

    Args:
        path: path of the program.
        interval_s: the sampling interval, and the period of the reports, which is at least one second.
        config: the user's configuration file; None = ours, in a memory file that vanishes with the monitor.

    ``malformed`` counts the lines that were not reports; ``complaint`` is the error of the last one.
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
            period_s = max(interval_s, MIN_PERIOD_S)
            self._config_fd = _file_in_memory(configuration(period_s))
            if self._config_fd >= 0:
                config = f"/proc/{os.getpid()}/fd/{self._config_fd}"
                self.period_s = period_s
            self._silence_s = max(SILENCE_S, 3 * self.period_s)
        self._argv = [path] if config is None else [path, "-c", config]
        self._stream = StreamingTool(self._argv, MAX_LINE_LENGTH)

    def reports(self, mono_s: float) -> list[dict[str, Any]]:
        """Return the reports since the last call, as returned by `report.parse`; usually one or none.

        Raises:
            ToolFailed: it could not be started, exited, or printed nothing for too long. It is restarted 1,
                2, 4 … 60 s after its end.
        """
        lines = self._stream.lines(mono_s)
        if self._heard_s is None or lines:
            self._heard_s = mono_s
        elif mono_s - self._heard_s > self._silence_s:
            silent_s, self._heard_s = mono_s - self._heard_s, None
            self._stream.close()
            self._stream = StreamingTool(self._argv, MAX_LINE_LENGTH)
            raise ToolFailed(f"{self.path} printed nothing for {silent_s:.0f} s and is being restarted")
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
        """Kill neuron-monitor."""
        self._stream.close()
        if self._config_fd >= 0:
            os.close(self._config_fd)
            self._config_fd = -1


def configuration(period_s: float) -> dict[str, Any]:
    """Return a configuration that reports everything about all processes and devices.

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
    """Write the configuration into a memory file.

    Returns the descriptor, or -1 if the kernel does not support it; neuron-monitor then uses its defaults.
    """
    try:
        fd = os.memfd_create("neuron-monitor.json")
    except OSError:
        return -1
    os.write(fd, json_codec.dumps(config))
    return fd
