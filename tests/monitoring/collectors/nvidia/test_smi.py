"""The nvidia-smi source: XML layouts of several releases, with made-up values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from runvitals.model.metrics import DEFINITIONS
from runvitals.monitoring.collectors.base import Absent, Scope, Tick
from runvitals.monitoring.collectors.nvidia import smi_xml
from runvitals.monitoring.collectors.nvidia.collector import open_library
from runvitals.monitoring.collectors.nvidia.probe import probe
from runvitals.monitoring.collectors.nvidia.smi import NvidiaSmi
from runvitals.monitoring.collectors.plumbing.tool import ToolFailed
from tests.monitoring.collectors.plumbing.test_tool import program, soon
from tests.monitoring.collectors.trees import BARE_VM, plant
from tests.monitoring.collectors.vendors.machines import answer, pci, tool

Make = Callable[..., NvidiaSmi]


MIB = 1024.0 * 1024.0
KIB = 1024.0
OURS = os.getpid()


def gpu(number: int, body: str, uuid: str | None = None) -> str:
    who = uuid or f"GPU-{number:04d}"
    address = f"00000000:{number + 16:02X}:00.0"
    return (
        f'\t<gpu id="{address}">\n<product_name>NVIDIA Test {number}</product_name><uuid>{who}</uuid>'
        f"<minor_number>{7 - number}</minor_number><pci><pci_bus_id>{address}</pci_bus_id></pci>"
        f"{body}</gpu>\n"
    )


def document(*gpus: str) -> str:
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v99.dtd">\n<nvidia_smi_log>\n'
        "\t<driver_version>600.10</driver_version><cuda_version>13.5</cuda_version>\n"
        f"<attached_gpus>{len(gpus)}</attached_gpus>\n{''.join(gpus)}</nvidia_smi_log>\n"
    )


NEW = """
<product_architecture>Hopper</product_architecture>
<mig_mode><current_mig>Disabled</current_mig></mig_mode><mig_devices>None</mig_devices>
<pci><pci_gpu_link_info><pcie_gen><max_link_gen>5</max_link_gen><current_link_gen>4</current_link_gen></pcie_gen>
<link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width></link_widths>
</pci_gpu_link_info><replay_counter>3</replay_counter>
<tx_util>1000 KB/s</tx_util><rx_util>2 MB/s</rx_util></pci>
<fan_speed>40 %</fan_speed>
<clocks_event_reasons>
<clocks_event_reason_gpu_idle>Not Active</clocks_event_reason_gpu_idle>
<clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap>
<clocks_event_reason_hw_slowdown>Not Active</clocks_event_reason_hw_slowdown>
</clocks_event_reasons>
<clocks_event_reasons_counters>
<clocks_event_reasons_counters_sw_power_cap>2500000 us</clocks_event_reasons_counters_sw_power_cap>
<clocks_event_reasons_counters_sw_therm_slowdown>0 us</clocks_event_reasons_counters_sw_therm_slowdown>
</clocks_event_reasons_counters>
<fb_memory_usage><total>81559 MiB</total><reserved>500 MiB</reserved><used>20389.75 MiB</used>
</fb_memory_usage>
<bar1_memory_usage><total>131072 MiB</total><used>7 MiB</used></bar1_memory_usage>
<cc_protected_memory_usage><total>0 MiB</total><used>0 MiB</used></cc_protected_memory_usage>
<utilization><gpu_util>97 %</gpu_util><memory_util>41 %</memory_util><encoder_util>1 %</encoder_util>
<decoder_util>2 %</decoder_util><jpeg_util>3 %</jpeg_util></utilization>
<ecc_errors><volatile><sram_correctable>9</sram_correctable><dram_correctable>4</dram_correctable>
<dram_uncorrectable>1</dram_uncorrectable></volatile>
<aggregate><dram_correctable>99</dram_correctable></aggregate></ecc_errors>
<remapped_rows><remapped_row_corr>1</remapped_row_corr><remapped_row_unc>2</remapped_row_unc>
<remapped_row_pending>Yes</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>
<temperature><gpu_temp>61 C</gpu_temp><gpu_temp_tlimit>25 C</gpu_temp_tlimit><gpu_temp_max_threshold>92 C
</gpu_temp_max_threshold><memory_temp>70 C</memory_temp></temperature>
<gpu_power_readings><power_state>P0</power_state><average_power_draw>350.50 W</average_power_draw>
<instant_power_draw>399.00 W</instant_power_draw><current_power_limit>701.00 W</current_power_limit>
<default_power_limit>650.00 W</default_power_limit></gpu_power_readings>
<gpu_memory_power_readings><average_power_draw>60.00 W</average_power_draw></gpu_memory_power_readings>
<module_power_readings><power_draw>999.00 W</power_draw><current_power_limit>1000.00 W</current_power_limit>
</module_power_readings>
<clocks><graphics_clock>1755 MHz</graphics_clock><sm_clock>1750 MHz</sm_clock><mem_clock>2619 MHz</mem_clock>
<video_clock>1500 MHz</video_clock></clocks>
<max_clocks><graphics_clock>1980 MHz</graphics_clock></max_clocks>
<applications_clocks><graphics_clock>Requested functionality has been deprecated</graphics_clock>
</applications_clocks>
<supported_clocks><supported_mem_clock><value>2619 MHz</value>
<supported_graphics_clock>1980 MHz</supported_graphics_clock></supported_mem_clock></supported_clocks>
"""
OLD = """
<fan_speed>N/A</fan_speed>
<clocks_throttle_reasons>
<clocks_throttle_reason_sw_power_cap>Not Active</clocks_throttle_reason_sw_power_cap>
<clocks_throttle_reason_hw_thermal_slowdown>Active
</clocks_throttle_reason_hw_thermal_slowdown>
</clocks_throttle_reasons>
<fb_memory_usage><total>16384 MiB</total><used>4096 MiB</used><free>12288 MiB</free></fb_memory_usage>
<utilization><gpu_util>[N/A]</gpu_util><memory_util>0 %</memory_util></utilization>
<ecc_errors><volatile>
<single_bit><device_memory>5</device_memory><register_file>7</register_file><total>12</total></single_bit>
<double_bit><device_memory>2</device_memory><total>2</total></double_bit></volatile>
<aggregate><single_bit><device_memory>50</device_memory></single_bit></aggregate></ecc_errors>
<temperature><gpu_temp>40 C</gpu_temp><memory_temp>0 C</memory_temp></temperature>
<power_readings><power_state>P0</power_state><power_management>Supported</power_management>
<power_draw>50.00 W</power_draw><power_limit>300.00 W</power_limit><enforced_power_limit>200.00 W
</enforced_power_limit></power_readings>
"""
EMPTY = """
<pci><tx_util>N/A</tx_util></pci>
<fan_speed>N/A</fan_speed><fb_memory_usage><total>N/A</total><used>N/A</used></fb_memory_usage>
<utilization><gpu_util>[Unknown Error]</gpu_util><memory_util>GPU is lost</memory_util></utilization>
<ecc_errors><volatile><dram_correctable>Insufficient Permissions</dram_correctable></volatile></ecc_errors>
<temperature><gpu_temp>Unknown Error</gpu_temp></temperature><remapped_rows>N/A</remapped_rows>
<gpu_power_readings><power_draw>[Not Supported]</power_draw></gpu_power_readings>
<clocks><sm_clock>ERR!</sm_clock></clocks>
"""


def processes(*rows: tuple[int, str]) -> str:
    infos = "".join(
        f"<process_info><pid>{pid}</pid><type>C</type><process_name>/x/a & b <c> \x1b[31m</process_name>"
        f"<used_memory>{used}</used_memory></process_info>"
        for pid, used in rows
    )
    return f"<processes>{infos}</processes><accounted_processes></accounted_processes>"


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A source whose tool prints the file `tmp_path/nvidia-smi.out`."""
    created: list[NvidiaSmi] = []

    def build(output: str | bytes, after: str = "", certain: bool = True, proc: str = "/proc") -> NvidiaSmi:
        tool(tmp_path, monkeypatch, "nvidia-smi", output, after)
        path = f"{tmp_path}/bin/nvidia-smi"
        created.append(NvidiaSmi(Scope(pids=[OURS]), path, "it has no library", certain, proc))
        return created[-1]

    yield build
    for source in created:
        source.close()


