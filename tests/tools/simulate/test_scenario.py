"""Scenarios, their load on devices, and the machine profiles."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from runvitals.tools.simulate.block import ScenarioBlock
from runvitals.tools.simulate.noise import Noise
from runvitals.tools.simulate.profiles import KINDS, Profile
from runvitals.tools.simulate.scenario import plan

HOUR_S = 3600.0


@pytest.mark.parametrize("duration_s", [30.0, 600.0, HOUR_S, 24 * HOUR_S])
def test_phases_are_contiguous(duration_s: float) -> None:
    scenario = plan(duration_s, nodes=4, devices=8, seed=1)
    assert (scenario.segments[0].start_s, scenario.segments[-1].end_s) == (0.0, pytest.approx(duration_s))
    assert all(
        segment.end_s == pytest.approx(following.start_s)
        for segment, following in pairwise(scenario.segments)
    )
    assert {segment.phase for segment in scenario.segments} >= {
        "warm-up",
        "train",
        "checkpoint",
        "hang",
        "restart",
    }


def test_every_kind_of_incident_occurs_at_times_that_depend_on_the_seed() -> None:
    kinds = [incident.kind for incident in plan(HOUR_S, nodes=4, devices=8, seed=0).incidents]
    assert kinds == [
        "data stall", "heat", "data stall", "straggler", "memory leak", "out of memory", "lost node",
    ]  # fmt: skip
    assert plan(HOUR_S, 4, 8, seed=0) == plan(HOUR_S, 4, 8, seed=0)
    assert plan(HOUR_S, 4, 8, seed=0) != plan(HOUR_S, 4, 8, seed=1)


def test_no_lost_node_with_one_host_and_no_device_incidents_without_devices() -> None:
    alone = {incident.kind for incident in plan(HOUR_S, nodes=1, devices=0, seed=0).incidents}
    assert alone == {"data stall", "memory leak", "out of memory"}


def test_straggler_is_slow_and_other_devices_wait() -> None:
    scenario = plan(HOUR_S, nodes=2, devices=4, seed=3)
    slow = scenario.incident("straggler")
    assert slow is not None
    block = ScenarioBlock(scenario, Noise(3), int(slow.start_s) + 2, 60, 1.0, 1.0)
    training = np.array([phase == "train" for phase in block.phases])
    z = block.noise(40)
    culprit = block.load(slow.node, slow.device, z)
    other = block.load(slow.node, (slow.device + 1) % 4, z)
    assert culprit.clock[training].max() < 0.7 < other.clock.min()
    assert other.work[training].mean() < culprit.work[training].mean()
    assert other.busy[training].mean() > 0.9  # the driver still reports full utilisation


@pytest.mark.parametrize(
    ("name", "count", "ranks"), [("h100x8", 8, 8), ("h100", 8, 8), ("mi300x8", 8, 8), ("mi300xx4", 4, 4),
                                 ("trn2", 16, 64), ("v5ex4", 4, 1), ("m3", 1, 1), ("cpu", 0, 1)],
)  # fmt: skip
def test_profiles(name: str, count: int, ranks: int) -> None:
    profile = Profile.parse(name)
    assert (profile.count, profile.ranks, len(profile.devices())) == (count, ranks, count)


@pytest.mark.parametrize("name", ["", "b300x8", "h100x", "h100x0", "h100x65", "h100x-1", "cpux2", "m3x2"])
def test_invalid_profiles_are_rejected(name: str) -> None:
    with pytest.raises(ValueError, match=r"unknown profile|devices per host"):
        Profile.parse(name)


def test_names_of_kinds() -> None:
    assert set(KINDS) == {"h100", "a100", "mi300x", "trn2", "v5e", "m3", "ipu", "cpu"}
