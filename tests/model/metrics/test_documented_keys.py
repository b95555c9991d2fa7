"""Every key documented by W&B and MLflow has a definition, under each name in use."""

from __future__ import annotations

import pytest

from runvitals.model.metrics import DEFINITIONS
from runvitals.model.metrics.mlflow import from_mlflow, to_mlflow

# Keys in W&B's documentation of system metrics, old and new, with the documented units.
DOCUMENTED = {
    "cpu": "%",
    "cpu.3.cpu_percent": "%",
    "proc.cpu.threads": "1",
    "disk./.usagePercent": "%",
    "disk./System/Volumes/Data.usagePercent": "%",
    "disk./mnt/data.usageGB": "GiB",
    "disk.in": "MiB",
    "disk.out": "MiB",
    "proc.memory.rssMB": "MiB",
    "proc.memory.percent": "%",
    "memory": "%",
    "memory_percent": "%",
    "proc.memory.availableMB": "MiB",
    "network.sent": "bytes",
    "network.recv": "bytes",
    "gpu.0.memory": "%",
    "gpu.0.memoryAllocated": "%",
    "gpu.0.memoryAllocatedBytes": "bytes",
    "gpu.0.gpu": "%",
    "gpu.0.temp": "°C",
    "gpu.0.powerWatts": "W",
    "gpu.0.powerPercent": "%",
    "gpu.0.smClock": "MHz",
    "gpu.0.memoryClock": "MHz",
    "gpu.0.graphicsClock": "MHz",
    "gpu.0.correctedMemoryErrors": "1",
    "gpu.0.unCorrectedMemoryErrors": "1",
    "gpu.0.encoderUtilization": "%",
    "ipu.4.average board temp (C)": "°C",
    "ipu.4.average die temp (C)": "°C",
    "ipu.4.clock (MHz)": "MHz",
    "ipu.4.ipu power (W)": "W",
    "ipu.4.ipu utilisation (%)": "%",
    "ipu.4.ipu utilisation (session) (%)": "%",
    "ipu.4.speed (GT/s)": "GT/s",
    "tpu": "%",
    "tpu.2.memoryUsageBytes": "bytes",
    "tpu.2.memoryUsage": "%",
    "tpu.2.dutyCycle": "%",
    "trn.31.neuroncore_utilization": "%",
    "trn.host_total_memory_usage": "bytes",
    "trn.neuron_device_total_memory_usage": "bytes",
    "trn.host_total_memory_usage.application_memory": "bytes",
    "trn.host_total_memory_usage.constants": "bytes",
    "trn.host_total_memory_usage.dma_buffers": "bytes",
    "trn.host_total_memory_usage.tensors": "bytes",
    "trn.31.neuroncore_memory_usage.constants": "bytes",
    "trn.31.neuroncore_memory_usage.model_code": "bytes",
    "trn.31.neuroncore_memory_usage.model_shared_scratchpad": "bytes",
    "trn.31.neuroncore_memory_usage.runtime_memory": "bytes",
    "trn.31.neuroncore_memory_usage.tensors": "bytes",
    "openmetrics.node1.DCGM_FI_DEV_GPU_TEMP.0": "1",
}

