"""Metrics of AWS Trainium and Inferentia, from neuron-monitor and the driver's files under /sys."""

from runvitals.model.metrics.metric import Metric, counter, gauge, rate

_HOST_USES = {
    "application_memory": "everything else",
    "constants": "constants",
    "dma_buffers": "buffers for direct memory access",
    "tensors": "tensors",
}
_CORE_USES = {
    "constants": "constants of training, weights of inference",
    "model_code": "the model's code",
    "model_shared_scratchpad": "the scratchpad shared by models",
    "runtime_memory": "the runtime itself",
    "tensors": "tensors",
}
# Categories that only the driver reports; neuron-monitor includes them in others.
_DRIVER_USES = {
    "collectives": "collective operations",
    "dma_rings": "rings of direct memory access",
    "driver_memory": "the driver",
    "nonshared_scratchpad": "scratchpads not shared by models",
    "notifications": "notifications",
    "uncategorized": "uncategorized data",
}
_DRIVER_HOST_USES = ("dma_rings", "driver_memory", "notifications", "uncategorized")
_ECC = {
    "mem_ecc_corrected": "in the device's memory that were corrected",
    "mem_ecc_uncorrected": "in the device's memory that could not be corrected",
    "mem_ecc_repairable_uncorrected": "in the device's memory that were not corrected but can be repaired",
    "sram_ecc_corrected": "in the device's SRAM that were corrected",
    "sram_ecc_uncorrected": "in the device's SRAM that could not be corrected",
}
_SYSTEM_MEMORY = {
    "memory_total_bytes": "The instance's memory.",
    "memory_used_bytes": "Used memory of the instance.",
    "swap_total_bytes": "The instance's swap space.",
    "swap_used_bytes": "Used swap space of the instance.",
}


def _host(use: str, what: str, source: str) -> Metric:
    return gauge(
        f"trn.host_total_memory_usage.{use}", "bytes", "Neuron host memory", name=f"trn.host.memory.{use}",
        merge="max", aliases=[f"trn.host_memory_usage.{use}"],
        text=f"Host memory the Neuron runtime uses for {what}.", source=source,
    )  # fmt: skip


def _core(use: str, what: str, source: str) -> Metric:
    return gauge(
        f"trn.{{core}}.neuroncore_memory_usage.{use}", "bytes", "NeuronCore memory",
        name=f"trn.core.memory.{use}", scope="device", merge="max",
        text=f"Device memory of one NeuronCore used for {what}.", source=source,
    )  # fmt: skip


def _ecc(kind: str, what: str) -> Metric:
    return counter(
        f"trn.device.{{i}}.{kind}", "1", "Neuron memory errors", name=f"trn.device.{kind}", scope="device",
        text=f"Errors {what}.",
        source=f"neuron_device/neuron*/stats/hardware/{kind}, else neuron-monitor: neuron_hw_counters",
    )  # fmt: skip


def _latency(kind: str, what: str) -> Metric:
    return gauge(
        f"trn.{kind}_latency.{{percentile}}", "s", "Neuron latency", name=f"trn.latency.{kind}",
        merge="max",
        text=f"Time that one execution takes {what}: p0, p1, p25, p50, p75, p99, p100; of the "
        "slowest process.",
        source=f"neuron-monitor: execution_stats, latency_stats.{kind}_latency",
    )  # fmt: skip