def test_output_of_new_releases(make: Make) -> None:
    source = make(document(gpu(0, NEW)))
    tick = answer(source, 100.0)
    assert {key.removeprefix("gpu.0."): value for key, value in (tick.gauges | tick.counters).items()} == {
        "gpu": 97.0,
        "memory": 41.0,
        "encoderUtilization": 1.0,
        "decoderUtilization": 2.0,
        "memoryAllocated": 25.0,
        "memoryAllocatedBytes": 20389.75 * MIB,
        "temp": 61.0,
        "memoryTemp": 70.0,
        "powerWatts": 350.5,
        "powerPercent": 50.0,
        "enforcedPowerLimitWatts": 701.0,
        "smClock": 1750.0,
        "memoryClock": 2619.0,
        "graphicsClock": 1755.0,
        "fanSpeed": 40.0,
        "pcieTxBytes": 1000 * KIB,
        "pcieRxBytes": 2 * MIB,
        "pcieLinkGen": 4.0,
        "maxPcieLinkGen": 5.0,
        "pcieLinkWidth": 8.0,
        "maxPcieLinkWidth": 16.0,
        "pcieReplays": 3.0,
        "remappedRowsCorrectable": 1.0,
        "remappedRowsUncorrectable": 2.0,
        "remapPending": 1.0,
        "remapFailed": 0.0,
        "correctedMemoryErrors": 4.0,
        "unCorrectedMemoryErrors": 1.0,
        "throttle.swPowerCapSeconds": 2.5,  # from the counter, not from the time its bit was set
        "throttle.swThermalSeconds": 0.0,
        "throttle.hwSlowdownSeconds": 0.0,
    }
    for key, kind in [*((key, "gauge") for key in tick.gauges), *((key, "counter") for key in tick.counters)]:
        match = DEFINITIONS.find(key)
        assert match is not None, key
        assert match.metric.kind == kind
    unreported = [key for key, why in source.absent.items() if why == "not reported by nvidia-smi"]
    assert {"energyJoules", "smActive", "nvlinkTxBytes", "process.gpu", "otherMemoryBytes"} <= set(unreported)
    assert set(source.absent) - set(unreported) == {"NVML", "throttle.hwSlowdownSeconds"}
    assert source.absent["throttle.hwSlowdownSeconds"].startswith("sampled: ")
    assert source.facts == {
        "nvidia_driver": "600.10",
        "cuda_driver": "13.5",
        "gpu_nvidia": [
            {
                "index": 0,
                "name": "NVIDIA Test 0",
                "uuid": "GPU-0000",
                "pci": "0000:10:00.0",
                "memory_bytes": 81559 << 20,
                "minor": 7,
                "default_power_limit_watts": 650.0,
                "throttle_sampled": ["hwSlowdown"],
                "architecture": "Hopper",
                "visible": True,
                "used": False,
            }
        ],
    }


