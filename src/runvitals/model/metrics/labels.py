"""The labels of a key's placeholders in other systems."""

from __future__ import annotations

from collections.abc import Mapping

from runvitals.model.metrics.definitions import Match
from runvitals.model.metrics.metric import Metric, placeholders

# Of the placeholders whose label has another name.
LABELS: Mapping[str, str] = {
    "i": "device",
    "dev": "device",
    "nic": "device",
    "device_id": "device",
    "path": "mountpoint",
    "gi": "gpu_instance",
    "ci": "compute_instance",
}


def label(metric: Metric, placeholder: str) -> str:
    """Return the label of a placeholder.

    Example:
        >>> label(DEFINITIONS.by_template["gpu.{i}.temp"], "i")
        'device'
    """
    if placeholder == "i" and metric.key.startswith("cpu."):
        return "cpu"
    return LABELS.get(placeholder, placeholder)


def labels(match: Match) -> tuple[tuple[str, str], ...]:
    """Return the labels of a key and their values, in the order of its placeholders."""
    return tuple((label(match.metric, name), match.labels[name]) for name in placeholders(match.metric.key))
