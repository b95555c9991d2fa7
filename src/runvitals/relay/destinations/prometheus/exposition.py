"""Renders the scraped page in Prometheus' text format, or in OpenMetrics if requested.

https://prometheus.io/docs/instrumenting/exposition_formats/
https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runvitals.base.numbers import parse_number
from runvitals.model.metrics.prometheus import Labels, MetricFamily

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[MetricFamily, Labels, float]


def content_type(accept: str) -> str:
    """Return the format an Accept header prefers; Prometheus' text format by default.

    Example:
        >>> content_type("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5")
        'application/openmetrics-text; version=1.0.0; charset=utf-8'
        >>> content_type("*/*")
        'text/plain; version=0.0.4; charset=utf-8'
    """
    liked = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for offer in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in offer.split(";"))
        quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        if kind in liked:
            liked[kind] = max(
                liked[kind], parse_number(quality, 0.0, 1.0) or 0.0
            )  # an invalid quality is ignored
    openmetrics = liked["application/openmetrics-text"]
    return OPENMETRICS if openmetrics and openmetrics >= liked["text/plain"] else TEXT


def render(samples: Iterable[Sample], format: str) -> bytes:
    """Render the page.

    Args:
        samples: in any order; of samples with the same name and labels the last one is used.
        format: `OPENMETRICS` or `TEXT`.
    """
    families: dict[str, tuple[MetricFamily, dict[Labels, float]]] = {}
    for family, labels, value in samples:
        families.setdefault(family.name, (family, {}))[1][labels] = value
    lines = [line for name in sorted(families) for line in _family(*families[name], format)]
    if format == OPENMETRICS:
        lines.append("# EOF")
    return ("\n".join(lines) + "\n").encode("utf-8", "replace") if lines else b""


def _family(family: MetricFamily, rows: dict[Labels, float], format: str) -> Iterator[str]:
    """Yield the lines of one family."""
    openmetrics = format == OPENMETRICS
    name = family.name if openmetrics else family.sample
    kind = family.kind
    if openmetrics and kind == "info":
        name = name.removesuffix("_info")
    elif kind == "info":
        kind = "gauge"
    yield f"# HELP {name} {_help(family.help, openmetrics)}"
    yield f"# TYPE {name} {kind}"
    if openmetrics and family.unit:
        yield f"# UNIT {name} {family.unit}"
    for labels, value in rows.items():
        yield f"{family.sample}{{{','.join(map(_label, labels))}}} {_number(value)}"


def _help(text: str, openmetrics: bool) -> str:
    escaped = text.replace("\\", r"\\").replace("\n", r"\n")
    return escaped.replace('"', r"\"") if openmetrics else escaped


def _label(label: tuple[str, str]) -> str:
    name, text = label
    escaped = text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return f'{name}="{escaped}"'


def _number(value: float) -> str:
    """Return a number as the exposition format writes it.

    Example:
        >>> _number(0.1), _number(float("inf")), _number(float("nan"))
        ('0.1', '+Inf', 'NaN')
    """
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
