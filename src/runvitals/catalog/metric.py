"""What a metric is: one row of the catalogue, and the three ways to write one down."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from runvitals.catalog.unit import UNITS

Kind = Literal["gauge", "counter", "rate"]
Scope = Literal["host", "cgroup", "process", "device", "monitor"]
Merge = Literal["mean", "max", "min", "sum", "last"]

# These placeholders stand for numbers. Any other stands for a name, which may hold dots and slashes
# (`disk./data/v1.5.usagePercent`), so the literal tail of the template has to anchor it.
_INDEXES = frozenset({"i", "core", "port", "n"})
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the catalogue.

    Args:
        key: canonical key or template, e.g. ``"gpu.{i}.powerWatts"``.
        unit: one of `runvitals.catalog.unit.UNITS`: ``"%"``, ``"MiB"``, ``"bytes"``, ``"W"``, ``"1"`` …
        kind: ``gauge`` (a level), ``counter`` (a sum since the run's first sample, falls only on a reset),
            ``rate`` (never stored: derived from the counter named in ``of`` where it is read).
        scope: what the number is about.
        merge: how several samples of one time bucket become one number.
        chart: heading of the chart it is drawn in; all that a chart draws has one unit. A counter that has a
            rate is drawn by its rate.
        text: one sentence for a person.
        source: where the number comes from (file, call, formula).
        aliases: other spellings that mean the same key and are accepted wherever a key is read.
        of: for ``rate``: its counter's template; ``factor`` turns the counter's unit per second into ``unit``.
        mlflow: MLflow's name without ``system/``, or None; ``mlflow_factor`` turns our unit into MLflow's.
        prometheus: full Prometheus name, in base units; "" where Prometheus derives or names it itself.
        otel: OpenTelemetry name: that of the semantic conventions, else ``runvitals.*``; "" as above.
        otel_attributes: what tells rows of one OpenTelemetry name apart; values may hold the key's
            placeholders.
    """

    key: str
    unit: str
    kind: Kind
    scope: Scope
    merge: Merge
    chart: str
    text: str
    source: str
    aliases: tuple[str, ...] = ()
    of: str | None = None
    factor: float = 1.0
    mlflow: str | None = None
    mlflow_factor: float = 1.0
    prometheus: str = ""
    otel: str = ""
    otel_attributes: Mapping[str, str] = field(default_factory=dict)


def gauge(
    key: str,
    unit: str,
    chart: str,
    *,
    name: str,
    text: str,
    source: str,
    scope: Scope = "host",
    merge: Merge = "mean",
    aliases: Sequence[str] = (),
    mlflow: tuple[str, float] | None = None,
    otel: str | None = None,
    otel_attributes: Mapping[str, str] | None = None,
) -> Metric:
    """A level. From ``name``, a dotted stem without unit, follow the Prometheus and OpenTelemetry names.

    >>> row = gauge("memory.usedMB", "MiB", "Memory used", name="memory.used", text="…", source="…")
    >>> row.prometheus, row.otel
    ('runvitals_memory_used_bytes', 'runvitals.memory.used')
    """
    return Metric(
        key, unit, "gauge", scope, merge, chart, text, source, tuple(aliases),
        mlflow=mlflow[0] if mlflow else None,
        mlflow_factor=mlflow[1] if mlflow else 1.0,
        prometheus=prometheus_name(name, unit, "gauge"),
        otel=otel or (name and f"runvitals.{name}"),
        otel_attributes=otel_attributes or {},
    )  # fmt: skip


def counter(
    key: str,
    unit: str,
    chart: str,
    *,
    name: str,
    text: str,
    source: str,
    scope: Scope = "host",
    aliases: Sequence[str] = (),
    mlflow: tuple[str, float] | None = None,
    otel: str | None = None,
    otel_attributes: Mapping[str, str] | None = None,
) -> Metric:
    """A running total; of several samples the last one counts."""
    return Metric(
        key, unit, "counter", scope, "last", chart, text, source, tuple(aliases),
        mlflow=mlflow[0] if mlflow else None,
        mlflow_factor=mlflow[1] if mlflow else 1.0,
        prometheus=prometheus_name(name, unit, "counter"),
        otel=otel or f"runvitals.{name}",
        otel_attributes=otel_attributes or {},
    )  # fmt: skip


def rate(
    key: str, unit: str, chart: str, *, of: str, text: str, factor: float = 1.0, scope: Scope = "host"
) -> Metric:
    """How fast a counter grows: derived where it is read, so other systems get the counter only."""
    return Metric(
        key, unit, "rate", scope, "mean", chart, text, f"increase of `{of}` ÷ seconds", of=of, factor=factor
    )


def prometheus_name(stem: str, unit: str, kind: Kind) -> str:
    """The full Prometheus name of a dotted stem.

    >>> prometheus_name("disk.read", "MiB", "counter")
    'runvitals_disk_read_bytes_total'
    """
    if not stem:
        return ""
    parts = [
        "runvitals",
        stem.replace(".", "_"),
        UNITS[unit].prometheus,
        "total" if kind == "counter" else "",
    ]
    return "_".join(part for part in parts if part)


def placeholders(template: str) -> tuple[str, ...]:
    """The names in braces, in order.

    >>> placeholders("network.ib.{dev}.{port}.errors")
    ('dev', 'port')
    """
    return tuple(_PLACEHOLDER.findall(template))


def pattern(template: str) -> re.Pattern[str]:
    """Compile a key template into a regular expression that matches whole concrete keys."""
    parts: list[str] = []
    position = 0
    for found in _PLACEHOLDER.finditer(template):
        parts.append(re.escape(template[position : found.start()]))
        name = found.group(1)
        parts.append(f"(?P<{name}>" + ("[0-9]+" if name in _INDEXES else ".+?") + ")")
        position = found.end()
    parts.append(re.escape(template[position:]))
    return re.compile("".join(parts), re.DOTALL)


def literal_length(template: str) -> int:
    """How many characters of a template are fixed: the more, the more specific the template is."""
    return len(_PLACEHOLDER.sub("", template))
