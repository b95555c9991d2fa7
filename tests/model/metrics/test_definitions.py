"""Looking up the definition of a key."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.model.metrics import DEFINITIONS, MetricDefinitions
from runvitals.model.metrics.metric import Metric, counter, gauge, placeholders, rate


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
def test_key_finds_its_definition(key: str, template: str, labels: dict[str, str]) -> None:
    match = DEFINITIONS.find(key)
    assert match is not None
    assert (match.metric.key, match.key, match.labels) == (template, key, labels)


@pytest.mark.parametrize(
    "key", ["", "loss", "gpu.x.temp", "gpu..temp", "gpu.²", "gpu.0.temp ", "xgpu.0.temp", "cpu."]
)
def test_unknown_key_finds_nothing(key: str) -> None:
    assert DEFINITIONS.find(key) is None


@given(st.text())
def test_any_text_can_be_looked_up(key: str) -> None:
    match = DEFINITIONS.find(key)
    assert match is None or match.key


@given(st.sampled_from(DEFINITIONS.metrics), st.data())
def test_every_template_is_found_with_any_labels(metric: Metric, data: st.DataObject) -> None:
    names = st.from_regex(r"[a-z/][a-z0-9_/]{0,9}", fullmatch=True)
    indexes = st.integers(0, 200).map(str)
    labels = {
        name: data.draw(indexes if name in ("i", "core", "port", "n", "gi", "ci") else names)
        for name in placeholders(metric.key)
    }
    match = DEFINITIONS.find(metric.key.format(**labels))
    assert match is not None
    assert match.metric.key == metric.key


def test_alias_resolves_to_the_canonical_key_with_the_same_labels() -> None:
    match = DEFINITIONS.find("gpu.5.uncorrectedMemoryErrors")
    assert match is not None
    assert (match.key, match.labels) == ("gpu.5.unCorrectedMemoryErrors", {"i": "5"})


def test_duplicate_keys_are_rejected() -> None:
    with pytest.raises(ValueError, match=re.escape("defined more than once: cpu, memory")):
        MetricDefinitions([row("cpu"), row("cpu"), row("memory"), row("ram", aliases=["memory"])])


def test_rate_without_a_counter_is_rejected() -> None:
    with pytest.raises(ValueError, match=re.escape("invalid metric cpu.speed: its counter 'cpu' is not")):
        MetricDefinitions([row("cpu"), rate("cpu.speed", "1/s", "CPU", of="cpu", text="A text.")])


def test_rate_of_a_counter() -> None:
    total = counter("a", "1", "A", name="a", text="A text.", source="a file")
    speed = rate("a.rate", "1/s", "A", of="a", text="A text.")
    assert MetricDefinitions([total, speed]).rate_of == {"a": speed}


@pytest.mark.parametrize(
    ("query", "keys"),
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
def test_search(query: str, keys: list[str]) -> None:
    assert [metric.key for metric in DEFINITIONS.search(query)][: len(keys) or 1] == keys
