"""Rows about AWS Trainium and Inferentia, from neuron-monitor."""

from runvitals.catalog.metric import Metric, gauge

_HOST_USES = {
    "application_memory": "everything that has no heading of its own",
    "constants": "constants",
    "dma_buffers": "buffers for direct memory access",
    "tensors": "tensors",
}
_CORE_USES = {
    "constants": "constants of training, weights of inference",
    "model_code": "the model's code",
    "model_shared_scratchpad": "the scratchpad that models share",
    "runtime_memory": "the runtime itself",
    "tensors": "tensors",
}


def _host(use: str, what: str) -> Metric:
    return gauge(
        f"trn.host_total_memory_usage.{use}", "bytes", "Neuron host memory", name=f"trn.host.memory.{use}",
        merge="max", aliases=[f"trn.host_memory_usage.{use}"],
        text=f"Host memory the Neuron runtime uses for {what}.",
        source=f"neuron-monitor: memory_used, usage_breakdown.host.{use}",
    )  # fmt: skip


def _core(use: str, what: str) -> Metric:
    return gauge(
        f"trn.{{core}}.neuroncore_memory_usage.{use}", "bytes", "NeuronCore memory",
        name=f"trn.core.memory.{use}", scope="device", merge="max",
        text=f"Device memory of one NeuronCore used for {what}.",
        source=f"neuron-monitor: memory_used, usage_breakdown.neuroncore_memory_usage.<core>.{use}",
    )  # fmt: skip


# fmt: off
METRICS = (
    gauge("trn.{core}.neuroncore_utilization", "%", "NeuronCore utilization", name="trn.core.utilization",
          scope="device",
          text="Share of the time in which one NeuronCore worked.",
          source="neuron-monitor: neuroncore_counters, neuroncores_in_use.<core>.neuroncore_utilization"),
    gauge("trn.neuron_device_total_memory_usage", "bytes", "Neuron device memory", name="trn.device.memory",
          merge="max",
          text="Device memory used on all Neuron devices.",
          source="neuron-monitor: memory_used, neuron_runtime_used_bytes.neuron_device"),
    gauge("trn.host_total_memory_usage", "bytes", "Neuron host memory", name="trn.host.memory", merge="max",
          text="Host memory used by the Neuron runtime.",
          source="neuron-monitor: memory_used, neuron_runtime_used_bytes.host"),
    *(_host(use, what) for use, what in _HOST_USES.items()),
    *(_core(use, what) for use, what in _CORE_USES.items()),
)
# fmt: on
