"""Maps keys to OpenTelemetry names: an instrument, attributes, and a factor to its unit.

https://opentelemetry.io/docs/specs/semconv/system/system-metrics/
https://opentelemetry.io/docs/specs/semconv/hardware/
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import unquote

from runvitals.model.metrics import DEFINITIONS
from runvitals.model.metrics.otel import attributes_of
from runvitals.model.metrics.prometheus import Labels, MetricFamily
from runvitals.model.metrics.unit import UNITS
from runvitals.relay.batch import Batch
from runvitals.relay.timeseries.naming import Namer

LOG = MetricFamily("runvitals.log", "gauge", "1", "What the program logged under the name in runvitals.key.")
LOG_STEP = MetricFamily("runvitals.log.step", "gauge", "1", "The step of the newest log() call.")
OTHER = MetricFamily(
    "runvitals.other", "gauge", "1", "A number whose key is in no list of ours: runvitals.key."
)

# Up-down counters in the conventions: amounts that can be summed over hosts and devices.
LEVELS = frozenset(
    {
        "process.memory.usage",
        "process.thread.count",
        "system.memory.usage",
        "system.memory.linux.available",
        "system.paging.usage",
        "system.filesystem.usage",
        "hw.gpu.memory.usage",
    }
)
# Units of counts.
_COUNTED = {
    "process.thread.count": "{thread}",
    "system.disk.operations": "{operation}",
    "system.network.errors": "{error}",
    "system.network.packet.dropped": "{packet}",
    "hw.errors": "{error}",
}


@lru_cache(16_384)
def name_metric(key: str) -> tuple[MetricFamily, Labels, float]:
    """Return the instrument of a key, its attributes, and the factor to its unit.

    Kinds are gauge, counter and level.

    Example:
        >>> name_metric("network.eth0.sent")[0].name, name_metric("network.eth0.sent")[1]
        ('system.network.io', (('network.interface.name', 'eth0'), ('network.io.direction', 'transmit')))
    """
    match = DEFINITIONS.find(key)
    if match is None or not match.metric.name:
        return OTHER, (("runvitals.key", key),), 1.0
    row, unit = match.metric, UNITS[match.metric.unit]
    kind = "level" if row.otel in LEVELS else row.kind
    family = MetricFamily(row.otel, kind, _COUNTED.get(row.otel, unit.otel), row.text)
    return family, tuple(sorted(attributes_of(match).items())), unit.to_base


class OtelNamer(Namer):
    """The instruments of a run's keys. Attributes common to a batch are in the resource."""

    log, log_step = LOG, LOG_STEP
    log_label, endpoint_label = "runvitals.key", "runvitals.endpoint"
    endpoint_prefix = "runvitals.openmetrics."

    def base(self, batch: Batch) -> dict[str, str]:
        """Return no labels: the resource says which run and host a series is of."""
        return {}

    def name_metric(self, key: str) -> tuple[MetricFamily, Labels, float]:
        """Return the instrument of a key, its attributes, and the factor to its unit."""
        return name_metric(key)


def resource(batch: Batch, environ: Mapping[str, str]) -> dict[str, str | int]:
    """Return the resource attributes of a batch.

    Args:
        environ: OTEL_SERVICE_NAME (default: the run's project) and OTEL_RESOURCE_ATTRIBUTES.

    Example:
        >>> resource(batch, {})["service.instance.id"]
        'brave-otter-1/node1'
    """
    run, writer = batch.run, batch.writer
    where = [run.id, writer.host]
    attributes: dict[str, str | int] = {
        "service.name": run.project,
        "host.name": writer.host,
        "runvitals.run.id": run.id,
        "runvitals.run.name": run.name,
        "runvitals.project": run.project,
    }
    if writer.role != "monitor":
        if writer.pid is not None:
            attributes["process.pid"] = writer.pid
        if writer.rank is not None:
            attributes["runvitals.rank"] = writer.rank
        where.append(str(writer.pid if writer.rank is None else writer.rank))
    attributes.update({f"runvitals.label.{name}": text for name, text in writer.labels.items()})
    attributes["service.instance.id"] = "/".join(where)
    for part in environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        name, equals, text = part.partition("=")
        if equals:
            attributes[name.strip()] = unquote(text.strip())
    if environ.get("OTEL_SERVICE_NAME"):
        attributes["service.name"] = environ["OTEL_SERVICE_NAME"]
    return attributes
