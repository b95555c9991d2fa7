"""Metrics of Google TPUs, from the runtime's metric service.

Metrics that libtpu provides only inside the training process appear in imported runs.
"""

from runvitals.model.metrics.metric import Metric, gauge

# fmt: off
_DEVICE = (
    gauge("tpu.{i}.dutyCycle", "%", "TPU duty cycle", name="tpu.duty_cycle", scope="device",
          text="Share of the time in which the chip's TensorCores were busy; the same for all its devices.",
          source="tpu.runtime.tensorcore.dutycycle.percent"),
    gauge("tpu.{i}.tensorcoreUtilization", "%", "TPU TensorCore utilization",
          name="tpu.tensorcore.utilization", scope="device",
          text="Achieved share of the TensorCore's peak operations; in imported runs.",
          source="libtpu, in its own process: tensorcore_util"),
    gauge("tpu.{i}.tensorcoreIdleDuration", "s", "TPU idle time", name="tpu.tensorcore.idle", scope="device",
          merge="max",
          text="Time since the TensorCore was last busy.",
          source="tpu.runtime.tensorcore.idle_duration.seconds"),
    gauge("tpu.{i}.memoryUsage", "%", "TPU memory", name="tpu.memory.utilization", scope="device",
          merge="max", aliases=["tpu.{i}.hbmMemoryUsage"],
          text="Used share of the chip's memory.", source="memoryUsageBytes ÷ hbmCapacityTotal"),
    gauge("tpu.{i}.memoryUsageBytes", "bytes", "TPU memory used", name="tpu.memory.used", scope="device",
          merge="max", share="tpu.{i}.memoryUsage", aliases=["tpu.{i}.hbmCapacityUsage"],
          text="Used memory of the chip.", source="tpu.runtime.hbm.memory.usage.bytes"),
    gauge("tpu.{i}.hbmCapacityTotal", "bytes", "TPU memory used", name="tpu.memory.size", scope="device",
          merge="last",
          text="Total memory of the chip.", source="tpu.runtime.hbm.memory.total.bytes"),
    gauge("tpu.{i}.runtimeHbmUtilization", "%", "TPU memory bandwidth",
          name="tpu.memory.bandwidth_utilization", scope="device",
          text="Used share of the memory's bandwidth.", source="tpu.runtime.hbm.utilization.percent"),
    gauge("tpu.{i}.iciLinkHealth", "1", "TPU link health", name="tpu.ici.health", scope="device",
          merge="max", most=10.0,
          text="Health of the links between chips: 0 is good, 10 is unusable; in imported runs.",
          source="libtpu, in its own process: ici_link_health"),
    gauge("tpu.{i}.throttleScore", "1", "TPU throttling", name="tpu.throttle_score", scope="device",
          merge="max", most=10.0,
          text="Throttling of the chip: 0 = none, 1 to 10 = by 10 to 100 %; in imported runs.",
          source="libtpu, in its own process: tpu_throttle_score"),
    gauge("tpu", "%", "TPU utilization (older runs)", name="tpu.matrix_unit.utilization",
          text="Utilization of the matrix units, in runs of older W&B clients.",
          source="TensorFlow's profiler: Utilization of TPU Matrix Units"),
    gauge("tpu.hloQueueSize.{label}", "1", "TPU queue", name="tpu.hlo.queue",
          text="Programs waiting to run on a core.", source="hlo.queue.size.gauge"),
)


def _distribution(key: str, name: str, what: str, source: str, unit: str = "µs") -> Metric:
    """Mean and percentiles of a distribution: the last segment of the key says which, and its unit."""
    suffix = {"µs": "Us", "Mb/s": "Mbps"}[unit]
    return gauge(
        f"tpu.{key}.{{label}}{suffix}", unit, f"TPU {what}", name=f"tpu.{name}",
        text=f"Distribution of the {what}: the measured value, then mean, p50, p90, p95, p99 or p999.",
        source=source,
    )


_MEGASCALE = "megascale.{}.cumulative.distribution, since the last reading"
_DISTRIBUTIONS = (
    _distribution("bufferTransferLatency", "buffer_transfer", "buffer transfer latency",
                  _MEGASCALE.format("dcn_transfer_latencies.microsecond")),
    _distribution("inboundBufferTransferLatency", "inbound_buffer_transfer",
                  "inbound buffer transfer latency",
                  _MEGASCALE.format("dcn_inbound_transfer_latencies.microsecond")),
    _distribution("hostToDeviceTransferLatency", "host_to_device_transfer",
                  "host to device transfer latency",
                  _MEGASCALE.format("host_to_device_transfer_latencies.microsecond")),
    _distribution("deviceToHostTransferLatency", "device_to_host_transfer",
                  "device to host transfer latency",
                  _MEGASCALE.format("device_to_host_transfer_latencies.microsecond")),
    _distribution("collectiveE2ELatency", "collective", "collective operation latency",
                  _MEGASCALE.format("collective_end_to_end_latencies.microsecond")),
    _distribution("hostComputeLatency", "host_compute", "host compute latency",
                  _MEGASCALE.format("mxla_compute_latencies.microsecond")),
    _distribution("hloExecTiming", "hlo.execution", "program execution time",
                  "hlo.execution.timing.distribution.microseconds"),
    _distribution("grpcTcpMinRtt", "grpc.round_trip", "TCP round trip time",
                  _MEGASCALE.format("grpc_tcp_min_rtt.microsecond")),
    _distribution("grpcTcpDeliveryRate", "grpc.delivery", "TCP delivery rate",
                  _MEGASCALE.format("grpc_tcp_delivery_rate.Mbps"), unit="Mb/s"),
)
# fmt: on

METRICS = (*_DEVICE, *_DISTRIBUTIONS)
