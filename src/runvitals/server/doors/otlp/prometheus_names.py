"""The names that Prometheus gives to metrics of OpenTelemetry: with their unit, and `_total` for counters.

https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/#otlp-metric-points-to-prometheus
"""

from __future__ import annotations

import re
from typing import Final

from runvitals.server.doors.otlp.message import GAUGE, SUM, SentMetric

SECTION: Final = "otlp"
"""The facts of a run with these names, by the names that were sent."""
_UNITS: Final = {
    "d": "days",
    "h": "hours",
    "min": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
    "By": "bytes",
    "KiBy": "kibibytes",
    "MiBy": "mebibytes",
    "GiBy": "gibibytes",
    "TiBy": "tebibytes",
    "KBy": "kilobytes",
    "MBy": "megabytes",
    "GBy": "gigabytes",
    "TBy": "terabytes",
    "m": "meters",
    "V": "volts",
    "A": "amperes",
    "J": "joules",
    "W": "watts",
    "g": "grams",
    "Cel": "celsius",
    "Hz": "hertz",
    "1": "",
    "%": "percent",
}
_PER: Final = {
    "s": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
    "mo": "month",
    "y": "year",
}
_OTHER_CHARACTERS: Final = re.compile(r"[^a-zA-Z0-9:]+")
_ANNOTATION: Final = re.compile(r"\{[^}]*\}")
_TOTAL, _RATIO = "total", "ratio"


def prometheus_name(metric: SentMetric) -> str:
    """Return the name of a metric in Prometheus; those of a histogram's parts begin with it.

    Example:
        >>> prometheus_name(SentMetric("http.server.request.duration", "s", "histogram"))
        'http_server_request_duration_seconds'
        >>> prometheus_name(SentMetric("requests", "{request}", "sum", is_monotonic=True))
        'requests_total'
        >>> prometheus_name(SentMetric("disk.use", "1")), prometheus_name(SentMetric("speed", "By/s"))
        ('disk_use_ratio', 'speed_bytes_per_second')
    """
    words = [word for word in _OTHER_CHARACTERS.split(metric.name) if word]
    unit, _, per = _ANNOTATION.sub("", metric.unit).partition("/")
    for word in (*_words(_UNITS.get(unit.strip(), unit)), *_words(_per(per.strip()))):
        if word not in words:
            words.append(word)
    is_counter = metric.kind == SUM and metric.is_monotonic
    ending = _TOTAL if is_counter else _RATIO if metric.kind == GAUGE and metric.unit == "1" else ""
    if ending:
        words = [*(word for word in words if word != ending), ending]
    name = "_".join(words)
    return f"_{name}" if name[:1].isdigit() else name


def _per(unit: str) -> str:
    return f"per_{_PER.get(unit, unit)}" if unit else ""


def _words(text: str) -> list[str]:
    return [word for word in _OTHER_CHARACTERS.split(text) if word]
