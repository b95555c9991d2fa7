"""The definition of a metric, and three helpers to declare one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from runvitals.metrics.unit import UNITS

Kind = Literal["gauge", "counter", "rate"]
Scope = Literal["host", "cgroup", "process", "device", "monitor"]
Merge = Literal["mean", "max", "min", "sum", "last"]

# These placeholders stand for numbers. Any other stands for a name, which may hold dots and slashes
# (`disk./data/v1.5.usagePercent`), so the literal tail of the template has to anchor it.
_INDEXES = frozenset({"i", "core", "port", "n", "gi", "ci"})
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the catalogue.

    Args:
        key: canonical key or template, e.g. ``"gpu.{i}.powerWatts"``.
        unit: one of `runvitals.metrics.unit.UNITS`: ``"%"``, ``"MiB"``, ``"bytes"``, ``"W"``, ``"1"`` …
        kind: ``gauge`` (a level), ``counter`` (a sum since the run's first sample, falls only on a reset),
            ``rate`` (never stored: derived from the counter named in ``of`` where it is read).
        scope: what the number is about.
        merge: how several samples of one time bucket become one number.
        chart: heading of the chart it is drawn in; all that a chart draws has one unit. A counter that has a
            rate is drawn by its rate.
        text: one sentence for a person.
        source: where the number comes from (file, call, formula).
        name: dotted stem without unit, from which the Prometheus and OpenTelemetry names follow; "" for
            rates, which other systems derive from the counter, and for what already has a name of its own.
        aliases: other spellings that mean the same key and are accepted wherever a key is read.
        of: for ``rate``: its counter's template; ``factor`` turns the counter's unit per second into
            ``unit``.
        mlflow: MLflow's name without ``system/``, or None; ``mlflow_factor`` turns our unit into MLflow's.
        convention: name in OpenTelemetry's semantic conventions, or None.
        attributes: what tells rows of one such name apart; values may hold the key's placeholders.

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

    @property
    def prometheus(self) -> str:
        """Full Prometheus name, in the base unit of `unit`; "" for a row without a name."""
        if not self.name:
            return ""
        base, total = UNITS[self.unit].prometheus, "total" if self.kind == "counter" else ""
        return "_".join(part for part in ("runvitals", self.name.replace(".", "_"), base, total) if part)

    @property
    def otel(self) -> str:
        """OpenTelemetry name: that of the semantic conventions, else ``runvitals.*``; "" without a name."""
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
) -> Metric:
    """A level. ``mlflow`` is MLflow's name and the factor to its unit, ``otel`` the convention's name."""
    mlflow_name, mlflow_factor = mlflow or (None, 1.0)
    return Metric(
        key, unit, "gauge", scope, merge, chart, text, source, name, tuple(aliases), None, 1.0,
        mlflow_name, mlflow_factor, otel, attributes or {},
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
    """A running total; of several samples the last one counts."""
    mlflow_name, mlflow_factor = mlflow or (None, 1.0)
    return Metric(
        key, unit, "counter", scope, "last", chart, text, source, name, tuple(aliases), None, 1.0,
        mlflow_name, mlflow_factor, otel, attributes or {},
    )  # fmt: skip


def rate(
    key: str, unit: str, chart: str, *, of: str, text: str, factor: float = 1.0, scope: Scope = "host"
) -> Metric:
    """How fast a counter grows: derived where it is read, so other systems get the counter only."""
    source = f"increase of `{of}` ÷ seconds"
    return Metric(key, unit, "rate", scope, "mean", chart, text, source, of=of, factor=factor)


def placeholders(template: str) -> tuple[str, ...]:
    """The names in braces, in order.

    >>> placeholders("network.ib.{dev}.{port}.errors")
    ('dev', 'port')
    """
    return tuple(_PLACEHOLDER.findall(template))


@cache
def pattern(template: str) -> re.Pattern[str]:
    """A key template as an expression that matches whole concrete keys, compiled when first asked for."""
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
