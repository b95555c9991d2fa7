"""The monitor's ranges are those of the metric definitions, which it does not load."""

from __future__ import annotations

from collections import defaultdict

import pytest

from runvitals.model.metrics import DEFINITIONS, Metric
from runvitals.monitoring.monitor.ranges import RANGES, SHARES, UNLIMITED, name_of, range_of

# An endpoint and the monitor itself decide what their numbers mean. The client of W&B is not sampled.
FREE = ("openmetrics", "monitor", "wandb")


def limited() -> list[Metric]:
    return [
        metric
        for metric in DEFINITIONS.metrics
        if metric.kind == "gauge" and metric.key.partition(".")[0] not in FREE
    ]


def name(key: str) -> str:
    """A metric's name in the table; `*` is a last part that varies."""
    first, *others = key.split(".")
    return f"{first}.{others[0]}.*" if others and "{" in others[-1] else name_of(key)


def table() -> dict[tuple[float, float, str], list[str]]:
    """The table as it follows from the definitions."""
    names: dict[tuple[float, float, str], set[str]] = defaultdict(set)
    for metric in limited():
        names[metric.least, metric.most, metric.unit].add(name(metric.key))
    return {limits: sorted(keys) for limits, keys in sorted(names.items())}


def test_the_table_follows_from_the_definitions() -> None:
    written = {(least, most, unit): sorted(names.split(", ")) for least, most, unit, names in RANGES}
    assert written == table(), "\n".join(
        f"    ({least!r}, {most!r}, {unit!r}, {', '.join(names)!r}),"
        for (least, most, unit), names in table().items()
    )


def test_shares_are_those_of_the_definitions() -> None:
    assert {(name(metric.share), name(metric.key)) for metric in limited() if metric.share} == {
        (share, amount) for share, amount in SHARES.items()
    }


def test_the_share_of_an_amount_has_the_same_prefix() -> None:
    for metric in limited():
        if metric.share:
            assert metric.share.rpartition(".")[0] == metric.key.rpartition(".")[0]
            assert DEFINITIONS.by_template[metric.share].unit == "%"


@pytest.mark.parametrize("metric", limited(), ids=lambda metric: metric.key)
def test_every_key_has_the_range_of_its_definition(metric: Metric) -> None:
    key = metric.key
    for placeholder in ("i", "gi", "ci", "core"):
        key = key.replace(f"{{{placeholder}}}", "3")
    key = key.replace("{path}", "/data/v1.5").replace("{dev}", "nvme0n1").replace("{", "").replace("}", "")
    assert range_of(key) == (metric.least, metric.most, metric.unit)


def test_other_keys_have_no_range() -> None:
    for key in ("fridge.temp", "openmetrics.app.temp.0", "monitor.cpu.ms", "gpu", "gpu.0.new"):
        assert range_of(key) is UNLIMITED
