"""The NVML source: keys, missing readings and their reasons, and recovery from failures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.model.metrics import DEFINITIONS
from runvitals.monitoring.collectors.base import Scope, Tick
from runvitals.monitoring.collectors.nvidia.collector import NoGpu, Nvidia
from runvitals.monitoring.collectors.nvidia.nvml import NvmlError
from runvitals.monitoring.collectors.plumbing.background import Hung
from tests.monitoring.collectors.nvidia.fake import BLANK, BLANK_64, FakeGpu, FakeNvml, FakeSlice
from tests.patience import PATIENCE_S


class Watched:
    """A source over a fake library and a fake /proc."""

    def __init__(self, nvml: FakeNvml, proc: Path, pids: tuple[int, ...] = (700,)) -> None:
        self.scope = Scope(pids=pids)
        self.source = Nvidia(self.scope, nvml, patience_s=PATIENCE_S, proc=str(proc))
        self.mono_s = 1000.0

    def sample(self, after_s: float = 1.0) -> Tick:
        self.mono_s += after_s
        tick = Tick(self.mono_s)
        self.source.sample(tick)
        return tick


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """The host's processes: the training process 700, its child 701, and another user's 900."""
    (tmp_path / "loadavg").write_text("0 0 0 1/3 900\n")
    (tmp_path / "self" / "ns").mkdir(parents=True)
    (tmp_path / "self" / "ns" / "pid").symlink_to("pid:[4026531836]")
    for pid, parent in ((700, 1), (701, 700), (900, 1)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (python) S {parent} 0")
        (tmp_path / str(pid) / "status").write_text(f"Name:\tpython\nTgid:\t{pid}\nThreads:\t1\n")
        (tmp_path / str(pid) / "environ").write_bytes(b"HOME=/root\0")
    return tmp_path


@pytest.fixture
def nvml() -> Iterator[FakeNvml]:
    nvml = FakeNvml([FakeGpu(0), FakeGpu(1)])
    yield nvml
    nvml.hang.set()


@pytest.fixture
def watched(nvml: FakeNvml, proc: Path) -> Iterator[Watched]:
    watched = Watched(nvml, proc)
    yield watched
    watched.source.close()


def of(tick: Tick, prefix: str) -> dict[str, float]:
    readings = {**tick.gauges, **tick.counters}
    return {key[len(prefix) :]: value for key, value in readings.items() if key.startswith(prefix)}


def test_all_keys_of_a_data_centre_gpu(watched: Watched) -> None:
    watched.sample()
    tick = watched.sample(10.0)
    assert of(tick, "gpu.1.") == pytest.approx({
        "gpu": 87.0, "memory": 43.0, "memoryAllocated": 25.0, "memoryAllocatedBytes": float(20 << 30),
        "temp": 61.0, "memoryTemp": 74.0, "powerWatts": 512.25, "enforcedPowerLimitWatts": 700.0,
        "powerPercent": 512.25 / 7.0, "smClock": 1740.0, "memoryClock": 2619.0, "graphicsClock": 1755.0,
        "encoderUtilization": 3.0, "decoderUtilization": 4.0, "energyJoules": 5000.0,
        "correctedMemoryErrors": 2.0, "unCorrectedMemoryErrors": 0.0,
        "throttle.swPowerCapSeconds": 3.0, "throttle.swThermalSeconds": 0.0, "throttle.hwThermalSeconds": 0.0,
        "throttle.hwPowerBrakeSeconds": 0.0, "throttle.hwSlowdownSeconds": 0.0,
        "throttle.syncBoostSeconds": 0.0, "throttle.boardLimitSeconds": 0.0,
        "throttle.reliabilitySeconds": 0.0,
        "pcieReplays": 1.0, "remappedRowsCorrectable": 0.0, "remappedRowsUncorrectable": 1.0,
        "remapPending": 1.0, "remapFailed": 0.0, "recoveryAction": 0.0, "otherMemoryBytes": 0.0,
        "pcieLinkGen": 5.0, "pcieLinkWidth": 16.0, "maxPcieLinkGen": 5.0, "maxPcieLinkWidth": 16.0,
        "smActive": 71.5, "smOccupancy": 40.25, "pipeTensorActive": 55.0, "pipeTensorHmmaActive": 50.0,
        "dramActive": 62.0, "pipeFp64Active": 0.0, "pipeFp32Active": 7.0, "pipeFp16Active": 1.0,
        "pcieTxBytes": 12.0 * 2**20, "pcieRxBytes": 24.0 * 2**20,
        "nvlinkRxBytes": 100.0 * 2**20, "nvlinkTxBytes": 200.0 * 2**20,
    })  # fmt: skip


def test_every_key_is_a_declared_metric(nvml: FakeNvml, proc: Path) -> None:
    nvml.gpus[0].computing = [(700, 1 << 30)]
    nvml.gpus[0].shares = [(700, 5, 1, 2, 3, 4)]
    nvml.gpus[0].fan = 30
    nvml.gpus[1].slices = [FakeSlice(1, 0, "1g.10gb", (1 << 30, 10 << 30))]
    watched = Watched(nvml, proc)
    ticks = [watched.sample(), watched.sample(11.0)]
    keys = {key for tick in ticks for key in (*tick.gauges, *tick.counters)}
    assert len(keys) > 60
    assert [key for key in sorted(keys) if DEFINITIONS.find(key) is None] == []
    for tick in ticks:
        kinds = {key: DEFINITIONS.find(key) for key in tick.counters}
        assert [key for key, match in kinds.items() if match and match.metric.kind != "counter"] == []
        kinds = {key: DEFINITIONS.find(key) for key in tick.gauges}
        assert [key for key, match in kinds.items() if match and match.metric.kind != "gauge"] == []


def test_facts_about_devices_and_driver(watched: Watched, proc: Path) -> None:
    watched.sample()
    assert watched.source.facts is not None
    gpus = watched.source.facts.pop("gpu_nvidia")
    assert watched.source.facts == {"nvidia_driver": "570.133.20", "cuda_driver": "12.8"}
    assert isinstance(gpus, list)
    assert gpus[1] == {
        "index": 1, "name": "NVIDIA H100 80GB HBM3", "uuid": "GPU-00000001-1111-2222-3333-444455556666",
        "pci": "0000:19:00.0", "memory_bytes": 80 << 30, "cuda_cores": 16896, "minor": 1,
        "architecture": "Hopper", "compute_capability": "9.0", "visible": True, "used": False,
        "default_power_limit_watts": 650.0, "max_sm_clock_mhz": 1980,
        "throttle_sampled": ["hwSlowdown", "syncBoost", "boardLimit", "reliability"],
    }  # fmt: skip


def test_gpus_visible_to_and_used_by_a_run(nvml: FakeNvml, proc: Path) -> None:
    (proc / "700" / "environ").write_bytes(b"A=b\0CUDA_VISIBLE_DEVICES=1\0")
    nvml.gpus[1].computing = [(701, 5 << 30)]
    watched = Watched(nvml, proc)
    watched.sample()
    assert watched.source.facts is not None
    gpus = watched.source.facts["gpu_nvidia"]
    assert isinstance(gpus, list)
    assert [(gpu["visible"], gpu["used"]) for gpu in gpus] == [(False, False), (True, True)]


def gpus_of(watched: Watched) -> list[dict[str, object]]:
    assert watched.source.facts is not None
    gpus = watched.source.facts["gpu_nvidia"]
    assert isinstance(gpus, list)
    return gpus


# -- the run's processes


def test_memory_and_gpu_share_of_the_runs_processes(nvml: FakeNvml, proc: Path) -> None:
    gpu = nvml.gpus[0]
    gpu.computing = [(700, 4 << 30), (701, 2 << 30), (900, 9 << 30)]
    gpu.shares = [
        *((700, 10, 30, 10, 0, 0), (700, 20, 50, 20, 2, 0), (701, 20, 25, 5, 0, 4)),
        (900, 20, 35, 60, 0, 0),
    ]
    watched = Watched(nvml, proc)
    use = of(watched.sample(), "gpu.process.0.")
    assert use == pytest.approx({
        "memoryAllocatedBytes": float(6 << 30), "memoryAllocated": 7.5,
        "gpu": 65.0, "memory": 20.0, "encoderUtilization": 1.0, "decoderUtilization": 4.0,
        # The GPU has only one value of these.
        "temp": 61.0, "powerWatts": 512.25, "powerPercent": 512.25 / 7.0,
        "smClock": 1740.0, "memoryClock": 2619.0, "graphicsClock": 1755.0,
        "correctedMemoryErrors": 2.0, "unCorrectedMemoryErrors": 0.0,
    })  # fmt: skip


def test_a_process_sample_counts_once(nvml: FakeNvml, proc: Path) -> None:
    gpu = nvml.gpus[0]
    gpu.computing = [(700, 1 << 30)]
    gpu.shares = [(700, 10, 80, 0, 0, 0)]
    watched = Watched(nvml, proc)
    assert watched.sample().gauges["gpu.process.0.gpu"] == 80.0
    # No newer sample: no process has used the GPU since.
    assert watched.sample().gauges["gpu.process.0.gpu"] == 0.0
    gpu.shares.append((700, 30, 40, 0, 0, 0))
    assert watched.sample().gauges["gpu.process.0.gpu"] == 40.0


def test_gpus_not_used_by_the_run_have_no_process_keys(nvml: FakeNvml, proc: Path) -> None:
    nvml.gpus[0].computing = [(900, 9 << 30)]
    assert of(Watched(nvml, proc).sample(), "gpu.process.") == {}


def test_process_memory_unknown_to_the_driver_is_absent(nvml: FakeNvml, proc: Path) -> None:
    nvml.gpus[0].computing = [(700, BLANK_64)]
    nvml.gpus[0].shares = None
    watched = Watched(nvml, proc)
    use = of(watched.sample(), "gpu.process.0.")
    assert {"memoryAllocatedBytes", "memoryAllocated", "gpu"} & set(use) == set()
    assert use["temp"] == 61.0
    assert watched.source.absent["process.gpu"] == "not supported by the device or its driver (GPU 0)"
    for key in ("process.memoryAllocatedBytes", "process.memoryAllocated"):
        assert watched.source.absent[key] == "the driver does not report the memory of every process (GPU 0)"


def test_a_sum_with_a_process_of_unknown_memory_is_absent(nvml: FakeNvml, proc: Path) -> None:
    """The memory of the other processes would look like that of all."""
    nvml.gpus[0].computing = [(700, 4 << 30), (701, BLANK_64), (900, 1 << 30)]
    nvml.gpus[1].computing = [(700, 4 << 30), (700, BLANK_64), (900, BLANK_64), (901, 1 << 30)]  # two slices
    watched = Watched(nvml, proc)
    gauges = watched.sample().gauges
    assert [key for key in gauges if key.startswith("gpu.process.") and "memoryAllocated" in key] == []
    assert gauges["gpu.0.otherMemoryBytes"] == 1 << 30
    assert "gpu.1.otherMemoryBytes" not in gauges
    why = "the driver does not report the memory of every process"
    assert watched.source.absent["process.memoryAllocatedBytes"] == why
    assert watched.source.absent["otherMemoryBytes"] == f"{why} (GPU 1)"


def test_processes_outside_of_the_run_that_hold_memory(nvml: FakeNvml, proc: Path) -> None:
    nvml.gpus[0].computing = [(700, 4 << 30), (900, 2 << 30)]
    nvml.gpus[0].drawing = [(901, 1 << 30)]
    watched = Watched(nvml, proc)
    gauges = watched.sample().gauges
    assert (gauges["gpu.0.otherMemoryBytes"], gauges["gpu.1.otherMemoryBytes"]) == (3 << 30, 0.0)
    assert [gpu.get("other_processes") for gpu in gpus_of(watched)] == [[900, 901], None]


def test_other_processes_are_unknown_where_pids_may_be_those_of_the_host(nvml: FakeNvml, proc: Path) -> None:
    in_a_container(proc)
    nvml.gpus[0].computing = [(700, 9 << 30)]
    watched = Watched(nvml, proc)
    assert "gpu.0.otherMemoryBytes" not in watched.sample().gauges
    assert "--pid=host" in watched.source.absent["otherMemoryBytes"]
    assert "other_processes" not in gpus_of(watched)[0]


def test_the_process_list_grows_past_its_buffer(nvml: FakeNvml, proc: Path) -> None:
    nvml.gpus[0].computing = [*((10_000 + other, 1) for other in range(300)), (700, 3 << 30)]
    nvml.gpus[0].shares = [*((10_000 + other, 9, 0, 0, 0, 0) for other in range(300)), (700, 9, 12, 0, 0, 0)]
    gauges = Watched(nvml, proc).sample().gauges
    assert (gauges["gpu.process.0.memoryAllocatedBytes"], gauges["gpu.process.0.gpu"]) == (3 << 30, 12.0)


def test_in_a_pid_namespace_a_host_pid_is_not_attributed_to_the_run(nvml: FakeNvml, proc: Path) -> None:
    in_a_container(proc)
    nvml.gpus[0].computing = [(700, 9 << 30)]  # not ours: the host's process 700
    watched = Watched(nvml, proc)
    assert of(watched.sample(), "gpu.process.") == {}
    # Our process 701 has a GPU open, although the driver lists no PID of ours.
    (proc / "701" / "fd").mkdir()
    (proc / "701" / "fd" / "3").symlink_to("/dev/nvidia0")
    watched = Watched(nvml, proc)
    watched.sample()
    assert "--pid=host" in watched.source.absent["gpu.process"]
    assert watched.source.facts is not None
    gpus = watched.source.facts["gpu_nvidia"]
    assert isinstance(gpus, list)
    assert gpus[0]["used"] is None


def test_translated_pids_are_attributed_to_the_run(nvml: FakeNvml, proc: Path) -> None:
    in_a_container(proc)
    (proc / "701" / "fd").mkdir()
    (proc / "701" / "fd" / "3").symlink_to("/dev/nvidia0")
    nvml.gpus[0].computing = [(701, 2 << 30)]
    assert Watched(nvml, proc).sample().gauges["gpu.process.0.memoryAllocatedBytes"] == 2 << 30


def test_host_pids_are_translated_through_the_hosts_procfs(
    nvml: FakeNvml, proc: Path, tmp_path: Path
) -> None:
    in_a_container(proc)
    host = tmp_path / "host"
    for number, namespace in ((52_000, "pid:[4026532999]"), (53_000, "pid:[4026531111]")):
        (host / "proc" / str(number) / "ns").mkdir(parents=True)
        (host / "proc" / str(number) / "status").write_text(
            f"Name:\tpython\nNSpid:\t{number}\t700\nThreads:\t1\n"
        )
        (host / "proc" / str(number) / "ns" / "pid").symlink_to(namespace)
    nvml.gpus[0].computing = [(52_000, 4 << 30), (53_000, 8 << 30)]  # 53000 is 700 in another container
    watched = Watched(nvml, proc)
    watched.scope.host_root = str(host)
    watched.source = Nvidia(watched.scope, nvml, patience_s=PATIENCE_S, proc=str(proc))
    assert watched.sample().gauges["gpu.process.0.memoryAllocatedBytes"] == 4 << 30


def in_a_container(proc: Path) -> None:
    (proc / "self" / "ns" / "pid").unlink()
    (proc / "self" / "ns" / "pid").symlink_to("pid:[4026532999]")


# -- missing readings


def test_readings_without_a_value_are_absent(nvml: FakeNvml, proc: Path) -> None:
    """A GPU that shares the host's memory and has hardly any readings."""
    gpu = nvml.gpus[0]
    gpu.utilization = (BLANK, BLANK)
    gpu.memory = gpu.power_mw = gpu.limit_mw = gpu.memory_errors = gpu.profile_values = gpu.shares = None
    gpu.clocks, gpu.pcie, gpu.fields, gpu.pcie_kib_per_s = {}, {}, {}, {}
    gpu.encoder = gpu.decoder = BLANK
    nvml.errors = {("nvmlDeviceGetCurrentClocksEventReasons", gpu): 3}
    watched = Watched(nvml, proc)
    watched.sample()
    readings = of(watched.sample(), "gpu.0.")
    assert readings == {"temp": 61.0, "memoryAllocatedBytes": 0.0, "otherMemoryBytes": 0.0}
    absent = watched.source.absent
    reason = "not supported by the device or its driver (GPU 0)"
    assert absent["powerWatts"] == absent["gpu"] == absent["memory"] == absent["energyJoules"] == reason
    assert absent["powerPercent"] == "needs the power and its limit (GPU 0)"
    assert absent["memoryAllocated"] == "the size of the memory is unknown (GPU 0)"
    assert absent["smActive"] == "profiling counters need a Hopper or newer GPU, or DCGM (GPU 0)"
    assert absent["fanSpeed"] == "not supported by the device or its driver"


