"""Rows that only AMD GPUs have."""

from runvitals.catalog.metric import gauge

# fmt: off
METRICS = (
    gauge("gpu.{i}.memoryOverDrive", "%", "GPU overdrive", name="gpu.memory.overdrive", scope="device",
          merge="last",
          text="How far the memory clock is raised above its default.",
          source="rocm-smi memory overdrive level"),
    gauge("gpu.{i}.gttAllocatedBytes", "bytes", "GPU memory in host memory", name="gpu.gtt.used",
          scope="device", merge="max",
          text="Host memory that the GPU uses as its own; on an APU this is where the data lies.",
          source="mem_info_gtt_used"),
)
# fmt: on
