"""Exporters' numbers become keys. Errors of one exporter are reported and do not affect the others."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope, Tick
from runvitals.monitoring.collectors.openmetrics import endpoint as module
from runvitals.monitoring.collectors.openmetrics.collector import OpenMetrics, probe
from runvitals.monitoring.collectors.openmetrics.endpoint import ExporterEndpoint, MetricFilters
from runvitals.monitoring.monitor.baselines import Baselines
from runvitals.monitoring.monitor.sampler import Sampler
from tests.isolated import printed
from tests.monitoring.collectors.exporters import Exporter, ok
from tests.patience import PATIENCE_S

TEXT = """\
# HELP room_temp Temperature of a room.
# TYPE room_temp gauge
# UNIT room_temp celsius
room_temp{room="kitchen"} 21.5
room_temp{room="cellar"} 12
# TYPE doors_opened_total counter
doors_opened_total{room="kitchen"} 1007
doors_opened_created{room="kitchen"} 1.7e9
# TYPE wait_seconds histogram
wait_seconds_bucket{le="1"} 3
wait_seconds_bucket{le="+Inf"} 4
wait_seconds_sum 5.5
wait_seconds_count 4
no_type 1
# TYPE broken gauge
broken{kind="nan"} NaN
broken{kind="inf"} +Inf
broken{kind="fine"} 3
"""
HOME = "openmetrics.home."


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    with Exporter(ok(TEXT)) as exporter:
        yield exporter


@pytest.fixture
def collect() -> Iterator[Callable[..., OpenMetrics]]:
    """Creates collectors from settings, and closes them."""
    created: list[OpenMetrics] = []

    def collect(urls: dict[str, str], **settings: Any) -> OpenMetrics:
        options = {f"openmetrics_{name}": value for name, value in settings.items()}
        created.append(probe(Scope(options={"openmetrics_endpoints": urls, **options})))
        return created[-1]

    yield collect
    for each in created:
        each.close()


def answer(source: OpenMetrics | ExporterEndpoint, mono_s: float) -> Tick:
    """A tick with the results of its requests, which may arrive in a later tick at the same time."""
    tick = Tick(mono_s)
    until_s = time.monotonic() + PATIENCE_S
    source.sample(tick)
    while any(aside.pending for aside in readers(source)):
        assert time.monotonic() < until_s
        time.sleep(0.002)
        source.sample(tick)
    return tick


def readers(source: OpenMetrics | ExporterEndpoint) -> list[Any]:
    endpoints = source._endpoints if isinstance(source, OpenMetrics) else [source]
    return [endpoint._reader for endpoint in endpoints]


def run_isolated(code: str) -> str:
    """The output of a program in a separate Python without installed packages, like the monitor's."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-S", "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_absent_without_an_endpoint_and_nothing_is_imported() -> None:
    with pytest.raises(Absent, match="no endpoint is configured \\(RUNVITALS_OPENMETRICS_ENDPOINTS\\)"):
        probe(Scope(options={"openmetrics_endpoints": {}}))
    code = """
import sys
from runvitals.monitoring.collectors import sources
from runvitals.monitoring.collectors.base import Scope
found = sources.probe_all(Scope(), ["openmetrics"])
assert found.reasons == {"openmetrics": "no endpoint is configured (RUNVITALS_OPENMETRICS_ENDPOINTS)"}, found
print([name for name in sys.modules if name.endswith((".endpoint", ".http", ".exposition"))])
"""
    assert run_isolated(code) == "[]\n"


def test_re_is_imported_only_for_filters(exporter: Exporter) -> None:
    code = f"""
import sys
from runvitals.monitoring.collectors.base import Scope, Tick
from runvitals.monitoring.collectors.openmetrics.collector import probe
options = {{"openmetrics_endpoints": {{"home": {exporter.url!r}}}}}
collector = probe(Scope(options=options))
collector.sample(Tick(100.0))
print("re" in sys.modules)
probe(Scope(options={{**options, "openmetrics_filters": ["temp"]}}))
print("re" in sys.modules)
"""
    assert run_isolated(code) == "False\nTrue\n"