def test_output_of_old_releases(make: Make) -> None:
    tick = answer(make(document(gpu(0, EMPTY), gpu(1, OLD))), 100.0)
    assert {key.removeprefix("gpu.1."): value for key, value in (tick.gauges | tick.counters).items()} == {
        "memory": 0.0,
        "memoryAllocated": 25.0,
        "memoryAllocatedBytes": 4096 * MIB,
        "temp": 40.0,
        "powerWatts": 50.0,
        "powerPercent": 25.0,
        "enforcedPowerLimitWatts": 200.0,
        "correctedMemoryErrors": 5.0,
        "unCorrectedMemoryErrors": 2.0,
        "throttle.swPowerCapSeconds": 0.0,
        "throttle.hwThermalSeconds": 0.0,
    }


def test_throttling_without_a_counter_is_timed_by_its_bit(make: Make) -> None:
    source = make(document(gpu(0, OLD)))
    answer(source, 100.0)
    assert answer(source, 103.0).counters["gpu.0.throttle.hwThermalSeconds"] == 3.0


def test_throttling_reasons_of_other_releases(make: Make) -> None:
    body = """
<temperature><gpu_temp>1 C</gpu_temp></temperature>
<clocks_event_reasons><clocks_event_reason_hw_power_braking>Not Active</clocks_event_reason_hw_power_braking>
</clocks_event_reasons>
<clocks_event_reasons_counters>
<clocks_event_reasons_counters_sw_power_capping>1500 ms</clocks_event_reasons_counters_sw_power_capping>
<clocks_event_reasons_counters_hw_thermal_slowdown>N/A</clocks_event_reasons_counters_hw_thermal_slowdown>
</clocks_event_reasons_counters>
"""
    assert answer(make(document(gpu(0, body))), 1.0).counters == {
        "gpu.0.throttle.swPowerCapSeconds": 1.5,
        "gpu.0.throttle.hwPowerBrakeSeconds": 0.0,
    }


