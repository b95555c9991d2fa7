"""Converts names and values to what MLflow accepts."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

from runvitals.base.json_codec import dumps
from runvitals.relay.destinations.mlflow.tracking_store import NamedText

MAX_KEY_LENGTH = 250
MAX_PARAM_LENGTH = 6000
MAX_TAG_LENGTH = 8000
# Facts about a run and its machine, and the tags MLflow's page, or ours, looks for.
_TAGS = {
    ("run", "name"): "mlflow.runName",
    ("run", "notes"): "mlflow.note.content",
    ("run", "tags"): "runvitals.tags",
    ("run", "group"): "runvitals.group",
    ("run", "job_type"): "runvitals.job_type",
    ("machine", "user"): "mlflow.user",
    ("machine", "command"): "mlflow.source.name",
    ("machine", "git", "commit"): "mlflow.source.git.commit",
    ("machine", "git", "branch"): "mlflow.source.git.branch",
}
# Letters, digits and these; servers on Linux accept a colon since MLflow 2.16.
_FOREIGN = re.compile(r"[^\w\-. /:]")


def metric_name(name: str) -> str:
    """Convert a name to a valid name of a metric, parameter or tag; valid names are unchanged.

    MLflow also uses names as relative paths, so `..` and empty parts are not allowed.

    >>> metric_name("train/loss"), metric_name("/val//acc@5"), metric_name("../a")
    ('train/loss', 'val/acc_5', 'a')
    """
    parts = [part for part in _FOREIGN.sub("_", name).split("/") if part not in ("", ".", "..")]
    fitting = posixpath.join(*parts)[:MAX_KEY_LENGTH].rstrip("/") if parts else ""
    return fitting or "_"


def is_metric_name(name: str) -> bool:
    """Return whether MLflow accepts a name unchanged."""
    return metric_name(name) == name


def params(config: Mapping[str, Any], prefix: str = "") -> Iterator[NamedText]:
    """Yield a run's configuration as MLflow parameters, flattened, with text values.

    >>> list(params({"lr": 0.1, "model": {"layers": [2, 3]}}))
    [NamedText(key='lr', value='0.1'), NamedText(key='model.layers', value='[2,3]')]
    """
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from params(value, f"{prefix}{name}.")
        else:
            yield NamedText(metric_name(f"{prefix}{name}"), text(value)[:MAX_PARAM_LENGTH])


def text(value: Any) -> str:
    """Return a JSON value as MLflow shows it: scalars as Python prints them, everything else as JSON."""
    return str(value) if isinstance(value, (str, int, float)) or value is None else dumps(value).decode()


def tags(facts: Mapping[str, Any]) -> Iterator[NamedText]:
    """Return facts about a run and its machine as MLflow tags.

    >>> list(tags({"t": 0, "machine": {"command": ["python", "train.py"]}}))
    [NamedText(key='mlflow.source.name', value='python train.py')]
    """
    for path, tag in _TAGS.items():
        value: Any = facts
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if value:
            between = ", " if path[-1] == "tags" else " "
            text = between.join(map(str, value)) if isinstance(value, list) else str(value)
            yield NamedText(tag, text[:MAX_TAG_LENGTH])