def test_types_distinguish_gauges_and_counters(
    exporter: Exporter, collect: Callable[..., OpenMetrics]
) -> None:
    tick = answer(collect({"home": exporter.url}), 100.0)
    assert tick.gauges == {
        f"{HOME}room_temp.0": 21.5,
        f"{HOME}room_temp.1": 12.0,
        f"{HOME}no_type.0": 1.0,
        f"{HOME}broken.2": 3.0,
    }
    assert tick.counters == {
        f"{HOME}doors_opened_total.0": 1007.0,
        f"{HOME}wait_seconds_bucket.0": 3.0,
        f"{HOME}wait_seconds_bucket.1": 4.0,
        f"{HOME}wait_seconds_sum.0": 5.5,
        f"{HOME}wait_seconds_count.0": 4.0,
    }


def test_facts_map_series_numbers_to_labels(exporter: Exporter, collect: Callable[..., OpenMetrics]) -> None:
    collector = collect({"home": exporter.url.replace("http://", "http://me:hidden@") + "?token=hidden"})
    answer(collector, 100.0)
    home = collector.facts["openmetrics"]["home"]  # type: ignore[index]
    assert home["url"] == exporter.url
    assert home["metrics"]["room_temp"] == {
        "type": "gauge",
        "help": "Temperature of a room.",
        "unit": "celsius",
        "series": [{"room": "kitchen"}, {"room": "cellar"}],
    }
    assert home["metrics"]["wait_seconds_bucket"] == {
        "type": "histogram",
        "series": [{"le": "1"}, {"le": "+Inf"}],
    }
    assert home["metrics"]["no_type"] == {"type": "unknown", "series": [{}]}
    assert "hidden" not in str(collector.facts)


def test_a_series_keeps_its_number(exporter: Exporter, collect: Callable[..., OpenMetrics]) -> None:
    collector = collect({"home": exporter.url})
    exporter.answer = ok('t{a="1",b="2"} 1\nt{a="2"} 2\n')
    assert answer(collector, 100.0).gauges == {f"{HOME}t.0": 1.0, f"{HOME}t.1": 2.0}
    exporter.answer = ok('t{a="3"} 3\nt{b="2",a="1"} 4\n')
    assert answer(collector, 101.0).gauges == {f"{HOME}t.2": 3.0, f"{HOME}t.0": 4.0}


def test_facts_change_only_with_the_series(exporter: Exporter, collect: Callable[..., OpenMetrics]) -> None:
    collector = collect({"home": exporter.url})
    answer(collector, 100.0)
    first = collector.facts
    exporter.answer = ok('room_temp{room="attic"} 30\n')
    answer(collector, 101.0)
    assert collector.facts is first
    answer(collector, 111.0)
    facts: Any = collector.facts["openmetrics"]
    assert facts["home"]["metrics"]["room_temp"]["series"][2] == {"room": "attic"}
    second = collector.facts
    answer(collector, 130.0)
    assert collector.facts is second


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        (["temp"], {"room_temp.0": 21.5, "room_temp.1": 12.0}),
        (["^home.no_", "nothing"], {"no_type.0": 1.0}),
        ({"room_temp": {"room": "^cel"}}, {"room_temp.0": 12.0}),
        ({"temp": {"room": "cellar", "floor": "."}}, {}),
        ({"room_temp": {"room": "cellar"}, "no_type": {}}, {"room_temp.0": 12.0, "no_type.0": 1.0}),
    ],
)
def test_filters_keep_series_that_match_one_of_them(
    exporter: Exporter, collect: Callable[..., OpenMetrics], filters: Any, kept: dict[str, float]
) -> None:
    collector = collect({"home": exporter.url}, filters=filters)
    tick = answer(collector, 100.0)
    assert (tick.gauges, tick.counters) == ({HOME + key: value for key, value in kept.items()}, {})
    assert collector.absent == ({} if kept else {"home": "openmetrics_filters match none of its metrics"})


def test_headers_are_sent_to_every_endpoint(exporter: Exporter, collect: Callable[..., OpenMetrics]) -> None:
    with Exporter(ok("up 1\n")) as other:
        urls = {"home": exporter.url, "away": other.url}
        answer(collect(urls, headers={"Authorization": "Bearer abc"}), 100.0)
        for request in (exporter.requests[0], other.requests[0]):
            assert "\r\nAuthorization: Bearer abc\r\n" in request


def test_an_endpoint_is_read_at_most_once_a_second(
    exporter: Exporter, collect: Callable[..., OpenMetrics]
) -> None:
    collector = collect({"home": exporter.url})
    for mono_s in (100.0, 100.25, 100.5, 100.75):
        answer(collector, mono_s)
    assert len(exporter.requests) == 1
    assert answer(collector, 101.0).gauges
    assert len(exporter.requests) == 2


