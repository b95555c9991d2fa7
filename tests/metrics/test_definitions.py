"""How a concrete key finds its row."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.metrics import DEFINITIONS, MetricDefinitions
from runvitals.metrics.metric import Metric, counter, gauge, placeholders, rate


def row(key: str, **fields: object) -> Metric:
    return gauge(key, "%", "CPU", name="x", text="A text.", source="a file", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("key", "template", "labels"),
    [
        ("cpu", "cpu", {}),
        ("cpu.12.cpu_percent", "cpu.{i}.cpu_percent", {"i": "12"}),
        ("disk./data/v1.5.usagePercent", "disk.{path}.usagePercent", {"path": "/data/v1.5"}),
        ("disk.C:\\.usageGB", "disk.{path}.usageGB", {"path": "C:\\"}),
        ("disk.in", "disk.in", {}),
        ("disk.sda.in", "disk.{dev}.in", {"dev": "sda"}),
        ("network.eth0.100.sent", "network.{nic}.sent", {"nic": "eth0.100"}),
        ("network.ib.mlx5_0.1.errors", "network.ib.{dev}.{port}.errors", {"dev": "mlx5_0", "port": "1"}),
        ("network.efa.rdmap0s6.1.sent", "network.efa.{dev}.{port}.sent", {"dev": "rdmap0s6", "port": "1"}),
        ("gpu.process.0.temp", "gpu.process.{i}.temp", {"i": "0"}),
        ("monitor.disk.failures", "monitor.{source}.failures", {"source": "disk"}),
        ("gpu.0.throttle.heatSeconds", "gpu.{i}.throttle.{reason}Seconds", {"i": "0", "reason": "heat"}),
        (
            "openmetrics.a.b.3",
            "openmetrics.{endpoint}.{metric}.{n}",
            {"endpoint": "a", "metric": "b", "n": "3"},
        ),
        (
            "openmetrics.a.b_total.0",
            "openmetrics.{endpoint}.{metric}_total.{n}",
            {"endpoint": "a", "metric": "b", "n": "0"},
        ),
        (
            "openmetrics.a.b_bucket.7",
            "openmetrics.{endpoint}.{metric}_bucket.{n}",
            {"endpoint": "a", "metric": "b", "n": "7"},
        ),
        (
            "openmetrics.a.b.perSecond.0",
            "openmetrics.{endpoint}.{metric}.perSecond.{n}",
            {"endpoint": "a", "metric": "b", "n": "0"},
        ),
    ],
)
def test_a_concrete_key_finds_its_row(key: str, template: str, labels: dict[str, str]) -> None:
    match = DEFINITIONS.find(key)
    assert match is not None
    assert (match.metric.key, match.key, match.labels) == (template, key, labels)


@pytest.mark.parametrize(
    "key", ["", "loss", "gpu.x.temp", "gpu..temp", "gpu.²", "gpu.0.temp ", "xgpu.0.temp", "cpu."]
)
def test_an_unknown_key_finds_none(key: str) -> None:
    assert DEFINITIONS.find(key) is None


@given(st.text())
def test_any_text_at_all_can_be_asked_for(key: str) -> None:
    match = DEFINITIONS.find(key)
    assert match is None or match.key


@given(st.sampled_from(DEFINITIONS.metrics), st.data())
def test_every_template_is_found_again_whatever_its_places_hold(metric: Metric, data: st.DataObject) -> None:
    names = st.from_regex(r"[a-z/][a-z0-9_/]{0,9}", fullmatch=True)
    indexes = st.integers(0, 200).map(str)
    labels = {
        name: data.draw(indexes if name in ("i", "core", "port", "n", "gi", "ci") else names)
        for name in placeholders(metric.key)
    }
    match = DEFINITIONS.find(metric.key.format(**labels))
    assert match is not None
    assert match.metric.key == metric.key


def test_an_alias_gives_the_canonical_key_with_the_same_labels() -> None:
    match = DEFINITIONS.find("gpu.5.uncorrectedMemoryErrors")
    assert match is not None
    assert (match.key, match.labels) == ("gpu.5.unCorrectedMemoryErrors", {"i": "5"})


def test_a_key_declared_twice_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=re.escape("declares twice: cpu, memory")):
        MetricDefinitions([row("cpu"), row("cpu"), row("memory"), row("ram", aliases=["memory"])])


def test_a_rate_of_what_is_no_counter_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=re.escape("the rate cpu.speed is of 'cpu'")):
        MetricDefinitions([row("cpu"), rate("cpu.speed", "1/s", "CPU", of="cpu", text="A text.")])


def test_the_rate_of_a_counter() -> None:
    total = counter("a", "1", "A", name="a", text="A text.", source="a file")
    speed = rate("a.rate", "1/s", "A", of="a", text="A text.")
    assert MetricDefinitions([total, speed]).rate_of == {"a": speed}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("gpu.7.temp", ["gpu.{i}.temp"]),
        ("memory", ["memory_percent"]),
        ("network.*Rate", ["network.tcpRetransmitRate"]),
        ("*usagePercen", ["disk.{path}.usagePercent"]),
        ("gpu_{i}_power_usage_watts", ["gpu.{i}.powerWatts"]),
        ("SWAP SPACE", ["swap.used_percent", "swap.used"]),
        ("no such thing", []),
    ],
)
def test_search(wanted: str, found: list[str]) -> None:
    assert [metric.key for metric in DEFINITIONS.search(wanted)][: len(found) or 1] == found