# fmt: off
METRICS = (
    gauge("trn.{core}.neuroncore_utilization", "%", "NeuronCore utilization", name="trn.core.utilization",
          scope="device",
          text="Share of the time in which one NeuronCore was busy.",
          source="neuron-monitor: neuroncore_counters, neuroncores_in_use.<core>.neuroncore_utilization"),
    gauge("trn.physical.{core}.neuroncore_utilization", "%", "NeuronCore utilization (physical cores)",
          name="trn.physical.utilization", scope="device",
          text="Share of the time in which a physical core of a logical NeuronCore was busy.",
          source="neuron-monitor: neuroncores_in_use.<core>.v3d"),
    gauge("trn.{core}.flops", "1/s", "NeuronCore operations", name="trn.core.flops", scope="device",
          text="Floating-point operations of one NeuronCore.",
          source="neuron-monitor: neuroncores_in_use.<core>.flops"),
    gauge("trn.{core}.effective_flops", "1/s", "NeuronCore operations", name="trn.core.effective_flops",
          scope="device",
          text="Floating-point operations of one NeuronCore that the model needs.",
          source="neuron-monitor: neuroncores_in_use.<core>.effective_flops"),
    gauge("trn.neuron_device_total_memory_usage", "bytes", "Neuron device memory", name="trn.device.memory",
          merge="max",
          text="Device memory used on all Neuron devices.",
          source="neuron-monitor: memory_used, neuron_runtime_used_bytes.neuron_device"),
    gauge("trn.host_total_memory_usage", "bytes", "Neuron host memory", name="trn.host.memory", merge="max",
          text="Host memory used by the Neuron runtime.",
          source="neuron-monitor: memory_used, neuron_runtime_used_bytes.host"),
    *(_host(use, what, f"neuron-monitor: memory_used, usage_breakdown.host.{use}")
      for use, what in _HOST_USES.items()),
    *(_host(use, _DRIVER_USES[use], f"neuron_device/neuron*/stats/memory_usage/host_mem/{use}")
      for use in _DRIVER_HOST_USES),
    *(_core(use, what, f"neuron-monitor: memory_used, neuroncore_memory_usage.<core>.{use}")
      for use, what in _CORE_USES.items()),
    *(_core(use, what, f"neuron_device/neuron*/neuron_core*/stats/memory_usage/device_mem/{use}")
      for use, what in _DRIVER_USES.items()),
    gauge("trn.process.{core}.neuroncore_utilization", "%", "NeuronCore utilization (run)",
          name="trn.process.core.utilization", scope="process",
          text="Share of the time in which one NeuronCore was busy with the run.",
          source="neuron-monitor: neuroncore_counters of the run's processes"),
    gauge("trn.process.{core}.neuroncore_memory_usage", "bytes", "NeuronCore memory (run)",
          name="trn.process.core.memory", scope="process", merge="max",
          text="Device memory of one NeuronCore used by the run.",
          source="neuron-monitor: neuroncore_memory_usage of the run's processes, summed"),
    gauge("trn.process.neuron_device_total_memory_usage", "bytes", "Neuron device memory",
          name="trn.process.device.memory", scope="process", merge="max",
          text="Device memory used by the run on all Neuron devices.",
          source="neuron-monitor: neuron_runtime_used_bytes.neuron_device of the run's processes"),
    gauge("trn.process.host_total_memory_usage", "bytes", "Neuron host memory",
          name="trn.process.host.memory", scope="process", merge="max",
          text="Host memory used by the Neuron runtime in the run's processes.",
          source="neuron-monitor: neuron_runtime_used_bytes.host of the run's processes"),
    counter("trn.execution_status.{status}", "1", "Neuron executions", name="trn.executions",
            text="Executions by result: completed, completed_with_err, completed_with_num_err, "
            "timed_out, incorrect_input, failed_to_queue.",
            source="neuron-monitor: execution_stats, execution_summary, summed"),
    rate("trn.execution_status.{status}Rate", "1/s", "Neuron executions", of="trn.execution_status.{status}",
         text="Executions per second by result."),
    counter("trn.execution_errors.{kind}", "1", "Neuron execution errors", name="trn.execution_errors",
            text="Execution errors: generic, numerical, transient, model, runtime, hardware.",
            source="neuron-monitor: execution_stats, growth of error_summary"),
    _latency("total", "from the call to its return"),
    _latency("device", "on the device"),
    gauge("trn.runtime_vcpu_usage.{use}", "%", "Neuron CPU", name="trn.runtime.vcpu", most=100_000.0,
          text="CPU utilization of all processes with a Neuron runtime: user and system.",
          source="neuron-monitor: neuron_runtime_vcpu_usage"),
    *(_ecc(kind, what) for kind, what in _ECC.items()),
    gauge("trn.device.{i}.power_utilization", "%", "Neuron power", name="trn.device.power_utilization",
          scope="device",
          text="Power of a Neuron device as a share of its maximum, mean of the last minute.",
          source="neuron_device/neuron*/stats/power/utilization"),
    gauge("trn.vcpu_usage.{use}", "%", "Instance CPU", name="trn.vcpu",
          text="CPU utilization of the instance: user, nice, system, idle, io_wait, irq, soft_irq.",
          source="neuron-monitor, if its configuration includes it: vcpu_usage, average_usage"),
    counter("trn.context_switches", "1", "Instance context switches", name="trn.context_switches",
            text="Context switches of the instance.",
            source="neuron-monitor, if its configuration includes it: vcpu_usage, summed"),
    *(gauge(f"trn.memory_info.{key}", "bytes", "Instance memory", merge="max",
            name=f"trn.instance.{key.removesuffix('_bytes')}",
            text=text, source="neuron-monitor, if its configuration includes it: memory_info")
      for key, text in _SYSTEM_MEMORY.items()),
    counter("trn.malformed_reports", "1", "Neuron monitor", name="trn.malformed_reports", scope="monitor",
            text="Lines of neuron-monitor that were not valid reports.", source="neuron-monitor's output"),
)
# fmt: on
