"""Between which limits each gauge may be, as the metric definitions say, which the monitor does not load.

`tests/monitoring/monitor/test_ranges.py` compares these tables with them.
"""

from __future__ import annotations

INFINITY = float("inf")

# Least, most, unit, and the names of the gauges: first and last part of the key; `*` is any last part.
# fmt: off
RANGES = (
    (-60.0, 200.0, "°C",
     "cpu.avg_temp, gpu.edgeTemp, gpu.junctionTemp, gpu.maxOpTemp, gpu.memoryMaxOpTemp, "
     "gpu.memoryTemp, gpu.temp, ipu.average board temp (C), ipu.average die temp (C)"),
    (0.0, 1.0, "1", "gpu.busySuspect, gpu.healthy, gpu.powerSuspect, gpu.remapFailed, gpu.remapPending"),
    (0.0, 10.0, "1", "tpu.iciLinkHealth, tpu.throttleScore"),
    (0.0, 20.0, "1", "gpu.maxPcieLinkGen, gpu.pcieLinkGen"),
    (0.0, 64.0, "1", "gpu.maxPcieLinkWidth, gpu.pcieLinkWidth"),
    (0.0, 100.0, "%",
     "cpu.active_percent, cpu.cpu_percent, cpu.ecpu_percent, cpu.iowait, cpu.mean, cpu.ofAllowed, "
     "cpu.pcpu_percent, cpu.pressureAvg10, cpu.steal, cpu.system, cpu.user, disk.inodesPercent, "
     "disk.usagePercent, disk.utilization, gpu.decoderUtilization, gpu.dramActive, "
     "gpu.encoderUtilization, gpu.gpu, gpu.graphicsActive, gpu.gttAllocated, gpu.memory, "
     "gpu.memoryAllocated, gpu.memoryBandwidth, "
     "gpu.memoryOverDrive, gpu.pipeFp16Active, gpu.pipeFp32Active, gpu.pipeFp64Active, "
     "gpu.pipeTensorActive, gpu.pipeTensorHmmaActive, gpu.smActive, gpu.smOccupancy, "
     "host.memory_percent, io.pressureAvg10, io.pressureFullAvg10, ipu.ipu utilisation (%), "
     "ipu.ipu utilisation (session) (%), memory.pressureAvg10, memory.pressureFullAvg10, "
     "memory.used_percent, proc.throttledPercent, swap.used_percent, tpu, tpu.dutyCycle, "
     "tpu.memoryUsage, tpu.runtimeHbmUtilization, tpu.tensorcoreUtilization, "
     "trn.neuroncore_utilization, trn.power_utilization, trn.vcpu_usage.*"),
    (0.0, 100.0, "V", "gpu.voltage"),
    (0.0, 200.0, "%", "fan.percent, gpu.fanSpeed, gpu.powerPercent"),
    (0.0, 1000.0, "%", "memory_percent"),
    (0.0, 1000.0, "GT/s", "ipu.speed (GT/s)"),
    (0.0, 10_000.0, "W",
     "ane.power, cpu.powerWatts, gpu.boardPowerWatts, gpu.enforcedPowerLimitWatts, gpu.gpuRailWatts, "
     "gpu.powerWatts, ipu.ipu power (W), ipu.total board power (W), memory.powerWatts"),
    (0.0, 50_000.0, "MHz",
     "cpu.ecpu_freq, cpu.freqMHz, cpu.pcpu_freq, gpu.graphicsClock, gpu.memoryClock, gpu.smClock, "
     "ipu.clock (MHz)"),
    (0.0, 50_000.0, "rpm", "fan.rpm, gpu.fanRpm"),
    (0.0, 100_000.0, "%", "trn.runtime_vcpu_usage.*"),
    (0.0, 100_000.0, "W", "gpu.ubbPowerWatts, system.powerWatts"),
    (0.0, 1e6, "1", "gpu.criticalErrors, gpu.remappedRowsCorrectable, gpu.remappedRowsUncorrectable"),
    (0.0, 1e6, "%", "cpu, cpu.ofLimit, proc.percent"),
    (0.0, 1e10, "s",
     "system.uptime, tpu.tensorcoreIdleDuration, trn.device_latency.*, trn.total_latency.*"),
    (0.0, 2.0**40, "GiB", "disk.availableGB, disk.usageGB"),
    (0.0, 2.0**40, "MiB",
     "cgroup.highMB, cgroup.limitMB, cgroup.workingSetMB, gpu.memoryFree, gpu.memoryTotal, gpu.memoryUsed, "
     "memory.cachedMB, memory.usedMB, proc.availableMB, proc.rssMB"),
    (0.0, 2.0**50, "bit/s", "gpu.pcieLinkSpeed"),
    (0.0, 2.0**50, "bytes/s", "gpu.nvlinkRxBytes, gpu.nvlinkTxBytes, gpu.pcieRxBytes, gpu.pcieTxBytes"),
    (0.0, 2.0**60, "bytes",
     "gpu.gttAllocatedBytes, gpu.memoryAllocatedBytes, gpu.otherMemoryBytes, memory.used, swap.used, "
     "tpu.hbmCapacityTotal, tpu.memoryUsageBytes, trn.application_memory, trn.collectives, "
     "trn.constants, trn.dma_buffers, trn.dma_rings, trn.driver_memory, trn.host_total_memory_usage, "
     "trn.memory_total_bytes, trn.memory_used_bytes, trn.model_code, trn.model_shared_scratchpad, "
     "trn.neuron_device_total_memory_usage, trn.neuroncore_memory_usage, trn.nonshared_scratchpad, "
     "trn.notifications, trn.runtime_memory, trn.swap_total_bytes, trn.swap_used_bytes, trn.tensors, "
     "trn.uncategorized"),
    (0.0, INFINITY, "1",
     "cgroup.limit, gpu.recoveryAction, proc.count, proc.threads, system.load1, system.load15, system.load5, "
     "tpu.hloQueueSize.*"),
    (0.0, INFINITY, "1/s", "trn.effective_flops, trn.flops"),
    (0.0, INFINITY, "Mb/s", "tpu.grpcTcpDeliveryRate.*"),
    (0.0, INFINITY, "µs",
     "tpu.bufferTransferLatency.*, tpu.collectiveE2ELatency.*, tpu.deviceToHostTransferLatency.*, "
     "tpu.grpcTcpMinRtt.*, tpu.hloExecTiming.*, tpu.hostComputeLatency.*, "
     "tpu.hostToDeviceTransferLatency.*, tpu.inboundBufferTransferLatency.*"),
)
# fmt: on
# A share -> the amount that it is the share of. If the share is impossible, so is the amount.
SHARES = {
    "disk.usagePercent": "disk.usageGB",
    "gpu.gttAllocated": "gpu.gttAllocatedBytes",
    "gpu.memoryAllocated": "gpu.memoryAllocatedBytes",
    "memory.used_percent": "memory.used",
    "swap.used_percent": "swap.used",
    "tpu.memoryUsage": "tpu.memoryUsageBytes",
}


UNLIMITED = -INFINITY, INFINITY, ""


def name_of(key: str) -> str:
    """Return the name of a key in the tables.

    >>> name_of("gpu.process.3.temp"), name_of("disk./data/v1.5.usagePercent"), name_of("cpu")
    ('gpu.temp', 'disk.usagePercent', 'cpu')
    """
    first, dot, rest = key.partition(".")
    return f"{first}.{rest.rpartition('.')[2]}" if dot else key


def range_of(key: str) -> tuple[float, float, str]:
    """Return the least and the most that a gauge may be, and its unit; infinite if its metric is not known.

    >>> range_of("gpu.0.mig.7.0.smActive"), range_of("fridge.temp")
    ((0.0, 100.0, '%'), (-inf, inf, ''))
    """
    for name in (name_of(key), f"{'.'.join(key.split('.', 2)[:2])}.*"):
        for least, most, unit, names in RANGES:
            # Most monitors look up each of their keys once, so a dictionary would only take memory.
            if name in names and name in names.split(", "):
                return least, most, unit
    return UNLIMITED
