"""NVIDIA GPUs through the DCGM exporter: units, slices, hosts, and codes for "no value"."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from runvitals.model.metrics import DEFINITIONS
from runvitals.monitoring.collectors.base import Absent, Scope, Tick
from runvitals.monitoring.collectors.dcgm import collector
from runvitals.monitoring.collectors.dcgm.collector import Dcgm, NoSeries
from runvitals.monitoring.collectors.dcgm.gaps import BLANK, NOT_EXPORTED
from runvitals.monitoring.collectors.dcgm.probe import probe
from runvitals.monitoring.collectors.plumbing.http import HttpError
from runvitals.monitoring.monitor.sampler import Sampler
from tests.monitoring.collectors.exporters import Exporter, ok

BOARD = 'gpu="1",UUID="GPU-5ab1",pci_bus_id="00000000:3B:00.0",device="nvidia1",modelName="NVIDIA A30"'
SLICE = f'{BOARD},GPU_I_PROFILE="1g.6gb",GPU_I_ID="3"'


def text(*lines: str) -> bytes:
    return ok("\n".join((*lines, "")), "Content-Type: text/plain; version=0.0.4")


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    with Exporter() as exporter:
        yield exporter


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make ticks wait for the response, however slow the machine is."""
    monkeypatch.setattr(collector, "PATIENCE_S", 20.0)


def sampled(source: Dcgm, mono_s: float = 100.0, tick: Tick | None = None) -> Tick:
    tick = tick or Tick(mono_s)
    source.sample(tick)
    return tick


def test_readings_of_a_board_in_our_units(exporter: Exporter) -> None:
    exporter.answer = text(
        "# TYPE DCGM_FI_DEV_GPU_UTIL gauge",
        f"DCGM_FI_DEV_GPU_UTIL{{{BOARD}}} 93",
        f"DCGM_FI_DEV_MEM_COPY_UTIL{{{BOARD}}} 41",
        f"DCGM_FI_DEV_GPU_TEMP{{{BOARD}}} 56",
        f"DCGM_FI_DEV_POWER_USAGE{{{BOARD}}} 150.5",
        f"DCGM_FI_DEV_POWER_MGMT_LIMIT{{{BOARD}}} 301",
        "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter",
        f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{BOARD}}} 129931554972",
        f"DCGM_FI_DEV_FB_USED{{{BOARD}}} 6000",
        f"DCGM_FI_DEV_FB_FREE{{{BOARD}}} 17500",
        f"DCGM_FI_DEV_FB_RESERVED{{{BOARD}}} 500",
        f"DCGM_FI_PROF_SM_ACTIVE{{{BOARD}}} 0.381",
        f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{BOARD}}} 0.5",
        f"DCGM_FI_PROF_PCIE_TX_BYTES{{{BOARD}}} 123456",
    )
    source = Dcgm(exporter.url, {})
    tick = sampled(source)
    assert tick.gauges == pytest.approx({
        "gpu.1.gpu": 93.0, "gpu.1.memory": 41.0, "gpu.1.temp": 56.0, "gpu.1.powerWatts": 150.5,
        "gpu.1.enforcedPowerLimitWatts": 301.0, "gpu.1.powerPercent": 50.0,
        "gpu.1.memoryAllocatedBytes": 6000.0 * 2**20, "gpu.1.memoryAllocated": 25.0,
        "gpu.1.smActive": 38.1, "gpu.1.graphicsActive": 50.0, "gpu.1.pcieTxBytes": 123456.0,
    })  # fmt: skip
    assert tick.counters == {"gpu.1.energyJoules": 129931554.972}
    assert all(DEFINITIONS.find(key) for key in (*tick.gauges, *tick.counters))
    assert source.facts == {
        "gpu_dcgm": [{"index": 1, "uuid": "GPU-5ab1", "name": "NVIDIA A30", "pci": "00000000:3B:00.0"}]
    }
    source.close()


