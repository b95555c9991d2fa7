"""Samples of this machine as series, and its processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from runvitals.readers.journals.rates import rate_of
from runvitals.terminal.leet.charts import Chart, SeriesName, system_charts
from runvitals.terminal.leet.series_column import SeriesColumn
from runvitals.terminal.leet.shared_use import SharedUse
from runvitals.terminal.top.gpu_processes import GpuProcesses, GpuUse, open_nvml
from runvitals.terminal.top.machine_sampler import MachineSampler
from runvitals.terminal.top.processes import ProcessLine
from runvitals.terminal.top.vitals import Vitals

KEPT = 3600
"""Samples of each series in memory."""


class MachineData:
    """This machine. `poll` takes a sample and may run in a thread; everything else reads memory.

    Args:
        values: resolved settings.
        interval_s: intended interval between samples.
        host: the name of the machine.
        clock_ms: ms UTC.
    """

    def __init__(
        self, values: Mapping[str, Any], interval_s: float, host: str, clock_ms: Callable[[], int]
    ) -> None:
        self.host = host
        self._sampler = MachineSampler(values, interval_s)
        self._gpu_processes = GpuProcesses(f"{values['host_root']}/proc", open_nvml())
        self._use = SharedUse(self._close)
        self._clock_ms = clock_ms
        self._series: dict[str, SeriesColumn] = {}
        self._lock = threading.Lock()
        self.started_ms = self.end_ms = float(clock_ms())
        self.processes: list[ProcessLine] = []
        self.gpu_use: dict[int, GpuUse] = {}

    @property
    def vitals(self) -> Vitals:
        """The newest values."""
        return self._sampler.vitals

    def poll(self) -> None:
        """Take a sample, or raise Closed."""
        with self._use():
            self._sample()

    def _sample(self) -> None:
        self._sampler.sample_everything()
        processes = self._sampler.processes
        gpu_use = self._gpu_processes.read([process.pid for process in processes], time.monotonic())
        now_ms = float(self._clock_ms())
        sampled = self._sampler.sample_values
        with self._lock:
            self.processes, self.gpu_use, self.end_ms = processes, gpu_use, now_ms
            for key, value in sampled.items():
                rate = rate_of(key)
                if rate is None:
                    self._add(key, now_ms, value)
                elif rate.key in self.vitals.metrics:
                    self._add(rate.key, now_ms, self.vitals.metrics[rate.key])

    def _add(self, key: str, now_ms: float, value: float) -> None:
        series = self._series.setdefault(key, SeriesColumn())
        if series.count >= 2 * KEPT:
            series.replace(series.x[-KEPT:], series.y[-KEPT:])
        series.extend([now_ms], [value])

    def charts(self) -> list[Chart]:
        """Return the charts of everything that is sampled."""
        with self._lock:
            return system_charts({(self.host, "monitor"): list(self._series)})

    def series(self, names: Iterable[SeriesName]) -> dict[SeriesName, SeriesColumn]:
        """Return the series of charts."""
        with self._lock:
            return {name: self._series[name.key].snapshot() for name in names if name.key in self._series}

    def close(self) -> None:
        """Release the sources, after the sample that is being taken."""
        self._use.close()

    def _close(self) -> None:
        self._sampler.close()
        self._gpu_processes.close()