def test_a_gpu_without_values_has_no_readings(make: Make) -> None:
    source = make(document(gpu(0, EMPTY)))
    soon(lambda: (source.sample(Tick(1.0)), source.facts)[1])
    tick = Tick(1.0)
    source.sample(tick)
    assert (tick.gauges, tick.counters) == ({}, {})
    assert source.absent["temp"] == 'nvidia-smi prints "Unknown Error"'
    assert source.absent["pcieLinkGen"] == "not reported by nvidia-smi"


def test_amounts_below_0_and_an_unknown_uuid_are_left_out(make: Make) -> None:
    body = (
        "<utilization><gpu_util>-1 %</gpu_util><memory_util>3 %</memory_util></utilization>"
        "<fb_memory_usage><total>100 MiB</total><used>-1 MiB</used></fb_memory_usage>"
        "<temperature><gpu_temp>-5 C</gpu_temp></temperature>"
        "<gpu_power_readings><average_power_draw>-1.00 W</average_power_draw>"
        "<instant_power_draw>60.00 W</instant_power_draw></gpu_power_readings>"
    )
    source = make(document(gpu(0, body, "[Unknown Error]")))
    assert soon(lambda: (tick := Tick(1.0), source.sample(tick))[0].gauges) == {
        "gpu.0.memory": 3.0, "gpu.0.temp": -5.0, "gpu.0.powerWatts": 60.0,
    }  # fmt: skip
    assert source.facts is not None
    (only,) = cast("list[dict[str, object]]", source.facts["gpu_nvidia"])
    assert only["uuid"] == only["pci"] == "0000:10:00.0"


def test_mig_slices(make: Make) -> None:
    body = """
<mig_devices>
<mig_device><index>0</index><gpu_instance_id>3</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<device_attributes><shared><multiprocessor_count>14</multiprocessor_count></shared></device_attributes>
<fb_memory_usage><total>20480 MiB</total><used>5120 MiB</used></fb_memory_usage></mig_device>
<mig_device><index>1</index><gpu_instance_id>4</gpu_instance_id><compute_instance_id>1</compute_instance_id>
<fb_memory_usage><total>20480 MiB</total><used>N/A</used></fb_memory_usage></mig_device>
</mig_devices>
<fb_memory_usage><total>81920 MiB</total><used>8192 MiB</used></fb_memory_usage>
<utilization><gpu_util>N/A</gpu_util></utilization>
"""
    source = make(document(gpu(0, body)))
    assert answer(source, 1.0).gauges == {
        "gpu.0.memoryAllocated": 10.0,
        "gpu.0.memoryAllocatedBytes": 8192 * MIB,
        "gpu.0.mig.3.0.memoryAllocated": 25.0,
        "gpu.0.mig.3.0.memoryAllocatedBytes": 5120 * MIB,
    }
    assert source.absent["mig.4.1.memoryAllocated"] == 'nvidia-smi prints "N/A"'
    assert source.facts is not None
    (about,) = source.facts["gpu_nvidia"]  # type: ignore[misc,attr-defined]
    assert about["slices"] == [  # type: ignore[has-type]
        {"gpu_instance": 3, "compute_instance": 0, "multiprocessors": 14, "memory_bytes": 20480 << 20},
        {"gpu_instance": 4, "compute_instance": 1, "memory_bytes": 20480 << 20},
    ]
    assert about["visible"] is None  # type: ignore[has-type]


