"""The runtime's metrics and their keys."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runvitals.monitoring.collectors.tpu.metric_response import LabelValue, TpuDistribution, TpuReading

MEMORY_USED = "tpu.runtime.hbm.memory.usage.bytes"
MEMORY_TOTAL = "tpu.runtime.hbm.memory.total.bytes"
DUTY_CYCLE = "tpu.runtime.tensorcore.dutycycle.percent"
QUEUE = "hlo.queue.size.gauge"

# Metric -> last part of `tpu.{i}.…`.
OF_DEVICES = {
    MEMORY_USED: "memoryUsageBytes",
    MEMORY_TOTAL: "hbmCapacityTotal",
    DUTY_CYCLE: "dutyCycle",
    "tpu.runtime.hbm.utilization.percent": "runtimeHbmUtilization",
    "tpu.runtime.tensorcore.idle_duration.seconds": "tensorcoreIdleDuration",
}
# Metric -> key and unit of `tpu.{key}.{label}.p50{unit}`.
DISTRIBUTIONS = {
    "megascale.dcn_transfer_latencies.microsecond.cumulative.distribution": ("bufferTransferLatency", "Us"),
    "megascale.dcn_inbound_transfer_latencies.microsecond.cumulative.distribution": (
        "inboundBufferTransferLatency", "Us"),
    "megascale.host_to_device_transfer_latencies.microsecond.cumulative.distribution": (
        "hostToDeviceTransferLatency", "Us"),
    "megascale.device_to_host_transfer_latencies.microsecond.cumulative.distribution": (
        "deviceToHostTransferLatency", "Us"),
    "megascale.collective_end_to_end_latencies.microsecond.cumulative.distribution": (
        "collectiveE2ELatency", "Us"),
    "megascale.mxla_compute_latencies.microsecond.cumulative.distribution": ("hostComputeLatency", "Us"),
    "megascale.grpc_tcp_min_rtt.microsecond.cumulative.distribution": ("grpcTcpMinRtt", "Us"),
    "megascale.grpc_tcp_delivery_rate.Mbps.cumulative.distribution": ("grpcTcpDeliveryRate", "Mbps"),
    "hlo.execution.timing.distribution.microseconds": ("hloExecTiming", "Us"),
}  # fmt: skip
PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p999": 99.9}


def label(labels: Mapping[str, LabelValue]) -> str:
    """Return the part of a key for a reading's labels.

    A buffer's size, a core and its index, or the first label; "" if there are none.

    Example:
        >>> label({"buffer-size": "1MB+"}), label({"core_type": "TensorCore", "device_ordinal": "3"})
        ('1mb', 'tensorcore_3')
    """
    for name in ("buffer-size", "buffer_size"):
        if name in labels:
            return _plain(str(labels[name]))
    ordinal = labels.get("device_ordinal", labels.get("device-id"))
    if ordinal is not None:
        core = labels.get("core_type", labels.get("core-type", "device"))
        return f"{_plain(str(core))}_{_plain(str(ordinal))}"
    return next((_plain(str(value)) for value in labels.values()), "")


def distributions(readings: Sequence[TpuReading]) -> dict[str, TpuDistribution]:
    """Distributions by label; those with the same label are added."""
    by_key: dict[str, TpuDistribution] = {}
    for reading in readings:
        distribution = reading.distribution
        if distribution is None or not distribution.count:
            continue
        name = label(reading.labels)
        before = by_key.get(name)
        both = distribution if before is None else before.plus(distribution)
        if both is not None:  # if the buckets differ, keep the first
            by_key[name] = both
    return by_key


def write(gauges: dict[str, float], key: str, unit: str, name: str, distribution: TpuDistribution) -> None:
    """Write the mean and the percentiles of a distribution."""
    prefix = f"tpu.{key}.{name}." if name else f"tpu.{key}."
    gauges[f"{prefix}mean{unit}"] = distribution.mean
    for percentile, percent in PERCENTILES.items():
        value = distribution.percentile(percent)
        if value is not None:
            gauges[f"{prefix}{percentile}{unit}"] = value


def _plain(text: str) -> str:
    """Lower-case letters and digits; everything else becomes an underscore."""
    letters = [letter if letter.isascii() and letter.isalnum() else " " for letter in text.lower()]
    return "_".join("".join(letters).split())
