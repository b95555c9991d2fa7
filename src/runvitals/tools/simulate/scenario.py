"""The scenario of a simulated run: the phases of the training, and the incidents."""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Literal

Phase = Literal["warm-up", "train", "evaluate", "checkpoint", "hang", "restart"]
IncidentKind = Literal["data stall", "heat", "straggler", "memory leak", "out of memory", "lost node"]

# When each incident begins, as a share of the duration; the seed shifts it slightly.
_STALLS = (0.17, 0.52)
_HEAT, _STRAGGLER, _OUT_OF_MEMORY, _LOST_NODE = 0.30, 0.58, 0.72, 0.86
_JITTER = 0.015


@dataclass(frozen=True, slots=True)
class Segment:
    """A phase of the training. Times are simulated seconds since the start."""

    start_s: float
    end_s: float
    phase: Phase


@dataclass(frozen=True, slots=True)
class Incident:
    """A fault of one device of a node, or of the whole node. Times are simulated seconds since the start."""

    kind: IncidentKind
    start_s: float
    end_s: float
    node: int
    device: int


@dataclass(slots=True)
class Scenario:
    """The course of a run.

    Args:
        duration_s: simulated duration.
        segments: in order, without gaps.
        incidents: ordered by start.

    Example:
        >>> scenario = plan(3600.0, nodes=4, devices=8, seed=0)
        >>> scenario.phase(10.0)
        'warm-up'
        >>> [incident.kind for incident in scenario.incidents]
        ['data stall', 'heat', 'data stall', 'straggler', 'memory leak', 'out of memory', 'lost node']
    """

    duration_s: float
    segments: list[Segment]
    incidents: list[Incident]
    _starts: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._starts = [segment.start_s for segment in self.segments]

    def segment(self, scenario_s: float) -> Segment:
        """Return the segment at a time."""
        return self.segments[max(0, bisect_right(self._starts, scenario_s) - 1)]

    def phase(self, scenario_s: float) -> Phase:
        """Return the phase at a time."""
        return self.segment(scenario_s).phase

    def incident(self, kind: IncidentKind) -> Incident | None:
        """Return the first incident of a kind, or None."""
        return next((incident for incident in self.incidents if incident.kind == kind), None)


def plan(duration_s: float, nodes: int, devices: int, seed: int) -> Scenario:
    """Plan a run: warm-up, then training with checkpoints and evaluations, and one incident of each kind.

    Data stalls occur twice. A node is lost only if there are several.

    Args:
        duration_s: simulated duration.
        nodes: hosts.
        devices: accelerators of a host, 0 for none.
        seed: determines when incidents happen and which devices they affect.
    """
    numbers = random.Random(seed)
    warm_s = min(0.04 * duration_s, 180.0)

    def moment(share: float) -> float:
        return duration_s * (share + _JITTER * numbers.uniform(-1.0, 1.0))

    def target() -> tuple[int, int]:
        return numbers.randrange(nodes), numbers.randrange(max(1, devices))

    incidents = [
        Incident("data stall", at, at + min(0.035 * duration_s, 900.0), *target())
        for at in map(moment, _STALLS)
    ]
    heat_s, slow_s, killed_s = moment(_HEAT), moment(_STRAGGLER), moment(_OUT_OF_MEMORY)
    if devices:
        incidents.append(Incident("heat", heat_s, heat_s + 0.11 * duration_s, *target()))
        incidents.append(Incident("straggler", slow_s, slow_s + 0.08 * duration_s, *target()))
    node, device = target()
    incidents.append(Incident("memory leak", killed_s - 0.06 * duration_s, killed_s, node, device))
    incidents.append(Incident("out of memory", killed_s, killed_s + warm_s, node, device))
    segments = _insert(_cycles(duration_s, warm_s), killed_s, killed_s + warm_s, "restart")
    if nodes > 1:
        lost_s = moment(_LOST_NODE)
        hung_s = min(0.025 * duration_s, 600.0)
        incidents.append(Incident("lost node", lost_s, duration_s, nodes - 1, 0))
        segments = _insert(segments, lost_s, lost_s + hung_s, "hang")
        segments = _insert(segments, lost_s + hung_s, lost_s + hung_s + warm_s, "restart")
    segments = _insert(segments, duration_s * 0.99, duration_s, "checkpoint")
    return Scenario(duration_s, segments, sorted(incidents, key=lambda incident: incident.start_s))


def _cycles(duration_s: float, warm_s: float) -> list[Segment]:
    """Return the warm-up, then cycles of training and checkpoint, every second with an evaluation."""
    cycle_s = min(max(duration_s / 14.0, 10.0), 1800.0)
    turns: list[tuple[Phase, float]] = [
        ("train", cycle_s), ("checkpoint", cycle_s * 0.05),
        ("train", cycle_s), ("checkpoint", cycle_s * 0.05), ("evaluate", cycle_s * 0.1),
    ]  # fmt: skip
    segments = [Segment(0.0, warm_s, "warm-up")]
    turn = 0
    while segments[-1].end_s < duration_s:
        phase, length_s = turns[turn % len(turns)]
        start_s = segments[-1].end_s
        segments.append(Segment(start_s, min(start_s + length_s, duration_s), phase))
        turn += 1
    return segments


def _insert(segments: list[Segment], start_s: float, end_s: float, phase: Phase) -> list[Segment]:
    """Return the segments with another phase from `start_s` to `end_s`."""
    outside = [
        Segment(from_s, until_s, old.phase)
        for old in segments
        for from_s, until_s in ((old.start_s, min(old.end_s, start_s)), (max(old.start_s, end_s), old.end_s))
        if from_s < until_s
    ]
    return sorted([*outside, Segment(start_s, end_s, phase)], key=lambda segment: segment.start_s)
