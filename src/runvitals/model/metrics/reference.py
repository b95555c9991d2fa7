"""The metric definitions as a table for a terminal, as JSON, and as `docs/reference/metrics.md`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from runvitals.model.metrics.metric import Metric
from runvitals.model.metrics.unit import UNITS

Subjects = Mapping[str, tuple[Metric, ...]]

_INTRODUCTION = """\
# Metrics

Every metric that runvitals records, generated from the metric definitions by `runvitals metrics --markdown`.

- A key with braces is a template: `gpu.{i}.temp` covers `gpu.0.temp`, `gpu.1.temp` …
- A **gauge** is a current value. A **counter** is a total that grows from 0 at the first sample of the run. A
  **rate** is not stored: it is derived from its counter on reading. Charts show a counter as its rate if it
  has one.
- A value that cannot be read is absent, never 0.
- *Merge* is how the samples of one time bucket are aggregated.
- MLflow's names get the prefix `system/`. Prometheus and OpenTelemetry use base units: % becomes a ratio from
  0 to 1, MiB become bytes, MHz become hertz.
"""


def select(subjects: Subjects, chosen: Collection[Metric]) -> Subjects:
    """Return the subjects, reduced to the chosen metrics. Subjects without any are omitted."""
    keys = {row.key for row in chosen}
    selected = {subject: tuple(row for row in rows if row.key in keys) for subject, rows in subjects.items()}
    return {subject: rows for subject, rows in selected.items() if rows}


def table(subjects: Subjects, width: int | None = None) -> Iterator[str]:
    """Yield the lines of an aligned table, truncated to ``width`` columns if given."""
    for subject, rows in subjects.items():
        yield subject
        key_width = max(len(row.key) for row in rows)
        unit_width = max(len(row.unit) for row in rows)
        for row in rows:
            line = f"  {row.key:<{key_width}}  {row.unit:<{unit_width}}  {row.kind:<7}  {row.text}"
            yield line if width is None or len(line) <= width else line[: width - 1] + "…"
        yield ""


def as_json(subject: str, row: Metric) -> dict[str, Any]:
    """Return a metric as a JSON object. Properties that it does not have are omitted."""
    fields: dict[str, Any] = {
        "key": row.key,
        "subject": subject,
        "unit": row.unit,
        "kind": row.kind,
        "scope": row.scope,
        "merge": row.merge,
        "chart": row.chart,
        "description": row.text,
        "source": row.source,
    }
    if row.aliases:
        fields["aliases"] = list(row.aliases)
    if row.of is not None:
        fields["of"] = {"key": row.of, "factor": row.factor}
    if row.mlflow is not None:
        fields["mlflow"] = {"name": row.mlflow, "factor": row.mlflow_factor}
    if row.prometheus:
        fields["prometheus"] = {"name": row.prometheus, "factor": UNITS[row.unit].to_base}
    if row.otel:
        unit = UNITS[row.unit]
        fields["opentelemetry"] = {"name": row.otel, "unit": unit.otel, "factor": unit.to_base}
        if row.attributes:
            fields["opentelemetry"]["attributes"] = dict(row.attributes)
    return fields


def markdown(subjects: Subjects) -> str:
    """Return the reference page."""
    sections = [line for subject, rows in subjects.items() for line in _section(subject, rows)]
    return "\n".join([_INTRODUCTION, *sections])


def _section(subject: str, rows: tuple[Metric, ...]) -> Iterator[str]:
    yield f"## {subject}"
    yield ""
    yield "| Key | Unit | Kind | What it is, and where it comes from | Chart | Names elsewhere |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        kind = f"{row.kind}, {row.scope}<br>merge: {row.merge}"
        what = f"{_escape(row.text)}<br>*{_escape(row.source)}*"
        yield f"| `{row.key}` | {row.unit} | {kind} | {what} | {row.chart} | {_names_elsewhere(row)} |"
    yield ""


def _escape(text: str) -> str:
    """Escape Markdown's special characters, which occur in paths (`/proc/<pid>/stat`, `intel-rapl:*`)."""
    return text.replace("<", "&lt;").replace("*", "\\*").replace("|", "\\|")


def _names_elsewhere(row: Metric) -> str:
    names = [f"also `{alias}`" for alias in row.aliases]
    if row.mlflow is not None:
        names.append(f"MLflow `{row.mlflow}`")
    if row.prometheus:
        names.append(f"Prometheus `{row.prometheus}`")
    if row.otel:
        attributes = ", ".join(f"{name}={value}" for name, value in row.attributes.items())
        names.append(f"OpenTelemetry `{row.otel}`" + (f" ({attributes})" if attributes else ""))
    return "<br>".join(names)