@pytest.mark.parametrize("busy", [0, 1])
def test_each_key_without_a_value_has_a_reason(nvml: FakeNvml, proc: Path, busy: int) -> None:
    """Each GPU answers only one of two halves of the questions."""
    for number, gpu in enumerate(nvml.gpus):
        gpu.computing = [(700, 1 << 30)]
        gpu.shares = [(700, 5, 1, 2, 3, 4)]
        gpu.fan = 30
        if number != busy:
            continue
        gpu.utilization = (BLANK, BLANK)
        gpu.power_mw = gpu.fan = gpu.memory_errors = gpu.profile_values = gpu.shares = None
        gpu.fields, gpu.pcie, gpu.clocks = {}, {}, {}
        nvml.errors = {("nvmlDeviceGetTemperature", gpu): 999, ("nvmlDeviceGetMemoryInfo_v2", gpu): 15 + 984}
        nvml.errors |= {("nvmlDeviceGetMemoryInfo", gpu): 999}
    watched = Watched(nvml, proc)
    ticks = [watched.sample(), watched.sample(11.0)]
    keys = [set().union(*(of(tick, f"gpu.{number}.") for tick in ticks)) for number in (0, 1)]
    used = [set().union(*(of(tick, f"gpu.process.{number}.") for tick in ticks)) for number in (0, 1)]
    lacking = keys[1 - busy] - keys[busy]
    assert len(lacking) > 30
    of_processes = used[1 - busy] - used[busy]
    absent = watched.source.absent
    assert [key for key in lacking if f"(GPU {busy})" not in absent.get(key, "")] == []
    assert [key for key in of_processes if key not in absent and f"process.{key}" not in absent] == []


