"""`MachineSampler`: samples of this machine, its processes among them, without a run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from runvitals.monitoring.monitor.sampler import Sampler
from runvitals.sdk.probe import probe
from runvitals.terminal.top.processes import ProcessLine, ProcessList
from runvitals.terminal.top.vitals import Vitals

MAX_PROCESSES = 100


class MachineSampler:
    """Samples this machine.

    Args:
        values: resolved settings.
        interval_s: intended interval between samples.
    """

    def __init__(self, values: Mapping[str, Any], interval_s: float) -> None:
        probed, _ = probe(values, interval_s)
        self.sample_values: dict[str, float] = {}
        self.vitals = Vitals()
        self.processes: list[ProcessLine] = []
        self._collectors = probed.collectors
        self._sampler = Sampler(probed.collectors, interval_s, self._report, values["gpu_ids"])
        self._processes = ProcessList(f"{values['host_root']}/proc")

    def sample(self) -> None:
        """Take a sample and update `vitals` and `processes`."""
        now_s = self._sample()
        self.processes = self._processes.heaviest(MAX_PROCESSES, now_s)

    def sample_everything(self) -> None:
        """Take a sample as `sample` does, with all processes, unordered."""
        now_s = self._sample()
        self.processes = self._processes.everything(now_s)

    def _sample(self) -> float:
        now_s = time.monotonic()
        self.sample_values = self._sampler.sample(now_s)
        self.vitals.machine.update(self._sampler.news().get("machine", {}))
        self.vitals.add(now_s, self.sample_values)
        return now_s

    @property
    def pending(self) -> bool:
        """Whether a source has yet to return its first values."""
        return any(getattr(collector, "pending", False) for collector in self._collectors)

    def close(self) -> None:
        """Release the sources."""
        self._sampler.close()

    def _report(self, name: str, error: Exception | None) -> None:
        if error is None:
            self.vitals.failures.pop(name, None)
        else:
            self.vitals.failures[name] = f"{type(error).__name__}: {error}"