# Undocumented keys that W&B clients of various versions write → our key if it differs.
IN_CODE = {
    "disk./.usagePercen": "disk./.usagePercent",
    "disk.nvme0n1.in": None,
    "disk.nvme0n1.out": None,
    "network.tcpRetransmits": None,
    "proc.cpu.throttledPercent": None,
    "proc.memory.oomKills": None,
    "wandb.cpu": None,
    "wandb.memory.rssMB": None,
    "system.load1": None,
    "system.load5": None,
    "system.load15": None,
    "system.uptime": None,
    "swap.used": None,
    "swap.used_percent": None,
    "cpu.avg_temp": None,
    "gpu.1.enforcedPowerLimitWatts": None,
    "gpu.1.energyJoules": None,
    "gpu.1.uncorrectedMemoryErrors": "gpu.1.unCorrectedMemoryErrors",
    "gpu.1.fanSpeed": None,
    "gpu.1.pcieTxBytes": None,
    "gpu.1.pcieRxBytes": None,
    "gpu.1.nvlinkTxBytes": None,
    "gpu.1.nvlinkRxBytes": None,
    "gpu.1.smActive": None,
    "gpu.1.smOccupancy": None,
    "gpu.1.pipeTensorActive": None,
    "gpu.1.dramActive": None,
    "gpu.1.pipeFp64Active": None,
    "gpu.1.pipeFp32Active": None,
    "gpu.1.pipeFp16Active": None,
    "gpu.1.pipeTensorHmmaActive": None,
    "gpu.1.pcieLinkGen": None,
    "gpu.1.pcieLinkSpeed": None,
    "gpu.1.pcieLinkWidth": None,
    "gpu.1.maxPcieLinkGen": None,
    "gpu.1.maxPcieLinkWidth": None,
    "gpu.process.1.enforcedPowerLimitWatts": None,
    "gpu.process.1.uncorrectedMemoryErrors": "gpu.process.1.unCorrectedMemoryErrors",
    "gpu.1.memoryUsed": None,
    "gpu.1.memoryTotal": None,
    "gpu.1.memoryFree": None,
    "gpu.1.memoryTemp": None,
    "gpu.1.maxOpTemp": None,
    "gpu.1.memoryMaxOpTemp": None,
    "gpu.1.totalEnergyConsumption": None,
    "gpu.1.memoryReadWriteActivity": "gpu.1.memory",
    "gpu.1.memoryOverDrive": None,
    "memory.used": None,
    "memory.used_percent": None,
    "cpu.ecpu_freq": None,
    "cpu.pcpu_freq": None,
    "gpu.0.freq": "gpu.0.graphicsClock",
    "cpu.ecpu_percent": None,
    "cpu.pcpu_percent": None,
    "cpu.powerWatts": None,
    "ane.power": None,
    "system.powerWatts": None,
    "gpu.0.recoveryCount": None,
    "gpu.process.0.memoryUsedBytes": "gpu.process.0.memoryAllocatedBytes",
    "tpu.0.tensorcoreUtilization": None,
    "tpu.0.tensorcoreIdleDuration": None,
    "tpu.0.hbmCapacityTotal": None,
    "tpu.0.hbmCapacityUsage": "tpu.0.memoryUsageBytes",
    "tpu.0.hbmMemoryUsage": "tpu.0.memoryUsage",
    "tpu.0.runtimeHbmUtilization": None,
    "tpu.0.iciLinkHealth": None,
    "tpu.0.throttleScore": None,
    "tpu.bufferTransferLatency.8mb.p50Us": None,
    "tpu.inboundBufferTransferLatency.8mb.meanUs": None,
    "tpu.hostToDeviceTransferLatency.8mb.p90Us": None,
    "tpu.deviceToHostTransferLatency.8mb.p95Us": None,
    "tpu.collectiveE2ELatency.8mb_all_reduce.p999Us": None,
    "tpu.hostComputeLatency.8mb.meanUs": None,
    "tpu.hloExecTiming.core_0.p99Us": None,
    "tpu.grpcTcpMinRtt.meanUs": None,
    "tpu.grpcTcpMinRtt.item_0.p50Us": None,
    "tpu.grpcTcpDeliveryRate.meanMbps": None,
    "tpu.hloQueueSize.core_0": None,
    "trn.host_memory_usage.application_memory": "trn.host_total_memory_usage.application_memory",
    "trn.host_memory_usage.constants": "trn.host_total_memory_usage.constants",
    "trn.host_memory_usage.dma_buffers": "trn.host_total_memory_usage.dma_buffers",
    "trn.host_memory_usage.tensors": "trn.host_total_memory_usage.tensors",
    "ipu.4.average board temp": "ipu.4.average board temp (C)",
    "ipu.4.link speed (GT/s)": "ipu.4.speed (GT/s)",
}