def test_older_metrics_are_used_where_newer_ones_are_missing(exporter: Exporter) -> None:
    second = BOARD.replace('gpu="1"', 'gpu="2"')
    exporter.answer = text(
        f"DCGM_FI_PROF_PCIE_TX_BYTES{{{BOARD}}} 7000",
        "# TYPE DCGM_FI_DEV_PCIE_TX_THROUGHPUT counter",
        f"DCGM_FI_DEV_PCIE_TX_THROUGHPUT{{{BOARD}}} 5",
        f"DCGM_FI_DEV_PCIE_TX_THROUGHPUT{{{second}}} 5",
        f"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL{{{BOARD}}} 9",
        f"DCGM_FI_DEV_ECC_SBE_VOL_DEV{{{BOARD}}} 4",
        f"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL{{{second}}} 9",
        f"DCGM_FI_DEV_ENFORCED_POWER_LIMIT{{{BOARD}}} 300",
        f"DCGM_FI_DEV_POWER_MGMT_LIMIT{{{BOARD}}} 400",
    )
    source = Dcgm(exporter.url, {})
    tick = sampled(source)
    assert tick.gauges == {
        "gpu.1.pcieTxBytes": 7000.0, "gpu.2.pcieTxBytes": 5 * 1024.0, "gpu.1.enforcedPowerLimitWatts": 300.0,
    }  # fmt: skip
    assert tick.counters == {"gpu.1.correctedMemoryErrors": 4.0, "gpu.2.correctedMemoryErrors": 9.0}
    # A preferred metric that is missing for a while is not replaced: its total would jump.
    exporter.answer = text(f"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL{{{BOARD}}} 9")
    assert sampled(source, 200.0).counters == {}
    source.close()


def test_slices_of_a_gpu_have_their_own_keys(exporter: Exporter) -> None:
    other = SLICE.replace('GPU_I_ID="3"', 'GPU_I_ID="4"')
    exporter.answer = text(
        f"DCGM_FI_DEV_POWER_USAGE{{{SLICE}}} 80",
        f"DCGM_FI_DEV_FB_USED{{{SLICE}}} 1000",
        f"DCGM_FI_DEV_FB_FREE{{{SLICE}}} 4000",
        f"DCGM_FI_PROF_SM_ACTIVE{{{SLICE}}} 1.25",
        f"DCGM_FI_DEV_FB_USED{{{other}}} 10",
        f"DCGM_FI_PROF_SM_ACTIVE{{{other}}} 0",
        f"DCGM_FI_PROF_PCIE_TX_BYTES{{{other}}} 5",
    )
    source = Dcgm(exporter.url, {})
    gauges = sampled(source).gauges
    assert gauges == {
        "gpu.1.powerWatts": 80.0,
        "gpu.1.mig.3.0.memoryAllocatedBytes": 1000.0 * 2**20,
        "gpu.1.mig.3.0.memoryAllocated": 20.0,
        "gpu.1.mig.3.0.smActive": 100.0,  # above 1, a known fault
        "gpu.1.mig.4.0.memoryAllocatedBytes": 10.0 * 2**20,
        "gpu.1.mig.4.0.smActive": 0.0,
    }
    assert all(DEFINITIONS.find(key) for key in gauges)
    assert source.facts is not None
    gpus = source.facts["gpu_dcgm"]
    assert isinstance(gpus, list)
    assert [(gpu["slice"], gpu["profile"]) for gpu in gpus] == [("3", "1g.6gb"), ("4", "1g.6gb")]
    source.close()


def test_a_slice_never_replaces_the_board(exporter: Exporter) -> None:
    """In any order of series. If all slices repeat a reading of the board, it is written once."""
    board, other = SLICE.partition(",GPU_I")[0], SLICE.replace('GPU_I_ID="3"', 'GPU_I_ID="4"')
    exporter.answer = text(
        f"DCGM_FI_DEV_GPU_TEMP{{{SLICE}}} 41",
        f"DCGM_FI_DEV_GPU_TEMP{{{board}}} 40",
        f"DCGM_FI_DEV_GPU_TEMP{{{other}}} 42",
        f"DCGM_FI_DEV_GPU_UTIL{{{board}}} 90",
        f"DCGM_FI_DEV_GPU_UTIL{{{SLICE}}} 7",
        f"DCGM_FI_DEV_ECC_DBE_VOL_DEV{{{SLICE}}} 3",
        f"DCGM_FI_DEV_ECC_DBE_VOL_DEV{{{other}}} 5",
        f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{board}}} 9000",
        f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{other}}} 1000",
        f"DCGM_FI_DEV_SM_CLOCK{{{SLICE}}} 1400",
        f"DCGM_FI_DEV_SM_CLOCK{{{other}}} 1400",
        f"DCGM_FI_DEV_FAN_SPEED{{{SLICE}}} 10",
        f"DCGM_FI_DEV_FAN_SPEED{{{other}}} 20",
    )
    source = Dcgm(exporter.url, {})
    tick = sampled(source)
    assert tick.gauges == {
        "gpu.1.temp": 40.0,
        "gpu.1.gpu": 90.0,
        "gpu.1.mig.3.0.gpu": 7.0,
        "gpu.1.smClock": 1400.0,
    }
    assert tick.counters == {
        "gpu.1.energyJoules": 9.0,
        "gpu.1.mig.3.0.unCorrectedMemoryErrors": 3.0,
        "gpu.1.mig.4.0.unCorrectedMemoryErrors": 5.0,
    }
    assert all(DEFINITIONS.find(key) for key in (*tick.gauges, *tick.counters))
    # Nor if the board's own series is missing once.
    exporter.answer = text(f"DCGM_FI_DEV_GPU_TEMP{{{other}}} 42")
    assert sampled(source, 105.0).gauges == {}
    source.close()