def test_only_processes_of_the_run_count(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "runvitals.monitoring.collectors.nvidia.processes.RunGpuProcesses.has", lambda self, pid: pid == OURS
    )
    memory = "<fb_memory_usage><total>1024 MiB</total><used>900 MiB</used></fb_memory_usage>"
    warm = "<temperature><gpu_temp>50 C</gpu_temp></temperature>"
    bodies = (
        processes((OURS, "256 MiB"), (1, "600 MiB")) + memory + warm,
        processes((1, "600 MiB")) + memory + warm,
        processes((OURS, "N/A")) + memory,
    )
    gauges = answer(make(document(*(gpu(n, body) for n, body in enumerate(bodies)))), 1.0).gauges
    assert {key: value for key, value in gauges.items() if key.startswith("gpu.process.")} == {
        "gpu.process.0.memoryAllocatedBytes": 256 * MIB,
        "gpu.process.0.memoryAllocated": 25.0,
        "gpu.process.0.temp": 50.0,
    }


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("WARNING: infoROM is corrupted at gpu 0000:10:00.0\n", "WARNING: infoROM is corrupted\n"),
        ("\x1b[33mslow\x1b[0m\xff <b>\n", "\x00"),
        (document(gpu(0, OLD)), "<nvidia_smi_log><gpu>"),
    ],
    ids=["warnings", "nonsense", "one that breaks off behind"],
)
def test_text_around_the_document_is_ignored(make: Make, before: str, behind: str) -> None:
    source = make((before + document(gpu(0, OLD)) + behind).encode("latin-1"))
    assert answer(source, 1.0).gauges["gpu.0.temp"] == 40.0


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("", "it printed nothing"),
        ("No devices were found\n", "it printed 'No devices were found'"),
        (document(gpu(0, OLD))[:-30], "the document is incomplete"),
        (document(), "lists no GPU"),
    ],
)
def test_invalid_output_is_reported_until_a_call_succeeds(
    make: Make, tmp_path: Path, output: str, says: str
) -> None:
    source = make(output)

    def failure() -> str:
        try:
            source.sample(Tick(1.0))
        except ToolFailed as failed:
            return str(failed)
        return ""

    assert says in soon(failure)
    assert says in failure()  # still failing without newer output
    (tmp_path / "nvidia-smi.out").write_text(document(gpu(0, OLD)))

    def reading() -> float | None:
        tick = Tick(5.0)
        try:
            source.sample(tick)
        except ToolFailed:
            return None
        return tick.gauges.get("gpu.0.temp")

    assert soon(reading) == 40.0


def test_gpus_keep_their_indices_when_one_is_lost(make: Make, tmp_path: Path) -> None:
    whole = document(gpu(0, OLD), gpu(1, NEW), gpu(2, OLD))
    source = make(whole)
    assert answer(source, 1.0).gauges["gpu.1.temp"] == 61.0
    rest = "Unable to determine the device handle for GPU 0000:10:00.0: GPU is lost.\n"
    (tmp_path / "nvidia-smi.out").write_text(rest + document(gpu(1, NEW), gpu(2, OLD)))
    program(tmp_path / "bin", "nvidia-smi", f"cat {tmp_path}/nvidia-smi.out\nexit 15\n")
    tick = answer(source, 10.0)
    assert {key.split(".")[1] for key in tick.gauges} == {"1", "2"}
    assert tick.gauges["gpu.1.temp"] == 61.0
    assert [(event["name"], event["gpu"]) for event in tick.events] == [("device_lost", 0)]
    assert source.absent["gpu.0"] == "lost (GPU-0000)"
    (tmp_path / "nvidia-smi.out").write_text(whole)
    tick = answer(source, 20.0)
    assert [(event["name"], event["gpu"]) for event in tick.events] == [("device_back", 0)]
    assert "GPU 0" not in source.absent