MLFLOW = {
    "cpu_utilization_percentage": ("cpu.mean", 1.0),
    "system_memory_usage_megabytes": ("memory.usedMB", 2**20 / 1e6),
    "system_memory_usage_percentage": ("memory_percent", 1.0),
    "gpu_utilization_percentage": ("gpu.0.gpu", 1.0),
    "gpu_memory_usage_megabytes": ("gpu.0.memoryAllocatedBytes", 1e-6),
    "gpu_memory_usage_percentage": ("gpu.0.memoryAllocated", 1.0),
    "gpu_power_usage_watts": ("gpu.0.powerWatts", 1.0),
    "gpu_power_usage_percentage": ("gpu.0.powerPercent", 1.0),
    "network_receive_megabytes": ("network.recv", 1e-6),
    "network_transmit_megabytes": ("network.sent", 1e-6),
    "disk_usage_megabytes": ("disk./.usageGB", 2**30 / 1e6),
    "disk_usage_percentage": ("disk./.usagePercent", 1.0),
    "disk_available_megabytes": ("disk./.availableGB", 2**30 / 1e6),
}


def unit(key: str) -> str | None:
    match = DEFINITIONS.find(key)
    return match.metric.unit if match is not None else None


def canonical(key: str) -> str | None:
    match = DEFINITIONS.find(key)
    return match.key if match is not None else None


def test_documented_keys_have_the_documented_units() -> None:
    assert {key: unit(key) for key in DOCUMENTED} == DOCUMENTED


def test_documented_keys_are_canonical() -> None:
    renamed = {key: canonical(key) for key in DOCUMENTED if canonical(key) != key}
    assert renamed == {"memory": "memory_percent"}


def test_documented_gpu_keys_exist_while_a_process_uses_the_gpu() -> None:
    twins = {
        key.replace("gpu.", "gpu.process.", 1): unit for key, unit in DOCUMENTED.items() if "gpu.0." in key
    }
    assert len(twins) == 13
    assert {key: unit(key) for key in twins} == twins


def test_keys_of_wandb_clients_are_known() -> None:
    assert {key: canonical(key) for key in IN_CODE} == {key: ours or key for key, ours in IN_CODE.items()}


@pytest.mark.parametrize("prefix", ["", "system/", "system/worker-1/", "system/rack/7/"])
def test_mlflow_names_are_known(prefix: str) -> None:
    assert len(MLFLOW) == 13
    for name, (key, factor) in MLFLOW.items():
        match = from_mlflow(prefix + name)
        assert match is not None, name
        assert match.key == key
        assert match.metric.mlflow_factor == pytest.approx(factor)


def test_keys_translate_to_mlflow_names_with_gpu_index() -> None:
    for name, (key, _) in MLFLOW.items():
        match = DEFINITIONS.find(key)
        assert match is not None, key
        assert to_mlflow(match) == name.replace("gpu_", "gpu_0_")


def test_gpu_index_is_kept_in_both_directions() -> None:
    match = from_mlflow("system/gpu_11_memory_usage_megabytes")
    assert match is not None
    assert match.key == "gpu.11.memoryAllocatedBytes"
    assert to_mlflow(match) == "gpu_11_memory_usage_megabytes"


@pytest.mark.parametrize("key", ["disk./home.usagePercent", "cpu", "gpu.process.0.gpu"])
def test_keys_without_an_mlflow_name(key: str) -> None:
    match = DEFINITIONS.find(key)
    assert match is not None
    assert to_mlflow(match) is None


@pytest.mark.parametrize("name", ["loss", "system/loss", "gpu_x_utilization_percentage", "system/gpu.0.gpu"])
def test_names_that_are_not_mlflow_names(name: str) -> None:
    assert from_mlflow(name) is None