def test_throttling_and_nvlink(exporter: Exporter) -> None:
    def answer(power_ns: int, reasons: int) -> bytes:
        return text(
            "# TYPE DCGM_FI_DEV_POWER_VIOLATION counter",
            f'DCGM_FI_DEV_POWER_VIOLATION{{gpu="0"}} {power_ns}',
            'DCGM_FI_DEV_THERMAL_VIOLATION{gpu="0"} 500000000',
            f'DCGM_FI_DEV_CLOCKS_EVENT_REASONS{{gpu="0"}} {reasons}',
            'DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{gpu="0"} 1000',
            'DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL{gpu="0"} 1',
            'DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL{gpu="0"} 2',
            'DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{gpu="0"} 3',
            'DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL{gpu="0"} 4',
        )

    source = Dcgm(exporter.url, {})
    exporter.answer = answer(2_000_000_000, 0x24)  # power cap, software thermal slowdown
    sampled(source, 100.0)
    exporter.answer = answer(3_000_000_000, 0x0)
    counters = sampled(source, 105.0).counters
    assert counters["gpu.0.throttle.swPowerCapSeconds"] == 3.0  # from the counter, not from the bits
    assert counters["gpu.0.throttle.thermalSeconds"] == 0.5
    assert counters["gpu.0.throttle.swThermalSeconds"] == 5.0
    assert counters["gpu.0.throttle.hwThermalSeconds"] == 0.0
    assert counters["gpu.0.nvlinkBytes"] == 1000.0 * 1024
    errors = [counters[f"gpu.0.nvlink{kind}Errors"] for kind in ("CrcFlit", "CrcData", "Replay", "Recovery")]
    assert errors == [1.0, 2.0, 3.0, 4.0]
    for key in counters:
        match = DEFINITIONS.find(key)
        assert match is not None
        assert match.metric.kind == "counter"
    source.close()


def test_codes_for_no_value_are_left_out(exporter: Exporter) -> None:
    exporter.answer = text(
        'DCGM_FI_DEV_MEMORY_TEMP{gpu="0", UUID="GPU-1"} 9223372036854775794',
        'DCGM_FI_PROF_SM_ACTIVE{gpu="0", UUID="GPU-1"} 140737488355328',
        'DCGM_FI_DEV_POWER_USAGE{gpu="0", UUID="GPU-1"} 140737488355330.000000',
        'DCGM_FI_DEV_GPU_TEMP{gpu="0"} 2147483632',
        'DCGM_FI_DEV_POWER_USAGE{gpu="0"} NaN',
        'DCGM_FI_DEV_MEMORY_TEMP{gpu="1"} 0',
        'DCGM_FI_DEV_SM_CLOCK{device="nvidia0"} 1380',
        "DCGM_FI_DEV_SM_CLOCK 7",
        'up{gpu="0"} 1',
    )
    source = Dcgm(exporter.url, {})
    assert sampled(source).gauges == {"gpu.0.smClock": 1380.0}
    source.close()


