"""Metrics of AMD GPUs only."""

from runvitals.model.metrics.metric import gauge

# fmt: off
METRICS = (
    gauge("gpu.{i}.edgeTemp", "°C", "GPU edge temperature", name="gpu.temperature_edge", scope="device",
          merge="max",
          text="Temperature at the edge of the GPU's chip.",
          source="hwmon sensor edge, or AMD's programs"),
    gauge("gpu.{i}.junctionTemp", "°C", "GPU junction temperature",
          name="gpu.temperature_junction", scope="device",
          merge="max",
          text="Temperature of the hottest spot of the GPU's chip (junction).",
          source="hwmon sensor junction, or AMD's programs"),
    gauge("gpu.{i}.ubbPowerWatts", "W", "GPU baseboard power", name="gpu.baseboard.power", scope="device",
          most=100_000.0,
          text="Electrical power of the baseboard (UBB) of this GPU and its neighbours.",
          source="amd-smi and amdsmi: ubb_power"),
    gauge("gpu.{i}.memoryOverDrive", "%", "GPU overdrive", name="gpu.memory.overdrive", scope="device",
          merge="last",
          text="Overclocking of the memory clock above its default.",
          source="rocm-smi memory overdrive level"),
    gauge("gpu.{i}.gttAllocatedBytes", "bytes", "GPU memory in host memory", name="gpu.gtt.used",
          scope="device", share="gpu.{i}.gttAllocated", merge="max",
          text="Host memory used by the GPU (GTT); on an APU this holds its data.",
          source="mem_info_gtt_used"),
    gauge("gpu.{i}.gttAllocated", "%", "GPU memory in host memory, share", name="gpu.gtt.utilization",
          scope="device", merge="max",
          text="Used share of the host memory that the GPU may use (GTT).",
          source="mem_info_gtt_used ÷ mem_info_gtt_total"),
    gauge("gpu.{i}.busySuspect", "1", "GPU utilization in doubt", name="gpu.utilization_suspect",
          scope="device", merge="max", most=1.0,
          text="Whether the GPU says it is fully busy and takes less than a quarter of its power limit (1): "
          "some firmware counts an idle queue as work.",
          source="gpu ≥ 99.5 % and powerPercent < 25 %"),
)
# fmt: on