def test_expensive_endpoints_are_read_less_often(exporter: Exporter) -> None:
    clock_s = iter(range(1000))  # parsing a response takes 1 s of CPU
    endpoint = ExporterEndpoint("home", exporter.url, {}, None, cpu_s=lambda: float(next(clock_s)))
    request_counts = []
    for mono_s in range(100, 260, 10):
        answer(endpoint, float(mono_s))
        request_counts.append(len(exporter.requests))
    endpoint.close()
    assert request_counts[:4] == [1, 1, 2, 2]
    assert request_counts[-1] == 8


def test_a_hanging_endpoint_does_not_delay_the_others(
    exporter: Exporter, collect: Callable[..., OpenMetrics], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT_S", 1000.0)
    with Exporter(None) as silent:
        collector = collect({"silent": silent.url, "home": exporter.url})
        tick = Tick(100.0)
        collector.sample(tick)
        assert collector.pending
        until_s = time.monotonic() + PATIENCE_S
        while f"{HOME}room_temp.0" not in tick.gauges:
            assert time.monotonic() < until_s
            collector.sample(tick)
            time.sleep(0.002)
        assert tick.gauges[f"{HOME}room_temp.0"] == 21.5
        assert collector.pending  # the other has not responded yet


def test_a_timeout_is_reported(collect: Callable[..., OpenMetrics], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT_S", 0.3)
    with Exporter(None) as silent:
        collector = collect({"silent": silent.url})
        answer(collector, 100.0)
        assert collector.absent == {"silent": f"{silent.url} did not respond within 0.3 s"}
        assert not collector.pending


def test_a_hang_without_a_timeout_is_reported_as_a_timeout(
    collect: Callable[..., OpenMetrics], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT_S", 2.0)
    with Exporter(None) as silent:
        collector = collect({"silent": silent.url})
        collector.sample(Tick(100.0))
        collector.sample(Tick(131.0))
        first = collector.absent
        collector.sample(Tick(132.0))
        assert collector.absent is first
        assert "has not responded for more than 30 s" in first["silent"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (b"HTTP/1.1 503 Busy\r\n\r\n", "responded with status 503"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99000000\r\n\r\n", "sent more than 16777216 bytes"),
        (
            ok(gzip.compress(b" " * (17 << 20), mtime=0), "Content-Encoding: gzip"),
            "sent more than 16777216 bytes",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nup 1\n", "sent a truncated response"),
        (ok("<html>\n<body>log in</body>"), "sent no metrics: line 1, '<html>'"),
        (ok("up 1\n", "Content-Type: application/openmetrics-text; version=1.0.0"), "it has no # EOF"),
        (b"ERR unknown command\r\n\r\n", "sent a response that is not HTTP"),
    ],
)
def test_an_invalid_response_is_reported_without_affecting_the_others(
    exporter: Exporter, collect: Callable[..., OpenMetrics], wrong: bytes, why: str
) -> None:
    with Exporter(wrong) as broken:
        collector = collect({"broken": broken.url, "home": exporter.url})
        tick = answer(collector, 100.0)
        assert broken.url in collector.absent["broken"]
        assert why in collector.absent["broken"]
        assert [key for key in tick.gauges if not key.startswith(HOME)] == []
        assert f"{HOME}room_temp.0" in tick.gauges


def test_invalid_lines_are_skipped_and_reported_once(
    exporter: Exporter, collect: Callable[..., OpenMetrics]
) -> None:
    collector = collect({"home": exporter.url})
    exporter.answer = ok("up 1\nload{ 3\n")
    assert answer(collector, 100.0).gauges == {f"{HOME}up.0": 1.0}
    first = collector.absent
    assert first["home"].startswith("some lines could not be parsed, such as line 2, 'load{ 3'")
    exporter.answer = ok("up 1\nload{ 4\n")
    answer(collector, 101.0)
    assert collector.absent is first
    exporter.answer = ok("up 1\n")
    answer(collector, 102.0)
    assert collector.absent == {}


def test_an_endpoint_that_is_down_is_retried_with_backoff(
    collect: Callable[..., OpenMetrics],
) -> None:
    with Exporter(b"") as exporter:
        collector = collect({"home": exporter.url})
        asked_at: list[int] = []
        for mono_s in range(100, 500):
            answer(collector, float(mono_s))
            if len(exporter.requests) > len(asked_at):
                asked_at.append(mono_s)
        waits_s = [later - earlier for earlier, later in pairwise(asked_at)]
        # Up to one and a half times as long, and then at the next second.
        for wait_s, least_s in zip(waits_s, [1, 2, 4, 8, 16, 32, 60, 60], strict=False):
            assert least_s <= wait_s <= 1.5 * least_s + 1
        assert 6 <= len(waits_s) <= 10
        assert "closed the connection without a response" in collector.absent["home"]
        exporter.answer = ok("up 1\n")
        assert answer(collector, asked_at[-1] + 59.0).gauges == {}
        assert answer(collector, 600.0).gauges == {f"{HOME}up.0": 1.0}
        assert collector.absent == {}
        assert answer(collector, 601.0).gauges == {f"{HOME}up.0": 1.0}
    answer(collector, 602.0)
    assert "connection refused" in collector.absent["home"]


def test_too_many_series_are_truncated_and_reported(
    exporter: Exporter, collect: Callable[..., OpenMetrics], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_SERIES", 3)
    collector = collect({"home": exporter.url})
    exporter.answer = ok("".join(f'request{{id="{n}"}} {n}\n' for n in range(5)))
    assert answer(collector, 100.0).gauges == {f"{HOME}request.{n}": float(n) for n in range(3)}
    assert collector.absent == {"home": "more than 3 series; use openmetrics_filters to select some"}


def test_a_counter_starts_at_0_and_a_reset_is_a_gap(
    exporter: Exporter, collect: Callable[..., OpenMetrics]
) -> None:
    collector = collect({"home": exporter.url})
    baselines = Baselines()
    seen = []
    values: dict[str, float] = {}
    for mono_s, total in enumerate((1000, 1030, 5, 15), 100):
        exporter.answer = ok(f"# TYPE jobs_total counter\njobs_total {total}\n")
        tick = answer(collector, float(mono_s))
        baselines.add(tick.counters, values)
        seen.append(values[f"{HOME}jobs_total.0"])
    assert str(seen) == "[0.0, 30.0, nan, 40.0]"


def test_the_monitor_records_endpoints_that_are_down(collect: Callable[..., OpenMetrics]) -> None:
    with Exporter(b"") as exporter:
        url = exporter.url
    collector = collect({"home": url})
    sampler = Sampler([collector], 1.0, lambda _name, _error: None)
    assert sampler.news() == {"machine": {"openmetrics": {"home": {"url": url, "metrics": {}}}}}
    answer(collector, 100.0)
    sampler.sample(100.5)
    state = {"state": "on", "reason": f"home: {url} cannot be read: connection refused"}
    assert sampler.news() == {"sources": {"openmetrics": state}}
    assert sampler.news() == {}


def test_a_filter_without_labels_matches_all_series_of_a_metric() -> None:
    assert MetricFilters({"temp": {}}).keep("home.room_temp", {"room": "cellar"})
    assert not MetricFilters({"temp": {"room": "x"}}).keep("home.room_temp", {})


def test_too_long_labels_are_truncated_and_reported(
    exporter: Exporter, collect: Callable[..., OpenMetrics], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CHARACTERS", 1000)
    collector = collect({"home": exporter.url})
    exporter.answer = ok("".join(f'request{{id="{n}{"x" * 300}"}} {n}\n' for n in range(5)))
    assert len(answer(collector, 100.0).gauges) == 3
    why = "more than 1000 characters of labels; use openmetrics_filters to select some"
    assert collector.absent == {"home": why}


MEMORY = """
import time
from runvitals.monitoring.collectors.base import Tick
from runvitals.monitoring.collectors.openmetrics.endpoint import ExporterEndpoint

def most_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

endpoint = ExporterEndpoint("home", sys.argv[1], {}, None)
before, tick = most_kib(), Tick(1.0)
while not tick.counters:
    endpoint.sample(tick)
    time.sleep(0.005)
print(len(tick.counters), most_kib() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="VmHWM is Linux's")
def test_a_response_of_many_megabytes_needs_little_memory() -> None:
    page = "".join(
        f'# TYPE jobs{n} counter\njobs{n}{{path="/a/{n}",host="node{n}"}} {n}\n' for n in range(70_000)
    )
    assert len(page) > 4_000_000
    with Exporter(ok(page)) as exporter:
        series, more_kib = map(int, printed(MEMORY, exporter.url).split())
    assert series == 5000
    assert more_kib < 32 * 1024  # 84 MB if it is read as a whole
