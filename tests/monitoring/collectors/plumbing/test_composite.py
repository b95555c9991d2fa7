"""Several sources as one: a failing part affects only its readings, and recovers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from runvitals.monitoring.collectors.base import Tick
from runvitals.monitoring.collectors.plumbing.composite import CompositeSource
from runvitals.monitoring.collectors.plumbing.tool import ToolFailed


class Part:
    """Writes a key, or fails."""

    def __init__(self, name: str, key: str) -> None:
        self.name = name
        self.key = key
        self.absent = {f"{key}.not": "for a reason"}
        self.facts: Mapping[str, object] = {"cards": name}
        self.pending = False
        self.broken = False
        self.calls: list[float] = []
        self.closed = False

    def sample(self, tick: Tick) -> None:
        self.calls.append(tick.mono_s)
        if self.broken:
            raise ToolFailed(f"{self.name} is broken")
        tick.gauges[self.key] = 1.0

    def close(self) -> None:
        self.closed = True


def test_a_failing_part_is_retried_with_backoff() -> None:
    good, bad = Part("good", "a"), Part("bad", "b")
    parts = CompositeSource("both", [good, bad])
    bad.broken = True
    for second in range(10):
        tick = Tick(100.0 + second)
        parts.sample(tick)
        assert tick.gauges == {"a": 1.0}
    assert bad.calls == [100.0, 101.0, 103.0, 107.0]
    assert parts.absent == {"a.not": "for a reason", "b.not": "for a reason", "bad": "bad is broken"}
    bad.broken = False
    tick = Tick(115.0)
    parts.sample(tick)
    assert tick.gauges == {"a": 1.0, "b": 1.0}
    assert "bad" not in parts.absent


def test_the_composite_fails_if_all_parts_fail() -> None:
    first, second = Part("first", "a"), Part("second", "b")
    parts = CompositeSource("both", [first, second])
    first.broken = second.broken = True
    with pytest.raises(ToolFailed, match="first: first is broken; second: second is broken"):
        parts.sample(Tick(1.0))


def test_equal_facts_and_reasons_of_the_parts_are_kept_once() -> None:
    first, second = Part("first", "a"), Part("second", "b")
    parts = CompositeSource("both", [first, second])
    assert parts.facts == {"cards": "first"}
    absent, facts = parts.absent, parts.facts
    parts.sample(Tick(1.0))
    assert parts.absent is absent
    assert parts.facts is facts
    assert not parts.pending
    second.pending = True
    assert parts.pending
    parts.close()
    assert first.closed
    assert second.closed