def test_a_gpu_that_no_longer_reports_its_uuid_is_lost(make: Make, tmp_path: Path) -> None:
    whole = document(gpu(0, OLD), gpu(1, NEW))
    source = make(whole)
    answer(source, 1.0)
    (tmp_path / "nvidia-smi.out").write_text(document(gpu(0, EMPTY, "Unknown Error"), gpu(1, NEW)))
    tick = answer(source, 10.0)
    assert {key.split(".")[1] for key in tick.gauges} == {"1"}
    assert [(event["name"], event["gpu"]) for event in tick.events] == [("device_lost", 0)]
    assert source.facts is not None
    assert [each["index"] for each in source.facts["gpu_nvidia"]] == [0, 1]  # type: ignore[attr-defined]
    (tmp_path / "nvidia-smi.out").write_text(whole)
    tick = answer(source, 20.0)
    assert [(event["name"], event["gpu"]) for event in tick.events] == [("device_back", 0)]


def test_a_hanging_tool_is_killed_without_delaying_a_tick(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make("", after="exec sleep 1000")
    source.sample(Tick(1.0))
    assert source.pending
    with pytest.raises(ToolFailed, match="took longer than 20 s"):
        source.sample(Tick(21.5))


def test_the_tool_is_used_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, monkeypatch, "nvidia-smi", document(gpu(0, OLD)))
    monkeypatch.setattr("runvitals.monitoring.collectors.nvidia.nvml._PATHS", ("/nowhere/libnvidia-ml.so.1",))
    source = open_library(Scope())
    assert isinstance(source, NvidiaSmi)
    assert answer(source, 1.0).gauges["gpu.0.temp"] == 40.0
    assert "could not be loaded" in source.absent["NVML"]
    source.close()


def test_a_tool_that_lists_gpus_is_used_without_a_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(tmp_path, monkeypatch, "nvidia-smi", document(gpu(0, OLD)))
    source = probe(plant(tmp_path / "root", BARE_VM))
    assert answer(source, 1.0).gauges["gpu.0.temp"] == 40.0


def test_without_a_driver_a_tool_that_lists_no_gpu_is_no_failure(make: Make, tmp_path: Path) -> None:
    complaint = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    source = make(f"{complaint}\n", after=f"echo run >> {tmp_path}/runs\nexit 9", certain=False)
    soon(lambda: (source.sample(Tick(1.0)), "nvidia-smi" in source.absent)[1])
    assert complaint in source.absent["nvidia-smi"]
    assert source.absent["NVML"] == "it has no library"
    for second in range(2, 250):
        source.sample(Tick(float(second)))
    assert (tmp_path / "runs").read_text().count("run") == 1
    soon(lambda: (source.sample(Tick(302.0)), (tmp_path / "runs").read_text().count("run") == 2)[1])


def test_another_vendors_nvidia_smi_is_left_to_that_vendors_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(tmp_path, monkeypatch, "nvidia-smi", document(gpu(0, OLD)))
    with pytest.raises(Absent, match="no NVIDIA driver"):
        probe(plant(tmp_path / "root", BARE_VM | pci("0000:17:00.0", "1ded")))


def test_ten_megabytes_of_clocks_and_processes_are_skipped() -> None:
    clocks = "<supported_graphics_clock>1980 MHz</supported_graphics_clock>" * 100_000
    names = "<process_info><pid>1</pid><process_name><<<>>&</process_name></process_info>" * 1000
    body = f"<supported_clocks>{clocks}</supported_clocks><processes>{names}</processes>{OLD}"
    (only,) = smi_xml.read(document(gpu(0, body)).encode()).gpus
    assert only.fields["temperature.gpu_temp"] == "40 C"
    assert len(only.processes) == 1000


def test_damaged_documents_never_crash_the_parser() -> None:
    whole = document(gpu(0, NEW + processes((1, "5 MiB"))), gpu(1, OLD))
    for position in range(0, len(whole), 7):
        cut = whole[:position] + whole[position + 11 :]
        try:
            log = smi_xml.read(cut.encode())
        except ValueError:
            continue
        assert len(log.gpus) <= 2
    with pytest.raises(ValueError, match="nested too deeply"):
        smi_xml.read(b"<nvidia_smi_log>" + b"<x>" * 100_000 + b"</nvidia_smi_log>")


# -- what only some GPUs report


