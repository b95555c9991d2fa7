"""Metrics of NVIDIA GPUs only: links, profiling, throttling, and metrics of the DCGM exporter."""

from dataclasses import replace

from runvitals.model.metrics.metric import Metric, counter, gauge, rate

# fmt: off
_LINKS = (
    gauge("gpu.{i}.pcieTxBytes", "bytes/s", "GPU PCIe", name="gpu.pcie.transmit", scope="device",
          text="PCI Express throughput from the GPU to the host.",
          source="field PCIE_COUNT_TX_BYTES ÷ seconds, GPM, or DCGM 1009"),
    gauge("gpu.{i}.pcieRxBytes", "bytes/s", "GPU PCIe", name="gpu.pcie.receive", scope="device",
          text="PCI Express throughput from the host to the GPU.",
          source="field PCIE_COUNT_RX_BYTES ÷ seconds, GPM, or DCGM 1010"),
    gauge("gpu.{i}.nvlinkTxBytes", "bytes/s", "GPU NVLink", name="gpu.nvlink.transmit", scope="device",
          text="Send throughput of all NVLinks of the GPU.",
          source="NVLink throughput fields ÷ seconds, GPM, or DCGM 1011"),
    gauge("gpu.{i}.nvlinkRxBytes", "bytes/s", "GPU NVLink", name="gpu.nvlink.receive", scope="device",
          text="Receive throughput of all NVLinks of the GPU.",
          source="NVLink throughput fields ÷ seconds, GPM, or DCGM 1012"),
    gauge("gpu.{i}.pcieLinkGen", "1", "GPU PCIe generation", name="gpu.pcie.generation", scope="device",
          merge="min", most=20.0,
          text="Current generation of the PCI Express link.",
          source="nvmlDeviceGetCurrPcieLinkGeneration"),
    gauge("gpu.{i}.maxPcieLinkGen", "1", "GPU PCIe generation", name="gpu.pcie.generation_max",
          scope="device", merge="last", most=20.0,
          text="Highest generation of the PCI Express link.",
          source="nvmlDeviceGetMaxPcieLinkGeneration"),
    gauge("gpu.{i}.pcieLinkWidth", "1", "GPU PCIe width", name="gpu.pcie.lanes", scope="device",
          merge="min", most=64.0,
          text="Current number of lanes of the PCI Express link.", source="nvmlDeviceGetCurrPcieLinkWidth"),
    gauge("gpu.{i}.maxPcieLinkWidth", "1", "GPU PCIe width", name="gpu.pcie.lanes_max", scope="device",
          merge="last", most=64.0,
          text="Highest number of lanes of the PCI Express link.", source="nvmlDeviceGetMaxPcieLinkWidth"),
    gauge("gpu.{i}.pcieLinkSpeed", "bit/s", "GPU PCIe speed", name="gpu.pcie.speed", scope="device",
          merge="min",
          text="Speed of one lane of the PCI Express link.", source="nvmlDeviceGetPcieSpeed"),
    counter("gpu.{i}.pcieReplays", "1", "GPU PCIe replays", name="gpu.pcie.replays", scope="device",
            text="Packets retransmitted over PCI Express; a growing count indicates a bad link.",
            source="nvmlDeviceGetPcieReplayCounter"),
    counter("gpu.{i}.nvlinkBytes", "bytes", "GPU NVLink, both ways", name="gpu.nvlink.transferred",
            scope="device",
            text="Data sent and received over all NVLinks of the GPU.",
            source="DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL × 1024"),
    rate("gpu.{i}.nvlinkMBps", "MiB/s", "GPU NVLink, both ways", of="gpu.{i}.nvlinkBytes", factor=2.0**-20,
         scope="device", text="Send and receive throughput of all NVLinks of the GPU."),
    *(
        counter(f"gpu.{{i}}.nvlink{kind}Errors", "1", "GPU NVLink errors",
                name=f"gpu.nvlink.errors_{name}", scope="device", text=text,
                source=f"DCGM_FI_DEV_NVLINK_{name.upper()}_ERROR_COUNT_TOTAL")
        for kind, name, text in (
            ("CrcFlit", "crc_flit", "Flow-control units with a wrong checksum on the GPU's NVLinks."),
            ("CrcData", "crc_data", "Data with a wrong checksum on the GPU's NVLinks."),
            ("Replay", "replay", "Packets sent again over the GPU's NVLinks: a bad link."),
            ("Recovery", "recovery", "Times a NVLink of the GPU had to be set up again after errors."),
        )
    ),
)