# -- power, memory and recovery


def test_power_that_only_the_instantaneous_field_has(nvml: FakeNvml, proc: Path) -> None:
    nvml.gpus[0].power_mw = None
    nvml.gpus[0].fields[186] = 66_840
    nvml.gpus[1].power_mw = None
    nvml.gpus[1].fields[185] = 70_000
    watched = Watched(nvml, proc)
    gauges = watched.sample().gauges
    assert (gauges["gpu.0.powerWatts"], gauges["gpu.1.powerWatts"]) == (66.84, 70.0)
    assert gauges["gpu.0.powerPercent"] == pytest.approx(66.84 / 7.0)
    assert "powerWatts" not in watched.source.absent


def unified(nvml: FakeNvml, proc: Path) -> FakeGpu:
    """A GPU that shares the host's memory of 122 GiB."""
    (proc / "meminfo").write_text("MemTotal:       127600748 kB\nMemAvailable:   92000000 kB\n")
    gpu = nvml.gpus[0]
    gpu.memory = gpu.limit_mw = None
    del nvml.gpus[1:]
    return gpu


@pytest.mark.parametrize("memory", [None, (0, 0, 0)])
def test_memory_of_a_gpu_that_shares_the_hosts_is_that_of_its_processes(
    nvml: FakeNvml, proc: Path, memory: tuple[int, int, int] | None
) -> None:
    gpu = unified(nvml, proc)
    gpu.memory = memory
    watched = Watched(nvml, proc)
    assert watched.sample().gauges["gpu.0.memoryAllocatedBytes"] == 0.0
    gpu.computing = [(900, 95_859_375_079)]
    gauges = watched.sample(5.0).gauges
    assert gauges["gpu.0.memoryAllocatedBytes"] == 95_859_375_079.0
    assert gauges["gpu.0.memoryAllocated"] == pytest.approx(95_859_375_079 / 127_600_748 / 1024 * 100.0)
    assert {"gpu.0.powerPercent", "gpu.0.enforcedPowerLimitWatts"} & set(gauges) == set()
    assert "memoryAllocated" not in watched.source.absent
    (about,) = gpus_of(watched)
    assert (about["unified"], about["memory_bytes"]) == (True, 127_600_748 * 1024)


