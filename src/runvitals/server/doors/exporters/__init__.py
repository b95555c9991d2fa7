"""The metrics of widely used Prometheus exporters under our keys.

DCGM exporter, node_exporter, and those of AMD and AWS Neuron: a cluster that has them gets the System section
of its runs and hosts without our monitor.
"""

from __future__ import annotations

from collections.abc import Mapping

from runvitals.server.doors.exporters import amd, dcgm, neuron, node
from runvitals.server.doors.exporters.translation import Translation

_EXPORTERS = (
    ("DCGM_FI_", dcgm.translate),
    ("node_", node.translate),
    ("gpu_", amd.translate),
    ("amd_", amd.translate),
    ("rocm_", amd.translate),
    ("neuron", neuron.translate),
    ("execution_", neuron.translate),
    ("hardware_ecc_events_total", neuron.translate),
)


def translate(name: str, labels: Mapping[str, str], device: int | None) -> Translation | None:
    """Return how a series of an exporter becomes ours; None for all that no exporter of these has.

    Args:
        device: the number of the device that the labels name by the rules of the project.

    Example:
        >>> translate("DCGM_FI_DEV_GPU_TEMP", {"gpu": "3"}, 3).key
        'gpu.3.temp'
    """
    for prefix, translate_series in _EXPORTERS:
        if name.startswith(prefix) and (translation := translate_series(name, labels, device)) is not None:
            return translation
    return None