def _activity(key: str, name: str, dcgm_field: int, text: str) -> Metric:
    """Return a profiling metric, a share of all cycles. DCGM reports ratios from 0 to 1."""
    return gauge(
        f"gpu.{{i}}.{key}", "%", "GPU engine activity", name=f"gpu.{name}", scope="device", text=text,
        source=f"GPM of Hopper and newer, else DCGM field {dcgm_field} × 100",
    )


_PROFILING = (
    _activity("smActive", "sm.active", 1002,
              "Share of cycles in which a multiprocessor had work, mean over all."),
    _activity("graphicsActive", "engine.active", 1001,
              "Share of the time in which the compute and graphics engine was busy."),
    _activity("smOccupancy", "sm.occupancy", 1003, "Resident warps as a share of those that would fit."),
    _activity("pipeTensorActive", "pipe.tensor.active", 1004,
              "Share of cycles in which the tensor cores worked."),
    _activity("dramActive", "dram.active", 1005,
              "Share of cycles in which device memory sent or received data."),
    _activity("pipeFp64Active", "pipe.fp64.active", 1006, "Share of cycles in which the FP64 units worked."),
    _activity("pipeFp32Active", "pipe.fp32.active", 1007, "Share of cycles in which the FP32 units worked."),
    _activity("pipeFp16Active", "pipe.fp16.active", 1008, "Share of cycles in which the FP16 units worked."),
    _activity("pipeTensorHmmaActive", "pipe.tensor_hmma.active", 1014,
              "Share of cycles in which the tensor cores worked on half precision."),
)

_THROTTLING = (
    counter("gpu.{i}.throttle.{reason}Seconds", "s", "GPU throttling", name="gpu.throttle", scope="device",
            text="Time during which the clocks were throttled for one reason (power cap, heat, brake …).",
            source="fields 74, 76, 77, 79, 269–271, or DCGM's violations, ÷ 10⁹; reasons not counted: the "
            "time their bit was seen"),
    rate("gpu.{i}.throttle.{reason}Percent", "%", "GPU throttling", of="gpu.{i}.throttle.{reason}Seconds",
         factor=100.0, scope="device",
         text="Share of the time in which the clocks were throttled for one reason."),
)

_HEALTH = (
    gauge("gpu.{i}.remappedRowsCorrectable", "1", "GPU remapped memory rows",
          name="gpu.memory.rows_remapped_correctable", scope="device", merge="max", most=1e6,
          text="Memory rows replaced by spare ones after corrected errors.",
          source="field REMAPPED_COR, 142"),
    gauge("gpu.{i}.remappedRowsUncorrectable", "1", "GPU remapped memory rows",
          name="gpu.memory.rows_remapped_uncorrectable", scope="device", merge="max", most=1e6,
          text="Memory rows replaced by spare ones after uncorrected errors.",
          source="field REMAPPED_UNC, 143"),
    gauge("gpu.{i}.remapPending", "1", "GPU remapped memory rows", name="gpu.memory.remap_pending",
          scope="device", merge="max", most=1.0,
          text="Whether a memory row is pending replacement (1), which needs a reset of the GPU.",
          source="field REMAPPED_PENDING, 144"),
    gauge("gpu.{i}.remapFailed", "1", "GPU remapped memory rows", name="gpu.memory.remap_failed",
          scope="device", merge="max", most=1.0,
          text="Whether a memory row could not be replaced (1): the GPU should be exchanged.",
          source="field REMAPPED_FAILURE, 145"),
    gauge("gpu.{i}.recoveryAction", "1", "GPU recovery action", name="gpu.recovery_action", scope="device",
          merge="max",
          text="What the driver says must be done about the GPU: 0 nothing, 1 reset it, 2 reboot the host, "
               "3 drain peer-to-peer traffic, 4 drain all work and reset it.",
          source="field GET_GPU_RECOVERY_ACTION, 230; nvidia-smi: gpu_recovery_action; "
                 "DCGM_FI_DEV_GPU_RECOVERY_ACTION"),
    gauge("gpu.{i}.otherMemoryBytes", "bytes", "GPU memory of other processes",
          name="gpu.memory.used_by_others", scope="device", merge="max",
          text="Memory of the GPU that is used by processes outside of the run.",
          source="nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses"),
    gauge("gpu.{i}.criticalErrors", "1", "GPU critical errors", name="gpu.errors.critical", scope="device",
          merge="max", most=1e6,
          text="Errors of the GPU that the driver has reported since the monitor started (Xid and other "
               "events, a lost GPU), without those that programs cause. Absent before the first.",
          source="nvmlEventSetWait_v2; dcgm-exporter: DCGM_FI_DEV_XID_ERRORS"),
)


