"""The metric definitions: `DEFINITIONS` finds the definition of a key, `SUBJECTS` lists them by subject.

>>> from runvitals.model.metrics import DEFINITIONS
>>> DEFINITIONS.find("gpu.0.powerWatts").metric.unit
'W'
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from runvitals.model.metrics import (
    amd,
    apple,
    cpu,
    disk,
    gpu,
    graphcore,
    memory,
    monitor,
    network,
    nvidia,
    openmetrics,
    process,
    tpu,
    trainium,
)
from runvitals.model.metrics.definitions import Match, MetricDefinitions
from runvitals.model.metrics.metric import Metric

SUBJECTS: Mapping[str, tuple[Metric, ...]] = {
    "Process": process.METRICS,
    "CPU": cpu.METRICS,
    "Memory": memory.METRICS,
    "Disk": disk.METRICS,
    "Network": network.METRICS,
    "GPU": gpu.METRICS,
    "NVIDIA": nvidia.METRICS,
    "AMD": amd.METRICS,
    "Apple silicon": apple.METRICS,
    "Google TPU": tpu.METRICS,
    "AWS Trainium and Inferentia": trainium.METRICS,
    "Graphcore IPU": graphcore.METRICS,
    "OpenMetrics": openmetrics.METRICS,
    "Monitor": monitor.METRICS,
}

DEFINITIONS = MetricDefinitions(chain.from_iterable(SUBJECTS.values()))

__all__ = ["DEFINITIONS", "SUBJECTS", "Match", "Metric", "MetricDefinitions"]