def test_what_stands_for_no_value_reaches_no_sample(exporter: Exporter) -> None:
    """As the exporter prints them: the monitor leaves them out, and says so."""
    series = {
        "DEV_GPU_UTIL": (37, 4294967295, 184213),
        "DEV_MEMORY_TEMP": (9223372036854775794, "9.223372036854776e+18", 41),
        "DEV_POWER_USAGE": (69.4, 72.9, 4294967295),
        "PROF_SM_ACTIVE": (140737488355328.0, 0.31),
        "PROF_DRAM_ACTIVE": (4294967295, 0.5),
        "DEV_FAN_SPEED": (65535,),
        "DEV_ECC_DBE_VOL_DEV": (4294967295,),
        "DEV_POWER_VIOLATION": (4294967295,),
        "DEV_CLOCKS_EVENT_REASONS": (4294967295,),
        "DEV_XID_ERRORS": (4294967295,),
    }
    exporter.answer = text(
        *(
            f'DCGM_FI_{name}{{gpu="{gpu}"}} {value}'
            for name, values in series.items()
            for gpu, value in enumerate(values)
        )
    )
    source = Dcgm(exporter.url, {})
    sampler = Sampler([source], 1.0, lambda *failure: None)
    values = sampler.sample(100.0)
    assert {key: value for key, value in values.items() if key.startswith("gpu.")} == {
        "gpu.0.gpu": 37.0,
        "gpu.0.powerWatts": 69.4,
        "gpu.1.powerWatts": 72.9,
        "gpu.1.smActive": 31.0,
        "gpu.1.dramActive": 50.0,
        "gpu.2.memoryTemp": 41.0,
    }
    assert sampler.events == []
    state = sampler.news()["sources"]["dcgm"]
    assert isinstance(state, dict)
    assert "gpu.2.gpu: 184213 is left out: expected 0 to 100 %" in state["reason"]
    sampler.close()


def test_rates_are_computed_from_totals(exporter: Exporter) -> None:
    kind = "# TYPE DCGM_FI_PROF_NVLINK_TX_BYTES counter"
    source = Dcgm(exporter.url, {})
    seen = []
    for at, total in ((100.0, 1000), (105.0, 6000), (110.0, 10), (115.0, 20)):
        exporter.answer = text(kind, f'DCGM_FI_PROF_NVLINK_TX_BYTES{{gpu="0"}} {total}')
        seen.append(sampled(source, at).gauges.get("gpu.0.nvlinkTxBytes"))
    assert seen == [None, 1000.0, None, 2.0]
    source.close()


def test_only_a_changed_xid_is_an_event(exporter: Exporter) -> None:
    source = Dcgm(exporter.url, {})
    events = []
    for at, xid in ((100.0, 31), (105.0, 31), (110.0, 79), (115.0, 79), (120.0, 0)):
        exporter.answer = text(f'DCGM_FI_DEV_XID_ERRORS{{gpu="2",err_code="{xid}",err_msg="x"}} {xid}')
        events += [(at, event["xid"], event["gpu"]) for event in sampled(source, at).events]
    assert events == [(110.0, 79, 2)]
    source.close()


def test_keys_of_the_nvidia_source_are_left_to_it(exporter: Exporter) -> None:
    exporter.answer = text('DCGM_FI_DEV_GPU_TEMP{gpu="0"} 56', 'DCGM_FI_PROF_SM_ACTIVE{gpu="0"} 0.5')
    source = Dcgm(exporter.url, {})
    tick = Tick(100.0)
    tick.gauges["gpu.0.temp"] = 57.0
    assert sampled(source, tick=tick).gauges == {"gpu.0.temp": 57.0, "gpu.0.smActive": 50.0}
    # Nor if the driver has no value this once.
    assert sampled(source, 105.0).gauges == {"gpu.0.smActive": 50.0}
    source.close()


def vector(*series: tuple[dict[str, str], str]) -> bytes:
    result = [{"metric": labels, "value": [1_700_000_000, value]} for labels, value in series]
    response = {"status": "success", "data": {"resultType": "vector", "result": result}}
    return ok(json.dumps(response), "Content-Type: application/json")


def test_prometheus_queries_and_the_filter_by_host(exporter: Exporter) -> None:
    name = "DCGM_FI_DEV_GPU_TEMP"
    exporter.answer = vector(
        ({"__name__": name, "gpu": "0", "Hostname": "node7.cluster"}, "51"),
        ({"__name__": name, "gpu": "0", "Hostname": "node8.cluster"}, "62"),
        ({"__name__": name, "gpu": "1", "hostname": "node7"}, "mangled"),
        ({"__name__": name, "gpu": "2"}, "53"),
    )
    url = exporter.url.replace("/metrics", "/?query=DCGM_FI_DEV_GPU_TEMP&query=DCGM_FI_DEV_GPU_UTIL")
    source = Dcgm(url, {"Authorization": "Bearer secret"}, hostname="node7")
    assert sampled(source).gauges == {"gpu.0.temp": 51.0, "gpu.2.temp": 53.0}
    assert [request.split()[1] for request in exporter.requests] == [
        "/api/v1/query?query=DCGM_FI_DEV_GPU_TEMP",
        "/api/v1/query?query=DCGM_FI_DEV_GPU_UTIL",
    ]
    assert all("Authorization: Bearer secret" in request for request in exporter.requests)
    source.close()