def test_shared_memory_of_unknown_processes_is_absent(nvml: FakeNvml, proc: Path) -> None:
    unified(nvml, proc).computing = [(900, BLANK_64)]
    watched = Watched(nvml, proc)
    assert "gpu.0.memoryAllocatedBytes" not in watched.sample().gauges
    assert (
        watched.source.absent["memoryAllocated"] == "the driver does not report the memory of every process"
    )


def test_a_gpu_that_must_be_recovered_is_an_event(nvml: FakeNvml, watched: Watched) -> None:
    assert watched.sample().events == []
    nvml.gpus[1].fields[230] = 1
    tick = watched.sample(11.0)
    assert tick.gauges["gpu.1.recoveryAction"] == 1.0
    assert [(event["name"], event["gpu"]) for event in tick.events] == [("recovery_needed", 1)]
    assert "recovery action Reset" in str(tick.events[0]["text"])
    assert watched.sample(11.0).events == []
    nvml.gpus[1].fields[230] = 0
    assert [event["name"] for event in watched.sample(11.0).events] == ["recovery_done"]


def test_throttling_from_samples_is_told_from_that_of_counters(nvml: FakeNvml, watched: Watched) -> None:
    for field in (74, 269, 270, 271):
        nvml.gpus[1].fields.pop(field)
    watched.sample()
    absent = watched.source.absent
    assert absent["throttle.swThermalSeconds"].startswith("sampled: there is no counter for it")
    assert absent["throttle.swThermalSeconds"].endswith("(GPU 1)")
    assert "(GPU" not in absent["throttle.hwSlowdownSeconds"]  # no driver counts it
    assert "swThermal" in str(gpus_of(watched)[1]["throttle_sampled"])
    assert "swThermal" not in str(gpus_of(watched)[0]["throttle_sampled"])


