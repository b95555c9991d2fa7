"""The metric definitions of series, as the API returns them."""

from __future__ import annotations

from typing import Any

from runvitals.model.metrics import SUBJECTS, mlflow
from runvitals.readers.journals.key_filter import find, unit

_SUBJECT_OF = {metric.key: subject for subject, metrics in SUBJECTS.items() for metric in metrics}


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


def mlflow_name(key: str, host_memory: bool) -> dict[str, Any] | None:
    """MLflow's name of a series, with its unit and the factor to it; None if MLflow has none.

    Args:
        host_memory: whether the host's memory is recorded too.
    """
    named = mlflow.rename(key, host_memory)
    return None if named is None else {"name": named[0], "unit": mlflow.unit_of(named[0]), "factor": named[1]}