def test_prometheus_without_a_query_reads_all_metrics(exporter: Exporter) -> None:
    exporter.answer = vector(({"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "3"}, "12"))
    source = Dcgm(exporter.url.replace("/metrics", "/api/v1/query"), {})
    assert sampled(source).gauges == {"gpu.3.gpu": 12.0}
    assert "/api/v1/query?query=%7B__name__%3D~%22DCGM_FI_.%2B%22%7D " in exporter.requests[0]
    source.close()


def test_series_of_other_hosts_only_are_an_error(exporter: Exporter) -> None:
    exporter.answer = vector(
        *(({"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0", "Hostname": host}, "1") for host in ("a", "b"))
    )
    source = Dcgm(exporter.url.replace("/metrics", "/api/v1/query"), {}, hostname="c")
    with pytest.raises(ValueError, match="no series of host c"):
        sampled(source)
    source.close()


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (ok("{"), ValueError),
        (ok('{"status":"error","error":"bad query"}'), ValueError),
        (ok('{"status":"success","data":{"result":null}}'), NoSeries),
        (ok('{"status":"success","data":{"result":[7,{"metric":{}},{"metric":[],"value":1}]}}'), NoSeries),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", HttpError),
    ],
)
def test_invalid_responses_of_prometheus(exporter: Exporter, response: bytes, error: type[Exception]) -> None:
    exporter.answer = response
    source = Dcgm(exporter.url.replace("/metrics", "/api/v1/query"), {})
    with pytest.raises(error):
        sampled(source)
    source.close()


def test_an_exporter_that_starts_later(exporter: Exporter) -> None:
    exporter.answer = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
    source = Dcgm(exporter.url, {})
    with pytest.raises(HttpError):
        sampled(source)
    exporter.answer = text('DCGM_FI_DEV_GPU_UTIL{gpu="0"} 5')
    assert sampled(source, 105.0).gauges == {"gpu.0.gpu": 5.0}
    source.close()


def test_absent_without_the_setting() -> None:
    with pytest.raises(Absent, match="RUNVITALS_DCGM_EXPORTER"):
        probe(Scope())
    assert probe(Scope(options={"dcgm_exporter": "http://localhost:9400/metrics"})).name == "dcgm"


# -- missing readings


def test_a_reading_that_one_board_lacks_has_a_reason(exporter: Exporter) -> None:
    """A blank of one board beside a number of another, and what the exporter does not select."""
    second = BOARD.replace('gpu="1"', 'gpu="2"')
    exporter.answer = text(
        f"DCGM_FI_DEV_GPU_UTIL{{{BOARD}}} 37",
        f"DCGM_FI_DEV_GPU_UTIL{{{second}}} 38",
        f"DCGM_FI_DEV_MEMORY_TEMP{{{BOARD}}} 9223372036854775794",
        f"DCGM_FI_DEV_MEMORY_TEMP{{{second}}} 41",
        f"DCGM_FI_PROF_SM_ACTIVE{{{second}}} 140737488355328.0",
        f"DCGM_FI_DEV_FB_USED{{{second}}} 0",
        f"DCGM_FI_DEV_FB_FREE{{{second}}} 0",
    )
    source = Dcgm(exporter.url, {})
    assert sampled(source).gauges == {"gpu.1.gpu": 37.0, "gpu.2.gpu": 38.0, "gpu.2.memoryTemp": 41.0}
    absent = source.absent
    assert absent["memoryTemp"] == f"{BLANK} (GPU 1)"
    assert absent["smActive"] == f"{NOT_EXPORTED} (GPU 1); {BLANK} (GPU 2)"
    assert absent["memoryAllocatedBytes"] == f"{NOT_EXPORTED} (GPU 1); {BLANK} (GPU 2)"
    assert absent["powerWatts"] == absent["throttle.swThermalSeconds"] == NOT_EXPORTED
    assert "gpu" not in absent
    # The monitor records the reasons when the object is another one.
    sampled(source, 105.0)
    assert source.absent is absent
    source.close()


def test_readings_of_another_source_are_not_missing(exporter: Exporter) -> None:
    exporter.answer = text(f"DCGM_FI_DEV_GPU_UTIL{{{BOARD}}} 37")
    source = Dcgm(exporter.url, {})
    tick = Tick(100.0)
    tick.gauges = {"gpu.1.temp": 50.0}
    sampled(source, tick=tick)
    assert "temp" not in source.absent
    assert source.absent["memoryTemp"] == NOT_EXPORTED
    source.close()


def test_a_reading_that_one_slice_lacks_has_a_reason(exporter: Exporter) -> None:
    other = SLICE.replace('GPU_I_ID="3"', 'GPU_I_ID="4"')
    exporter.answer = text(
        f"DCGM_FI_PROF_SM_ACTIVE{{{SLICE}}} 0.5", f"DCGM_FI_PROF_SM_ACTIVE{{{other}}} 9223372036854775794"
    )
    source = Dcgm(exporter.url, {})
    assert sampled(source).gauges == {"gpu.1.mig.3.0.smActive": 50.0}
    assert source.absent["mig.4.0.smActive"] == BLANK
    assert "mig.3.0.smActive" not in source.absent
    source.close()


def test_power_that_only_the_instantaneous_metric_has(exporter: Exporter) -> None:
    second = BOARD.replace('gpu="1"', 'gpu="2"')
    exporter.answer = text(
        f"DCGM_FI_DEV_POWER_USAGE{{{BOARD}}} 140737488355328.0",
        f"DCGM_FI_DEV_POWER_USAGE_INSTANT{{{BOARD}}} 66.84",
        f"DCGM_FI_DEV_POWER_USAGE_INSTANT{{{second}}} 330",
        f"DCGM_FI_DEV_POWER_USAGE{{{second}}} 320",
        f"DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF{{{second}}} 650",
        f"DCGM_FI_DEV_MAX_SM_CLOCK{{{second}}} 1980",
    )
    source = Dcgm(exporter.url, {})
    assert sampled(source).gauges == {"gpu.1.powerWatts": 66.84, "gpu.2.powerWatts": 320.0}
    assert source.facts is not None
    gpus = source.facts["gpu_dcgm"]
    assert isinstance(gpus, list)
    assert (gpus[1]["default_power_limit_watts"], gpus[1]["max_sm_clock_mhz"]) == (650.0, 1980.0)
    source.close()


def test_a_gpu_that_must_be_recovered_is_an_event(exporter: Exporter) -> None:
    exporter.answer = text(f"DCGM_FI_DEV_GPU_RECOVERY_ACTION{{{BOARD}}} 1")
    source = Dcgm(exporter.url, {})
    tick = sampled(source)
    assert tick.gauges == {"gpu.1.recoveryAction": 1.0}
    assert [event["name"] for event in tick.events] == ["recovery_needed"]
    assert sampled(source, 105.0).events == []
    source.close()


def test_throttling_from_samples_is_told_from_that_of_counters(exporter: Exporter) -> None:
    exporter.answer = text(
        f"DCGM_FI_DEV_CLOCKS_EVENT_REASONS{{{BOARD}}} 0",
        f"DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS{{{BOARD}}} 5000000000",
    )
    source = Dcgm(exporter.url, {})
    sampled(source)
    assert source.absent["throttle.swThermalSeconds"].startswith("sampled: ")
    assert "throttle.swPowerCapSeconds" not in source.absent
    source.close()


def test_a_gpu_that_the_exporter_no_longer_reports_has_a_reason(exporter: Exporter) -> None:
    second = BOARD.replace('gpu="1"', 'gpu="2"')
    one_gpu, two = f"DCGM_FI_DEV_GPU_UTIL{{{BOARD}}} 37", f"DCGM_FI_DEV_GPU_UTIL{{{second}}} 38"
    exporter.answer = text(one_gpu, two)
    source = Dcgm(exporter.url, {})
    sampled(source)
    exporter.answer = text(one_gpu)
    assert sampled(source, 105.0).gauges == {"gpu.1.gpu": 37.0}
    assert source.absent["gpu.2"] == "no longer reported by the exporter"
    exporter.answer = text(one_gpu, two)
    sampled(source, 110.0)
    assert "gpu.2" not in source.absent
    source.close()