def test_a_counter_that_appears_later_continues_the_sampled_time(nvml: FakeNvml, watched: Watched) -> None:
    """What it counted since the driver was loaded does not belong to the run."""
    gpu = nvml.gpus[0]
    gpu.clock_reasons, gpu.fields[269] = 0x20, 173_000_000_000
    nvml.errors["nvmlDeviceGetFieldValues", gpu] = 999
    watched.sample()
    assert watched.sample(2.0).counters["gpu.0.throttle.swThermalSeconds"] == 2.0
    nvml.errors.clear()
    assert watched.sample(300.0).counters["gpu.0.throttle.swThermalSeconds"] == 2.0
    gpu.fields[269] += 30_000_000_000
    assert watched.sample().counters["gpu.0.throttle.swThermalSeconds"] == 32.0


def test_memory_of_zero_bytes_is_absent(nvml: FakeNvml, proc: Path) -> None:
    nvml.gpus[0].memory = (0, 0, 0)
    assert "gpu.0.memoryAllocated" not in Watched(nvml, proc).sample().gauges


def test_a_memory_temperature_of_0_is_absent(nvml: FakeNvml, proc: Path) -> None:
    nvml.gpus[0].fields[82] = 0
    assert "gpu.0.memoryTemp" not in Watched(nvml, proc).sample().gauges


