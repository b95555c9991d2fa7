"""Remote write, as a sender sees it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import Any

import cramjam
import httpx
import pytest
import zstandard
from sqlalchemy import select

from runvitals.base.protobuf import text, uint, varint
from runvitals.server.database.tables.usage import usage_dirty
from runvitals.server.http.body_limits import Limits
from tests.patience import PATIENCE_S, eventually
from tests.server.doors.remote_write.messages import STALE, histogram, post, version_1, version_2
from tests.server.serving import Served, serving

NOW_MS = time.time_ns() // 1_000_000 // 1000 * 1000 - 60_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("remote_write"), limits=Limits(message_bytes=1 << 20)) as served:
        yield served


def values(served: Served, run: str, key: str) -> dict[int, float | None]:
    """The samples of a key, by time."""
    parameters = {"keys": key, "resolution": "raw"}
    body: Any = httpx.get(
        f"{served.url}/api/v1/runs/{run}/metrics", params=parameters, timeout=PATIENCE_S
    ).json()
    return {
        t: value
        for group in body["groups"]
        for series in group["series"].values()
        for t, value in zip(group["t"], series, strict=True)
    }


def gpu(run: str, **labels: str) -> dict[str, str]:
    return {"__name__": "DCGM_FI_DEV_GPU_TEMP", "gpu": "3", "Hostname": "n1", "runvitals_run": run, **labels}


def test_a_sample_is_under_our_key_when_the_request_is_answered(served: Served) -> None:
    response = post(served.url, version_1([(gpu("one"), [(NOW_MS, 51.0)])]))
    assert (response.status_code, response.headers["x-prometheus-remote-write-samples-written"]) == (204, "1")
    assert values(served, "one", "gpu.3.temp") == {NOW_MS: 51.0}


def test_what_stands_for_no_value_is_not_stored(served: Served) -> None:
    def dcgm(name: str, value: float, run: str = "blanks") -> Any:
        return ({**gpu(run), "__name__": f"DCGM_FI_{name}"}, [(NOW_MS, value)])

    series = [
        dcgm("DEV_GPU_UTIL", 4294967295.0),
        dcgm("DEV_GPU_TEMP", 4294967295.0),
        dcgm("PROF_SM_ACTIVE", 4294967295.0),
        dcgm("PROF_DRAM_ACTIVE", 1.25),
        dcgm("DEV_FB_USED", 81000.0),
        dcgm("DEV_FB_TOTAL", 1620.0),
        dcgm("DEV_SM_CLOCK", 1980.0),
        ({"__name__": "memory", "runvitals_run": "blanks", "Hostname": "n1"}, [(NOW_MS, 8e9)]),
    ]
    assert post(served.url, version_1(series)).status_code == 204
    kept = {
        key: values(served, "blanks", key)
        for key in ("gpu.3.gpu", "gpu.3.temp", "gpu.3.smActive", "gpu.3.memoryAllocated")
    }
    assert not any(kept.values())
    assert values(served, "blanks", "gpu.3.dramActive") == {NOW_MS: 100.0}
    assert values(served, "blanks", "gpu.3.smClock") == {NOW_MS: 1980.0}


def test_power_far_above_the_limit_is_marked(served: Served) -> None:
    series = [
        ({**gpu("bogus"), "__name__": f"DCGM_FI_DEV_{name}"}, [(NOW_MS, watts)])
        for name, watts in (("POWER_USAGE", 588.4), ("ENFORCED_POWER_LIMIT", 35.0))
    ]
    assert post(served.url, version_1(series)).status_code == 204
    assert values(served, "bogus", "gpu.3.powerWatts") == {NOW_MS: 588.4}
    assert values(served, "bogus", "gpu.3.powerSuspect") == {NOW_MS: 1.0}
    assert values(served, "bogus", "gpu.3.powerPercent") == {}


def test_version_2_stores_the_same(served: Served) -> None:
    response = post(served.url, version_2([(gpu("two"), [(NOW_MS, 51.0), (NOW_MS + 5000, 0.0)])]), version=2)
    assert (response.status_code, response.headers["x-prometheus-remote-write-samples-written"]) == (204, "2")
    assert values(served, "two", "gpu.3.temp") == {NOW_MS: 51.0, NOW_MS + 5000: 0.0}


def test_samples_may_come_in_any_order_and_again(served: Served) -> None:
    for t in (NOW_MS + 2000, NOW_MS, NOW_MS + 1000, NOW_MS):
        assert post(served.url, version_1([(gpu("order"), [(t, (t - NOW_MS) / 1000)])])).status_code == 204
    expected = {NOW_MS: 0.0, NOW_MS + 1000: 1.0, NOW_MS + 2000: 2.0}
    assert values(served, "order", "gpu.3.temp") == expected


def test_a_stale_marker_is_a_gap(served: Served) -> None:
    sent = [(NOW_MS, 51.0), (NOW_MS + 1000, STALE), (NOW_MS + 2000, 52.0)]
    assert post(served.url, version_1([(gpu("stale"), sent)])).status_code == 204
    assert values(served, "stale", "gpu.3.temp") == {NOW_MS: 51.0, NOW_MS + 1000: None, NOW_MS + 2000: 52.0}


def test_other_names_keep_their_labels_but_those_of_run_and_host(served: Served) -> None:
    labels = {"__name__": "queue_size", "instance": "n1", "runvitals_run": "other", "queue": 'a"b'}
    assert post(served.url, version_1([(labels, [(NOW_MS, 7.0)])])).status_code == 204
    assert values(served, "other", r'queue_size{queue="a\"b"}') == {NOW_MS: 7.0}


def test_exporters_on_one_host_have_series_of_their_own(served: Served) -> None:
    for tick in range(3):
        for port in (9171, 9172):
            labels = {"__name__": "jobs_total", "instance": f"n6:{port}", "job": "queue"}
            sent = [(NOW_MS + tick * 1000, float(port * 1000 + tick))]
            assert post(served.url, version_1([(labels, sent)])).status_code == 204
    for port in (9171, 9172):
        key = f'jobs_total{{instance="n6:{port}",job="queue"}}'
        expected = {NOW_MS + tick * 1000: float(port * 1000 + tick) for tick in range(3)}
        assert values(served, "host-n6", key) == expected


def node(name: str, port: int, run: str = "two", **labels: str) -> dict[str, str]:
    return {"__name__": name, "instance": f"n1:{port}", "job": "node", "runvitals_run": run, **labels}


@pytest.mark.parametrize("together", [True, False])
def test_two_exporters_of_a_metric_of_ours_are_told_apart(served: Served, together: bool) -> None:
    run, begun_ms, ticks = f"two-{together}", NOW_MS - 60_000, range(0, 60_000, 15_000)
    series = [
        (node("node_load1", port, run), [(begun_ms + tick + port, load + tick / 1000) for tick in ticks])
        for port, load in ((9100, 0.5), (9101, 700.0))
    ]
    for part in [series] if together else [[one] for one in series]:
        assert post(served.url, version_1(part)).status_code == 204
    first, second = (dict(samples) for _, samples in series)
    assert values(served, run, "system.load1") == first
    assert values(served, run, 'node_load1{instance="n1:9101",job="node"}') == second


def test_exporters_stay_apart_after_a_restart(tmp_path: Path) -> None:
    run = "restarted"
    series = [
        (node("node_load1", port, run), [(NOW_MS - 60_000 + tick, load) for tick in (0, 15_000)])
        for port, load in ((9100, 0.5), (9101, 700.0))
    ]
    with serving(tmp_path) as served:
        assert post(served.url, version_1(series)).status_code == 204
    later = [
        (
            labels,
            [(NOW_MS - 30_000 + tick, value) for tick, (_, value) in zip((0, 15_000), sent, strict=True)],
        )
        for labels, sent in series
    ]
    with serving(tmp_path) as served:
        for one in reversed(later):  # the other exporter sends first
            assert post(served.url, version_1([one])).status_code == 204
        assert set(values(served, run, "system.load1").values()) == {0.5}
        other = 'node_load1{instance="n1:9101",job="node"}'
        assert set(values(served, run, other).values()) == {700.0}


def test_labels_that_change_go_on_with_the_metric(served: Served) -> None:
    """As those of a pod that was replaced: Prometheus ends the former series when it scrapes the next one."""
    run = "replaced"
    before = node("node_load1", 9100, run, pod="a"), [(NOW_MS - 30_000, 1.0), (NOW_MS - 15_000, STALE)]
    after = node("node_load1", 9100, run, pod="b"), [(NOW_MS - 15_000, 2.0), (NOW_MS, 3.0)]
    for part in (before, after):
        assert post(served.url, version_1([part])).status_code == 204
    loads = {NOW_MS - 30_000: 1.0, NOW_MS - 15_000: 2.0, NOW_MS: 3.0}
    assert values(served, run, "system.load1") == loads


def test_derived_metrics_of_two_exporters_are_not_mixed(served: Served) -> None:
    run = "derived"
    for port, total in ((9100, 100.0), (9101, 1000.0)):
        part = [
            (node(f"node_memory_{name}_bytes", port, run), [(NOW_MS + tick, value) for tick in (-15_000, 0)])
            for name, value in (("MemTotal", total), ("MemAvailable", 25.0), ("MemFree", 10.0))
        ]
        assert post(served.url, version_1(part)).status_code == 204
    assert set(values(served, run, "memory_percent").values()) == {75.0}


def test_without_a_run_the_host_has_one(served: Served) -> None:
    labels = {"__name__": "node_load1", "instance": "n7:9100", "job": "node"}
    assert post(served.url, version_1([(labels, [(NOW_MS, 1.5)])])).status_code == 204
    assert values(served, "host-n7", "system.load1") == {NOW_MS: 1.5}
    assert httpx.get(f"{served.url}/api/v1/runs/host-n7", timeout=PATIENCE_S).json()["name"] == "n7"


def test_a_host_tells_how_often_it_sends(served: Served) -> None:
    for t in (NOW_MS, NOW_MS + 15_000, NOW_MS + 30_000):
        assert post(served.url, version_1([(gpu("often"), [(t, 1.0)])])).status_code == 204

    def interval_s() -> float | None:
        run = httpx.get(f"{served.url}/api/v1/runs/often", timeout=PATIENCE_S).json()
        return run["hosts"][0]["interval_s"]

    eventually(lambda: interval_s() == 45.0)


def test_the_name_of_a_run_is_no_usage_of_the_year_2000(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        labels = {"__name__": "node_load1", "instance": "n8:9100"}
        assert post(served.url, version_1([(labels, [(NOW_MS, 1.5)])])).status_code == 204
        query = select(usage_dirty.c.from_ms)

        def marked() -> list[int]:
            return list(served.metadata_store.write(lambda connection: connection.execute(query)).scalars())

        eventually(marked)
        assert marked() == [NOW_MS]


def test_requests_that_are_cut_elsewhere_store_all(served: Served) -> None:
    named = [({**gpu("cut"), "__name__": f"metric{number}"}, number) for number in range(20)]
    for tick, (first, end) in enumerate(((0, 20), (0, 20), (3, 11), (3, 11), (5, 20))):
        sent = [(labels, [(NOW_MS + tick, float(number))]) for labels, number in named[first:end]]
        assert post(served.url, version_1(sent)).status_code == 204
    key = 'metric{}{{gpu="3"}}'
    assert values(served, "cut", key.format(4)) == dict.fromkeys(range(NOW_MS, NOW_MS + 4), 4.0)
    times = [NOW_MS, NOW_MS + 1, NOW_MS + 4]
    assert values(served, "cut", key.format(15)) == dict.fromkeys(times, 15.0)


def test_a_project_is_named_in_a_header(served: Served) -> None:
    response = post(
        served.url, version_1([(gpu("placed"), [(NOW_MS, 1.0)])]), **{"x-runvitals-project": "atlas"}
    )
    assert response.status_code == 204
    run = httpx.get(f"{served.url}/api/v1/runs/placed", timeout=PATIENCE_S).json()
    assert run["project"] == "atlas"


def test_a_part_that_is_too_new_is_named_and_the_rest_is_stored(served: Served) -> None:
    sent = [(gpu("late"), [(NOW_MS, 1.0), (NOW_MS + 10 * 365 * 86_400_000, 2.0)])]
    response = post(served.url, version_1(sent))
    assert (response.status_code, response.headers["x-prometheus-remote-write-samples-written"]) == (400, "1")
    assert "1 samples are too far in the future" in response.text
    assert values(served, "late", "gpu.3.temp") == {NOW_MS: 1.0}


def test_vmagents_zstd(served: Served) -> None:
    message = version_1([(gpu("zstd"), [(NOW_MS, 51.0)])])
    body = zstandard.ZstdCompressor().compress(message)
    headers = {"content-encoding": "zstd", "content-type": "application/x-protobuf"}
    address = f"{served.url}/prometheus/api/v1/write"
    response = httpx.post(address, content=body, headers=headers, timeout=PATIENCE_S)
    assert (response.status_code, values(served, "zstd", "gpu.3.temp")) == (204, {NOW_MS: 51.0})


def written(response: httpx.Response) -> tuple[int, ...]:
    """How many samples and native histograms were stored."""
    name = "x-prometheus-remote-write-{}-written"
    return tuple(int(response.headers[name.format(kind)]) for kind in ("samples", "histograms"))


def of_series(message: bytes, **labels: str) -> bytes:
    """A series of version 1 with a native histogram."""
    pairs = sorted({"__name__": "wait", "Hostname": "n1", **labels}.items())
    return text(
        1, b"".join(text(1, text(1, name) + text(2, value)) for name, value in pairs) + text(4, message)
    )


def test_native_histograms_are_stored_as_classic_ones(served: Served) -> None:
    metadata = text(3, uint(1, 1) + text(2, "up"))
    sent = [
        of_series(histogram(3, {0: 2, 12: 3}, total=9.0, t=NOW_MS), runvitals_run="waits"),
        of_series(histogram(9, {0: 2}, total=9.0, t=NOW_MS), runvitals_run="waits"),
        of_series(histogram(3, {0: 2}, total=9.0, t=1), runvitals_run="waits"),
    ]
    response = post(served.url, version_1([(gpu("waits"), [(NOW_MS, 51.0)])], metadata, *sent))
    assert (response.status_code, written(response)) == (400, (1, 1))
    assert "samples are too old" in response.text
    assert "1 native histograms have buckets of an unknown kind" in response.text
    stored = {
        suffix: values(served, "waits", f"wait_{suffix}") for suffix in ("count", "sum", 'bucket{le="4"}')
    }
    assert stored == {"count": {NOW_MS: 5.0}, "sum": {NOW_MS: 9.0}, 'bucket{le="4"}': {NOW_MS: 5.0}}
    assert values(served, "waits", 'wait_bucket{le="1"}') == {NOW_MS: 2.0}


def raw(served: Served, body: bytes, **headers: str) -> httpx.Response:
    sent = {"content-type": "application/x-protobuf", "content-encoding": "snappy", **headers}
    return httpx.post(f"{served.url}/api/v1/write", content=body, headers=sent, timeout=PATIENCE_S)


def test_hostile_bodies_are_rejected_for_good(served: Served) -> None:
    huge = varint(1 << 40) + b"\0" * 100  # the block declares a terabyte
    many = bytes(cramjam.snappy.compress_raw(b"\0" * (2 << 20)))
    packed = zstandard.ZstdCompressor().compress(b"\0" * (2 << 20))
    for body in (b"", b"\xff" * 20, huge, many, bytes(cramjam.snappy.compress_raw(b"\x0a\xff\x01"))):
        assert raw(served, body).status_code == 400, body[:20]
    assert raw(served, packed, **{"content-encoding": "zstd"}).status_code == 400
    unnamed = version_1([({"job": "a"}, [(NOW_MS, 1.0)])])
    refused = post(served.url, unnamed)
    assert "without the label __name__" in refused.text
    assert refused.headers["x-prometheus-remote-write-samples-written"] == "0"
    mixed = version_1([({"job": "a"}, [(NOW_MS, 1.0)]), ({"__name__": "good", "host": "n"}, [(NOW_MS, 1.0)])])
    partly = post(served.url, mixed)
    assert (partly.status_code, partly.headers["x-prometheus-remote-write-samples-written"]) == (400, "1")
    assert raw(served, b"\0", **{"content-type": "application/json"}).status_code == 415
    assert "x-prometheus-remote-write-samples-written" in raw(served, b"").headers
    assert raw(served, b"\0", **{"content-encoding": "br"}).status_code == 415


def test_more_series_than_one_request_may_have(monkeypatch: pytest.MonkeyPatch, served: Served) -> None:
    monkeypatch.setattr("runvitals.server.doors.remote_write.series_table.MAX_SERIES", 100)
    monkeypatch.setattr("runvitals.server.doors.remote_write.receiver.MAX_SERIES", 100)
    headers = {"x-runvitals-project": "small"}  # a table of its own

    def sent(first: int, count: int) -> int:
        named = [({"__name__": f"s{number}", "host": "n"}, [(NOW_MS, 1.0)]) for number in range(first, count)]
        return post(served.url, version_1(named), **headers).status_code

    assert [sent(0, 60), sent(60, 120), sent(0, 60), sent(0, 200)] == [204, 204, 204, 400]


def test_many_hosts_and_times_in_one_request(served: Served) -> None:
    series = [
        (
            {"__name__": f"m{number}", "instance": f"h{host}:1", "job": "j"},
            [(NOW_MS + 1000 * tick, float(number)) for tick in range(3)],
        )
        for host in range(3)
        for number in range(20)
    ]
    assert post(served.url, version_1(series)).status_code == 204
    stored = values(served, "host-h2", 'm19{instance="h2:1",job="j"}')
    assert stored == {NOW_MS + 1000 * tick: 19.0 for tick in range(3)}
    assert not any(isnan(value) for value in stored.values() if value is not None)