def _of_mig_instance(row: Metric) -> Metric:
    """Return the same metric of a MIG instance."""
    return replace(
        row,
        key=row.key.replace("gpu.{i}.", "gpu.{i}.mig.{gi}.{ci}.", 1),
        share=row.share and row.share.replace("gpu.{i}.", "gpu.{i}.mig.{gi}.{ci}.", 1),
        chart=f"{row.chart}, slices",
        text=f"{row.text} For one MIG slice: GPU instance gi, compute instance ci.",
        name=row.name.replace("gpu.", "gpu.mig.", 1),
    )


_MIG = (
    _of_mig_instance(
        gauge("gpu.{i}.memoryAllocated", "%", "GPU memory", name="gpu.memory.utilization", scope="device",
              merge="max", text="Used share of the memory.", source="nvmlDeviceGetMemoryInfo of the slice")),
    _of_mig_instance(
        gauge("gpu.{i}.memoryAllocatedBytes", "bytes", "GPU memory used", name="gpu.memory.used",
              scope="device", merge="max", share="gpu.{i}.memoryAllocated", text="Used memory.",
              source="nvmlDeviceGetMemoryInfo of the slice, or DCGM_FI_DEV_FB_USED")),
    *(_of_mig_instance(row) for row in _PROFILING),
    _of_mig_instance(
        gauge("gpu.{i}.gpu", "%", "GPU utilization", name="gpu.utilization", scope="device",
              text="Share of the time in which a kernel ran.", source="DCGM_FI_DEV_GPU_UTIL")),
    _of_mig_instance(
        gauge("gpu.{i}.memory", "%", "GPU memory activity", name="gpu.memory.activity", scope="device",
              text="Share of the time in which memory was read or written.",
              source="DCGM_FI_DEV_MEM_COPY_UTIL")),
    _of_mig_instance(
        gauge("gpu.{i}.encoderUtilization", "%", "GPU video engines", name="gpu.encoder.utilization",
              scope="device", text="Share of the time in which the video encoder was busy.",
              source="DCGM_FI_DEV_ENC_UTIL")),
    _of_mig_instance(
        gauge("gpu.{i}.decoderUtilization", "%", "GPU video engines", name="gpu.decoder.utilization",
              scope="device", text="Share of the time in which the video decoder was busy.",
              source="DCGM_FI_DEV_DEC_UTIL")),
    _of_mig_instance(
        counter("gpu.{i}.correctedMemoryErrors", "1", "GPU memory errors", name="gpu.memory.errors_corrected",
                scope="device", text="Memory errors that could be corrected.",
                source="DCGM_FI_DEV_ECC_SBE_VOL_DEV")),
    _of_mig_instance(
        counter("gpu.{i}.unCorrectedMemoryErrors", "1", "GPU memory errors",
                name="gpu.memory.errors_uncorrected", scope="device",
                text="Memory errors that could not be corrected.", source="DCGM_FI_DEV_ECC_DBE_VOL_DEV")),
)

_DCGM_EXPORTER = (
    gauge("gpu.{i}.memoryUsed", "MiB", "GPU memory, DCGM", name="gpu.dcgm.memory.used", scope="device",
          merge="max",
          text="Used memory of the GPU.", source="DCGM_FI_DEV_FB_USED"),
    gauge("gpu.{i}.memoryFree", "MiB", "GPU memory, DCGM", name="gpu.dcgm.memory.free", scope="device",
          merge="min",
          text="Free memory of the GPU.", source="DCGM_FI_DEV_FB_FREE"),
    gauge("gpu.{i}.memoryTotal", "MiB", "GPU memory, DCGM", name="gpu.dcgm.memory.size", scope="device",
          merge="last",
          text="Total memory of the GPU.", source="DCGM_FI_DEV_FB_TOTAL"),
    gauge("gpu.{i}.maxOpTemp", "°C", "GPU temperature limits", name="gpu.temperature_limit", scope="device",
          merge="last",
          text="Highest operating temperature of the GPU.", source="DCGM_FI_DEV_GPU_MAX_OP_TEMP"),
    gauge("gpu.{i}.memoryMaxOpTemp", "°C", "GPU temperature limits", name="gpu.memory.temperature_limit",
          scope="device", merge="last",
          text="Highest operating temperature of the GPU's memory.", source="DCGM_FI_DEV_MEM_MAX_OP_TEMP"),
    counter("gpu.{i}.totalEnergyConsumption", "mJ", "GPU energy, DCGM", name="gpu.dcgm.energy",
            scope="device",
            text="Energy used by the GPU.", source="DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"),
)
# fmt: on

METRICS = (*_LINKS, *_PROFILING, *_THROTTLING, *_HEALTH, *_MIG, *_DCGM_EXPORTER)