def test_power_without_a_limit_has_no_percentage(nvml: FakeNvml, proc: Path) -> None:
    nvml.gpus[0].limit_mw = None
    gauges = Watched(nvml, proc).sample().gauges
    assert "gpu.0.powerWatts" in gauges
    assert "gpu.0.powerPercent" not in gauges


def test_functions_missing_in_an_old_driver(nvml: FakeNvml, proc: Path) -> None:
    nvml.absent_functions = {
        "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCurrentClocksEventReasons", "nvmlGpmQueryDeviceSupport",
        "nvmlDeviceGetMigMode", "nvmlEventSetCreate", "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetFieldValues", "nvmlDeviceGetProcessUtilization", "nvmlDeviceGetArchitecture",
    }  # fmt: skip
    nvml.gpus[0].computing = [(700, 1 << 30)]
    watched = Watched(nvml, proc)
    gauges = watched.sample().gauges
    # Version 1 of the memory reading counts the driver's reserve as used.
    assert gauges["gpu.0.memoryAllocatedBytes"] == (20 << 30) + (600 << 20)
    assert gauges["gpu.process.0.memoryAllocatedBytes"] == 1 << 30
    assert watched.source.absent["energyJoules"] == "the driver is too old for this function"


def test_a_failed_reading_is_retried_while_the_others_continue(nvml: FakeNvml, watched: Watched) -> None:
    watched.sample()
    nvml.errors["nvmlDeviceGetTemperature", nvml.gpus[1]] = 999
    tick = watched.sample()
    assert "gpu.1.temp" not in tick.gauges
    assert {"gpu.0.temp", "gpu.1.powerWatts"} <= set(tick.gauges)
    for _ in range(4):
        watched.sample()
    assert "unknown error" in watched.source.absent["temp"]
    nvml.errors.clear()
    assert [bool("gpu.1.temp" in watched.sample().gauges) for _ in range(8)][-1]
    assert "temp" not in watched.source.absent


def test_unsupported_readings_are_retried_every_five_minutes(nvml: FakeNvml, watched: Watched) -> None:
    for _ in range(30):
        watched.sample(11.0)
    assert nvml.calls["nvmlDeviceGetFanSpeed"] == 2 * 2
    nvml.gpus[0].fan = 35
    ticks = [watched.sample(11.0) for _ in range(30)]
    assert any(tick.gauges.get("gpu.0.fanSpeed") == 35.0 for tick in ticks)


def test_an_unsupported_field_is_left_out_of_the_call(nvml: FakeNvml, watched: Watched) -> None:
    del nvml.gpus[0].fields[82]
    first, second = watched.sample(), watched.sample()
    for tick in (first, second):
        assert "gpu.0.memoryTemp" not in tick.gauges
        assert tick.counters["gpu.0.energyJoules"] == 5000.0
        assert tick.gauges["gpu.1.memoryTemp"] == 74.0


# -- rates and durations


def test_link_rates_are_computed_from_counters(nvml: FakeNvml, proc: Path) -> None:
    gpu = nvml.gpus[0]
    gpu.profile_values = None
    gpu.fields.update({197: 1_000, 198: 5_000, 138: 100, 139: 200})
    watched = Watched(nvml, proc)
    assert "gpu.0.pcieTxBytes" not in watched.sample().gauges
    gpu.fields.update({197: 3_000, 198: 9_000, 138: 110, 139: 300})
    tick = watched.sample(2.0)
    assert of(tick, "gpu.0.")["pcieTxBytes"] == 1_000.0
    assert of(tick, "gpu.0.")["pcieRxBytes"] == 2_000.0
    assert of(tick, "gpu.0.")["nvlinkTxBytes"] == 5 * 1024.0
    assert of(tick, "gpu.0.")["nvlinkRxBytes"] == 50 * 1024.0
    gpu.fields.update({197: 0, 138: 0})  # the driver was reloaded
    tick = watched.sample()
    assert "gpu.0.pcieTxBytes" not in tick.gauges
    assert "gpu.0.nvlinkTxBytes" not in tick.gauges
    assert tick.gauges["gpu.0.pcieRxBytes"] == 0.0


