"""The definition of a metric, and helpers to declare gauges, counters and rates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import inf
from typing import Literal

from runvitals.model.metrics.unit import UNITS

Kind = Literal["gauge", "counter", "rate"]
Scope = Literal["host", "cgroup", "process", "device", "monitor"]
Merge = Literal["mean", "max", "min", "sum", "last"]

# These placeholders match numbers. Others match names, which may contain dots and slashes
# (`disk./data/v1.5.usagePercent`), so the text after the placeholder delimits them.
_INDEXES = frozenset({"i", "core", "port", "n", "gi", "ci"})
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Metric:
    """The definition of a metric.

    Args:
        key: canonical key or template, e.g. ``"gpu.{i}.powerWatts"``.
        unit: one of `runvitals.model.metrics.unit.UNITS`: ``"%"``, ``"MiB"``, ``"bytes"``, ``"W"``, ``"1"`` …
        kind: ``gauge`` (a current value), ``counter`` (a total since the run's first sample, which falls only
            on a reset), ``rate`` (never stored: derived on reading from the counter in ``of``).
        scope: what the value describes.
        merge: how the samples of one time bucket are aggregated.
        chart: title of the chart that shows it. All metrics of a chart have the same unit. A counter with a
            rate is shown as that rate.
        text: description, one sentence.
        source: where the value comes from (file, call, formula).
        name: dotted stem without unit, from which the Prometheus and OpenTelemetry names are derived; "" for
            rates, which other systems derive from the counter, and for metrics that have a name there.
        aliases: alternative keys that are accepted wherever a key is read.
        of: for ``rate``: its counter's template; ``factor`` converts the counter's unit per second to
            ``unit``.
        mlflow: MLflow's name without ``system/``, or None; ``mlflow_factor`` converts our unit to MLflow's.
        convention: name in OpenTelemetry's semantic conventions, or None.
        attributes: distinguish definitions with the same OpenTelemetry name; values may contain the key's
            placeholders.
        least, most: between which a gauge can be; by default what its unit allows. Anything else is a code
            for "no value" or a fault of a sensor, and the monitor leaves it out.
        share: for an amount: the metric that is the same amount as a share of the total. If the share is
            impossible, so is the amount.

    Example:
        >>> row = gauge("memory.usedMB", "MiB", "Memory used", name="memory.used", text="…", source="…")
        >>> row.prometheus, row.otel
        ('runvitals_memory_used_bytes', 'runvitals.memory.used')
    """

    key: str
    unit: str
    kind: Kind
    scope: Scope
    merge: Merge
    chart: str
    text: str
    source: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    of: str | None = None
    factor: float = 1.0
    mlflow: str | None = None
    mlflow_factor: float = 1.0
    convention: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    least: float = -inf
    most: float = inf
    share: str | None = None

    @property
    def prometheus(self) -> str:
        """Full Prometheus name, in the base unit of `unit`; "" without a `name`."""
        if not self.name:
            return ""
        base, total = UNITS[self.unit].prometheus, "total" if self.kind == "counter" else ""
        return "_".join(part for part in ("runvitals", self.name.replace(".", "_"), base, total) if part)

    @property
    def otel(self) -> str:
        """OpenTelemetry name: that of the semantic conventions, else ``runvitals.*``; "" without a `name`."""
        return self.convention or (self.name and f"runvitals.{self.name}")


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
    attributes: Mapping[str, str] | None = None,
    most: float | None = None,
    share: str | None = None,
) -> Metric:
    """Define a gauge.

    ``mlflow`` is MLflow's name and the factor to its unit, ``otel`` the `convention`; ``most`` replaces the
    highest value that the unit allows.
    """
    mlflow_name, mlflow_factor = mlflow or (None, 1.0)
    return Metric(
        key, unit, "gauge", scope, merge, chart, text, source, name, tuple(aliases), None, 1.0,
        mlflow_name, mlflow_factor, otel, attributes or {},
        UNITS[unit].least, UNITS[unit].most if most is None else most, share,
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
    attributes: Mapping[str, str] | None = None,
) -> Metric:
    """Define a counter. Arguments as in `gauge`; samples of a bucket are merged by taking the last."""
    mlflow_name, mlflow_factor = mlflow or (None, 1.0)
    return Metric(
        key, unit, "counter", scope, "last", chart, text, source, name, tuple(aliases), None, 1.0,
        mlflow_name, mlflow_factor, otel, attributes or {},
    )  # fmt: skip


def rate(
    key: str, unit: str, chart: str, *, of: str, text: str, factor: float = 1.0, scope: Scope = "host"
) -> Metric:
    """Define the rate of the counter ``of``. It is derived on reading; other systems get the counter only."""
    source = f"increase of `{of}` ÷ seconds"
    return Metric(key, unit, "rate", scope, "mean", chart, text, source, of=of, factor=factor)


def placeholders(template: str) -> tuple[str, ...]:
    """Return the names of a template's placeholders, in order.

    >>> placeholders("network.ib.{dev}.{port}.errors")
    ('dev', 'port')
    """
    return tuple(_PLACEHOLDER.findall(template))


@cache
def pattern(template: str) -> re.Pattern[str]:
    """Return the regular expression that matches the keys of a template; compiled on first use."""
    parts: list[str] = []
    position = 0
    for match in _PLACEHOLDER.finditer(template):
        parts.append(re.escape(template[position : match.start()]))
        name = match.group(1)
        parts.append(f"(?P<{name}>" + ("[0-9]+" if name in _INDEXES else ".+?") + ")")
        position = match.end()
    parts.append(re.escape(template[position:]))
    return re.compile("".join(parts), re.DOTALL)


def literal_length(template: str) -> int:
    """Return the number of literal characters in a template, a measure of how specific it is."""
    return len(_PLACEHOLDER.sub("", template))