def test_a_value_that_one_of_two_gpus_lacks_has_a_reason(make: Make) -> None:
    """The first is broken: its fan sensor fails, and it must be reset."""
    broken = """
<fan_speed>ERR!</fan_speed><gpu_recovery_action>Reset</gpu_recovery_action>
<utilization><gpu_util>93 %</gpu_util><memory_util>[Unknown Error]</memory_util></utilization>
<temperature><gpu_temp>68 C</gpu_temp><memory_temp>0 C</memory_temp></temperature>
"""
    fine = """
<fan_speed>30 %</fan_speed><gpu_recovery_action>None</gpu_recovery_action>
<utilization><gpu_util>0 %</gpu_util><memory_util>0 %</memory_util></utilization>
<temperature><gpu_temp>33 C</gpu_temp><memory_temp>40 C</memory_temp></temperature>
"""
    source = make(document(gpu(0, broken), gpu(1, fine)))
    tick = answer(source, 1.0)
    assert (tick.gauges["gpu.0.gpu"], tick.gauges["gpu.1.fanSpeed"]) == (93.0, 30.0)
    assert "gpu.0.fanSpeed" not in tick.gauges
    assert source.absent["fanSpeed"] == 'nvidia-smi prints "ERR!" (GPU 0)'
    assert source.absent["memory"] == 'nvidia-smi prints "[Unknown Error]" (GPU 0)'
    assert source.absent["memoryTemp"] == "it has no sensor (GPU 0)"
    assert "gpu" not in source.absent
    assert (tick.gauges["gpu.0.recoveryAction"], tick.gauges["gpu.1.recoveryAction"]) == (1.0, 0.0)
    assert [(event["name"], event["gpu"]) for event in tick.events] == [("recovery_needed", 0)]


def test_power_that_only_the_instantaneous_reading_has(make: Make) -> None:
    body = """
<temperature><gpu_temp>37 C</gpu_temp><gpu_temp_tlimit>56 C</gpu_temp_tlimit><memory_temp>N/A</memory_temp>
<gpu_temp_max_tlimit_threshold>-5 C</gpu_temp_max_tlimit_threshold></temperature>
<gpu_power_readings><power_draw>N/A</power_draw><average_power_draw>N/A</average_power_draw>
<instant_power_draw>66.84 W</instant_power_draw></gpu_power_readings>
"""
    source = make(document(gpu(0, body)))
    assert answer(source, 1.0).gauges == {"gpu.0.temp": 37.0, "gpu.0.powerWatts": 66.84}
    assert source.absent["powerPercent"] == "needs the power and its limit"
    assert source.absent["memoryTemp"] == 'nvidia-smi prints "N/A"'


def unified(*processes: tuple[int, str]) -> str:
    listed = "".join(
        f"<process_info><pid>{pid}</pid><type>C</type><used_memory>{used}</used_memory></process_info>"
        for pid, used in processes
    )
    return (
        "<fb_memory_usage><total>N/A</total><reserved>N/A</reserved><used>N/A</used></fb_memory_usage>"
        f"<utilization><gpu_util>0 %</gpu_util></utilization><processes>{listed}</processes>"
    )


@pytest.mark.parametrize(
    ("processes", "used"),
    [((), 0.0), (((4242, "91419 MiB"),), 91419 * MIB), (((4242, "9 MiB"), (4243, "N/A")), None)],
)
def test_memory_of_a_gpu_that_shares_the_hosts(
    make: Make, tmp_path: Path, processes: tuple[tuple[int, str], ...], used: float | None
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 127600748 kB\nMemAvailable: 92000000 kB\n")
    source = make(document(gpu(0, unified(*processes))), proc=str(tmp_path / "proc"))
    gauges = answer(source, 1.0).gauges
    assert gauges.get("gpu.0.memoryAllocatedBytes") == used
    why = "the driver does not report the memory of every process"
    assert source.absent.get("memoryAllocated") == (why if used is None else None)
    if used is not None:
        assert gauges["gpu.0.memoryAllocated"] == pytest.approx(used / 127_600_748 / 1024 * 100.0)
    assert source.facts is not None
    (about,) = cast("list[dict[str, object]]", source.facts["gpu_nvidia"])
    assert (about["unified"], about["memory_bytes"]) == (True, 127_600_748 * 1024)