def test_pcie_throughput_without_counters_is_measured_rarely(nvml: FakeNvml, proc: Path) -> None:
    nvml.gpus[0].profile_values = None
    watched = Watched(nvml, proc)
    assert of(watched.sample(), "gpu.0.")["pcieTxBytes"] == 1000 * 1024.0
    assert "gpu.0.pcieTxBytes" not in watched.sample().gauges
    assert of(watched.sample(10.0), "gpu.0.")["pcieRxBytes"] == 3000 * 1024.0


def test_throttling_without_a_driver_counter_is_timed(nvml: FakeNvml, proc: Path) -> None:
    gpu = nvml.gpus[0]
    gpu.fields = {}
    watched = Watched(nvml, proc)
    gpu.clock_reasons = 0x40  # heat
    watched.sample()
    watched.sample(2.0)
    gpu.clock_reasons = 0x1  # idle
    assert watched.sample(1.0).counters["gpu.0.throttle.hwThermalSeconds"] == 3.0
    assert watched.sample(1.0).counters["gpu.0.throttle.hwThermalSeconds"] == 3.0


def test_a_suspended_monitor_does_not_count_the_pause_as_throttling(nvml: FakeNvml, proc: Path) -> None:
    nvml.gpus[0].fields = {}
    watched = Watched(nvml, proc)
    watched.sample()
    assert watched.sample(30_000.0).counters["gpu.0.throttle.swPowerCapSeconds"] == 60.0


def test_slow_readings_are_read_every_ten_seconds(nvml: FakeNvml, watched: Watched) -> None:
    ticks = [watched.sample() for _ in range(21)]
    assert [at for at, tick in enumerate(ticks) if "gpu.0.enforcedPowerLimitWatts" in tick.gauges] == [
        0,
        10,
        20,
    ]
    assert all("gpu.0.powerPercent" in tick.gauges for tick in ticks)


# -- slices


def test_mig_slices_have_their_own_readings(nvml: FakeNvml, proc: Path) -> None:
    gpu = nvml.gpus[1]
    gpu.utilization = (BLANK, BLANK)
    first, broken = FakeSlice(7, 0, "1g.10gb", (1 << 30, 10 << 30)), FakeSlice(9, 0, "1g.10gb", (0, 10 << 30))
    gpu.slices = [None, first, None, broken, FakeSlice(2, 1, "3g.40gb", (20 << 30, 40 << 30))]
    nvml.errors["nvmlDeviceGetMigDeviceHandleByIndex", broken] = 999
    watched = Watched(nvml, proc)
    watched.sample()
    assert of(watched.sample(), "gpu.1.mig.") == {
        "7.0.memoryAllocated": 10.0, "7.0.memoryAllocatedBytes": float(1 << 30),
        "7.0.smActive": 40.0, "7.0.dramActive": 12.5,
        "2.1.memoryAllocated": 50.0, "2.1.memoryAllocatedBytes": float(20 << 30),
        "2.1.smActive": 40.0, "2.1.dramActive": 12.5,
    }  # fmt: skip
    assert "unknown error" in watched.source.absent["slice 3"]
    assert watched.source.facts is not None
    gpus = watched.source.facts["gpu_nvidia"]
    assert isinstance(gpus, list)
    assert gpus[1]["slices"][0] == {
        "gpu_instance": 7, "compute_instance": 0, "uuid": "MIG-5e1a-7-0", "name": "1g.10gb",
        "memory_bytes": 10 << 30, "multiprocessors": 16,
    }  # fmt: skip


# -- events


def test_driver_errors_become_events(nvml: FakeNvml, watched: Watched) -> None:
    watched.sample()
    nvml.events = [
        (nvml.gpus[1], 0x8, 79),
        (nvml.gpus[0], 0x8, 31),
        (None, 0x8, 9999),
        (nvml.gpus[0], 0x400, 0),
    ]
    events = watched.sample().events
    assert [(event["name"], event["level"], event.get("gpu"), event.get("xid")) for event in events] == [
        ("gpu_xid", "error", 1, 79),
        ("gpu_xid", "warning", 0, 31),
        ("gpu_xid", "error", None, 9999),
        ("gpu_event", "warning", 0, None),
    ]
    assert events[0]["text"] == "GPU 1: Xid 79, the GPU has fallen off the bus"
    later = watched.sample()
    assert later.events == []
    counted = {key: value for key, value in later.gauges.items() if key.endswith("criticalErrors")}
    assert counted == {"gpu.1.criticalErrors": 1.0}  # what a program caused does not count


