"""The fake NVML is compatible with NVIDIA's own binding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.monitoring.collectors.nvidia.fake import FakeGpu, FakeNvml, FakeSlice

pynvml: Any = pytest.importorskip("pynvml")


@pytest.fixture
def gpu() -> FakeGpu:
    gpu = FakeGpu()
    gpu.computing = [(700, 1 << 30)]
    gpu.shares = [(700, 17, 30, 10, 2, 1)]
    gpu.slices = [FakeSlice(7, 3, "1g.10gb", (1 << 30, 10 << 30))]
    return gpu


@pytest.fixture
def handle(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(pynvml, "nvmlLib", FakeNvml([gpu]))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    pynvml.nvmlInitWithFlags(0)
    return pynvml.nvmlDeviceGetHandleByIndex(0)


def test_identity(gpu: FakeGpu, handle: Any) -> None:
    assert pynvml.nvmlSystemGetDriverVersion() == "570.133.20"
    assert pynvml.nvmlDeviceGetUUID(handle) == gpu.uuid
    assert pynvml.nvmlDeviceGetPciInfo(handle).busId == "00000000:18:00.0"
    assert pynvml.nvmlDeviceGetCudaComputeCapability(handle) == (9, 0)


def test_readings(gpu: FakeGpu, handle: Any) -> None:
    busy = pynvml.nvmlDeviceGetUtilizationRates(handle)
    assert (busy.gpu, busy.memory) == gpu.utilization
    second = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    assert (second.total, second.reserved, second.used) == gpu.memory
    assert pynvml.nvmlDeviceGetPowerUsage(handle) == gpu.power_mw
    assert pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM) == gpu.clocks[2]
    assert pynvml.nvmlDeviceGetEncoderUtilization(handle) == [3, 167]
    assert pynvml.nvmlDeviceGetMemoryErrorCounter(handle, 0, 0, 2) == 2


def test_fields(gpu: FakeGpu, handle: Any) -> None:
    energy, heat, lacking = pynvml.nvmlDeviceGetFieldValues(handle, [83, 82, 999])
    assert (energy.nvmlReturn, energy.valueType, energy.value.ullVal) == (0, 3, 5_000_000)
    assert (heat.nvmlReturn, heat.valueType, heat.value.uiVal) == (0, 1, 74)
    assert lacking.nvmlReturn == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_processes(gpu: FakeGpu, handle: Any) -> None:
    (process,) = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    assert (process.pid, process.usedGpuMemory) == (700, 1 << 30)
    (share,) = pynvml.nvmlDeviceGetProcessUtilization(handle, 0)
    assert (share.pid, share.timeStamp, share.smUtil, share.memUtil, share.encUtil, share.decUtil) == (
        *(700, 17, 30, 10, 2, 1),
    )


def test_profiling_counters(gpu: FakeGpu, handle: Any) -> None:
    assert pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice == 1
    samples = [pynvml.nvmlGpmSampleAlloc() for _ in range(2)]
    for sample in samples:
        pynvml.nvmlGpmSampleGet(handle, sample)
    question = pynvml.c_nvmlGpmMetricsGet_t()
    question.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    question.numMetrics = 2
    question.sample1, question.sample2 = samples
    question.metrics[0].metricId, question.metrics[1].metricId = 2, 60
    pynvml.nvmlGpmMetricsGet(question)
    assert [question.metrics[position].value for position in range(2)] == [71.5, 100.0]


def test_slices(gpu: FakeGpu, handle: Any) -> None:
    assert pynvml.nvmlDeviceGetMigMode(handle) == [1, 1]
    slice = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, 0)
    assert pynvml.nvmlDeviceGetUUID(slice) == "MIG-5e1a-7-3"
    assert pynvml.nvmlDeviceGetGpuInstanceId(slice) == 7
    assert pynvml.nvmlDeviceGetAttributes(slice).memorySizeMB == 10 * 1024


def test_events(gpu: FakeGpu, handle: Any) -> None:
    pynvml.nvmlLib.events = [(gpu, 8, 79)]
    queue = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(handle, 8, queue)
    event = pynvml.nvmlEventSetWait(queue, 0)
    assert (event.eventType, event.eventData) == (8, 79)
