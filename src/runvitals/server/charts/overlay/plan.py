"""Which metrics some runs have: what a page needs to lay out its charts of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runvitals.model.metrics import DEFINITIONS, SUBJECTS
from runvitals.readers.journals.key_filter import find, unit
from runvitals.server.library.run_library import RunView

MAX_NAMES = 10_000
_SUBJECT_OF = {metric.key: subject for subject, metrics in SUBJECTS.items() for metric in metrics}


class MetricNames:
    """The metrics of several runs, each once."""

    def __init__(self) -> None:
        self._logged: set[str] = set()
        self._keys: set[str] = set()

    def add(self, view: RunView) -> None:
        """Add those of a run."""
        self._logged |= view.logged_names()
        self._keys |= view.sampled_keys()

    def join(self, other: MetricNames) -> None:
        """Add those of other runs."""
        self._logged |= other._logged
        self._keys |= other._keys

    def as_json(self) -> dict[str, Any]:
        """Return the fields `logged` and `system` of `models.OverlayPlan`."""
        return {
            "logged": sorted(self._logged)[:MAX_NAMES],
            "system": list(_metrics(sorted(self._keys)))[:MAX_NAMES],
        }


def _metrics(keys: Iterable[str]) -> Iterable[dict[str, Any]]:
    """Yield each metric once, however many devices it is of.

    The totals of which there are rates are left out.
    """
    templates: dict[str, str] = {}
    for key in keys:
        match = find(key)
        templates.setdefault(key if match is None else match.metric.key, key)
    for template, key in templates.items():
        metric = DEFINITIONS.by_template.get(template)
        rate = DEFINITIONS.rate_of.get(template)
        if rate is not None and rate.key in templates:
            continue
        about: dict[str, Any] = {"key": template, "unit": unit(key)}
        if metric is None:
            about |= {"kind": None, "subject": "Other", "chart": template, "text": "", "source": ""}
        else:
            about |= {"kind": metric.kind, "subject": _SUBJECT_OF[template], "chart": metric.chart}
            about |= {"text": metric.text, "source": metric.source}
        yield about