# -- lost GPUs


def test_a_gpu_is_lost_and_comes_back_while_the_others_keep_their_indices(
    nvml: FakeNvml, watched: Watched
) -> None:
    watched.sample()
    lost = nvml.gpus[0]
    lost.lost = True
    tick = watched.sample()
    assert of(tick, "gpu.0.") == {"criticalErrors": 1.0}
    assert tick.gauges["gpu.1.temp"] == 61.0
    assert [(event["name"], event["gpu"]) for event in tick.events] == [("device_lost", 0)]
    assert watched.source.absent["gpu.0"].startswith("lost (GPU-0000000")
    assert watched.source.facts is not None
    gpus = watched.source.facts["gpu_nvidia"]
    assert isinstance(gpus, list)
    assert [gpu.get("lost") for gpu in gpus] == [True, None]

    nvml.gpus.remove(lost)  # off the bus: the driver renumbers the others
    nvml.gpus[0].temperature = 44
    tick = watched.sample(6.0)
    assert nvml.calls["nvmlShutdown"] == 1
    assert (of(tick, "gpu.0."), tick.gauges["gpu.1.temp"]) == ({"criticalErrors": 1.0}, 44.0)

    nvml.gpus.insert(0, lost)
    lost.lost = False
    ticks = [watched.sample(10.0) for _ in range(4)]
    assert [event["name"] for tick in ticks for event in tick.events] == ["device_back"]
    assert {"gpu.0.temp", "gpu.1.temp"} <= set(ticks[-1].gauges)
    assert "GPU 0" not in watched.source.absent


def test_a_gpu_that_cannot_be_opened_does_not_affect_the_others(nvml: FakeNvml, proc: Path) -> None:
    nvml.errors["nvmlDeviceGetHandleByIndex_v2", nvml.gpus[0]] = 999
    watched = Watched(nvml, proc)
    tick = watched.sample()
    assert (of(tick, "gpu.0."), tick.gauges["gpu.1.temp"]) == ({}, 61.0)
    assert "unknown error" in watched.source.absent["GPU 0 of the driver's list"]
    nvml.errors.clear()
    watched.sample(6.0)
    assert "gpu.0.temp" in watched.sample().gauges


def test_searches_for_a_lost_gpu_back_off(nvml: FakeNvml, watched: Watched) -> None:
    watched.sample()
    nvml.gpus.pop().lost = True
    for _ in range(720):
        watched.sample(5.0)
    # After 5, 10, 20 … 300 s.
    assert 6 + 3600 // 300 - 4 <= nvml.calls["nvmlInit_v2"] <= 7 + 3600 // 300


def test_a_driver_without_gpus_is_an_error(proc: Path) -> None:
    nvml = FakeNvml([])
    watched = Watched(nvml, proc)
    with pytest.raises(NoGpu, match="lists no GPU"):
        watched.sample()
    nvml.gpus.append(FakeGpu())
    assert watched.sample().gauges["gpu.0.temp"] == 61.0


def test_a_failed_initialization_is_reported_and_retried(nvml: FakeNvml, proc: Path) -> None:
    nvml.errors["nvmlInit_v2"] = 18
    watched = Watched(nvml, proc)
    with pytest.raises(NvmlError, match="versions differ"):
        watched.sample()
    nvml.errors.clear()
    assert "gpu.0.temp" in watched.sample().gauges


def test_a_hanging_driver_does_not_delay_the_tick(nvml: FakeNvml, proc: Path) -> None:
    watched = Watched(nvml, proc)
    watched.source = Nvidia(watched.scope, nvml, patience_s=0.01, proc=str(proc))
    nvml.hang.clear()
    assert watched.sample().gauges == {}
    assert watched.source.pending
    with pytest.raises(Hung):
        watched.sample(31.0)
    assert watched.source.pending
    watched.source.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_forked_child_opens_its_own_session(nvml: FakeNvml, watched: Watched) -> None:
    watched.sample()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            before = nvml.calls["nvmlInit_v2"]
            keys = len(watched.sample().gauges)
            os.write(
                write_end,
                f"{nvml.calls['nvmlInit_v2'] - before} {nvml.calls['nvmlShutdown']} {keys > 40}".encode(),
            )
        finally:
            os._exit(0)
    os.close(write_end)
    assert os.read(read_end, 100) == b"1 0 True"
    os.close(read_end)
    os.waitpid(child, 0)
