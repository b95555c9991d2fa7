"""The metric definitions of series, as the API returns them."""

from __future__ import annotations

from typing import Any

from runvitals.model.metrics import SUBJECTS, mlflow
from runvitals.model.metrics.labels import labels
from runvitals.readers.journals.key_filter import find, unit

_SUBJECT_OF = {metric.key: subject for subject, metrics in SUBJECTS.items() for metric in metrics}
_MAIN_KEYS = {
    metric.chart: metric.key for metrics in reversed(list(SUBJECTS.values())) for metric in reversed(metrics)
}
"""Of each chart, the template of its first metric."""


def definition(key: str) -> dict[str, Any]:
    """Return the definition of a series: its template, unit, kind, subject, chart, text and source.

    A key without a metric definition has a chart to itself.
    """
    match = find(key)
    if match is None:
        unknown = {"template": key, "unit": "", "kind": None, "subject": "Other", "chart": key}
        return {**unknown, "text": "", "source": ""}
    metric = match.metric
    return {
        "template": metric.key,
        "unit": unit(key),
        "kind": metric.kind,
        "subject": _SUBJECT_OF[metric.key],
        "chart": metric.chart,
        "text": metric.text,
        "source": metric.source,
    }


def series_name(key: str) -> str:
    """Return a series in words, with its key where its chart has other metrics before it.

    Example:
        >>> [series_name(key) for key in ("gpu.3.powerWatts", "network.sentMBps", "train/loss")]
        ['GPU power, device 3', 'Network (network.sentMBps)', 'train/loss']
    """
    match = find(key)
    if match is None:
        return key
    if _MAIN_KEYS[match.metric.chart] != match.metric.key:
        return f"{match.metric.chart} ({key})"
    return ", ".join([match.metric.chart, *(f"{label} {value}" for label, value in labels(match))])


def mlflow_name(key: str, host_memory: bool) -> dict[str, Any] | None:
    """MLflow's name of a series, with its unit and the factor to it; None if MLflow has none.

    Args:
        host_memory: whether the host's memory is recorded too.
    """
    renamed = mlflow.rename(key, host_memory)
    return (
        None
        if renamed is None
        else {"name": renamed[0], "unit": mlflow.unit_of(renamed[0]), "factor": renamed[1]}
    )
