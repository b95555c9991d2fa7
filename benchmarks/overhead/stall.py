"""Delay of a training loop by a sample, with and without a spare core."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass

from benchmarks.overhead.alignment import Stall, stall
from benchmarks.overhead.peers import MLFLOW, NOTHING, NVITOP, PSUTIL, RUNVITALS, WANDB, Peer, Sample
from benchmarks.overhead.plan import Plan
from benchmarks.overhead.session import Session

PEERS = (NOTHING, RUNVITALS, WANDB, NVITOP, PSUTIL, MLFLOW)
LOOPS = ("python", "numpy")
_WARM_S = 1.0
# Between samples. There must be steps without a sample for comparison, and a thread that shares the
# interpreter's lock with the loop needs up to 0.2 s for a sample, psutil's up to a second.
_INTERVAL_S = 0.15
_LONG_INTERVAL_S = 0.5
_INTERVALS_S = {NVITOP: _LONG_INTERVAL_S, MLFLOW: _LONG_INTERVAL_S, PSUTIL: 2.0}


@dataclass(frozen=True)
class Case:
    """A training loop with a tool.

    Attributes:
        only_core: everything is bound to one core.
        stall: None if too few samples had steps without a sample before them, for comparison.
    """

    label: str
    loop: str
    only_core: bool
    stall: Stall | None


def measure(peer: Peer, loop: str, only_core: bool, plan: Plan) -> Case:
    """The stall per sample of a loop of pure Python or of matrix products.

    The training process is bound to one core before the tool starts, so the tool's processes inherit that.
    """
    cpu = max(os.sched_getaffinity(0)) if only_core else None
    interval_s = _INTERVALS_S.get(peer, _INTERVAL_S)
    with Session(peer, interval_s, cpu=cpu) as session:
        time.sleep(_WARM_S)
        ends, inside = session.train(loop, (plan.events + 4) * min(interval_s, _LONG_INTERVAL_S))
        session.end()
        samples = peer.recorded(session.ready["about"]["folder"]) if peer.recorded else inside
    if peer is NOTHING:
        samples = _made_up(ends[0], ends[-1])
    events = [(s.begin_ns, s.end_ns) for s in samples]
    try:
        compared = stall(ends, events)
    except ValueError as error:
        print(f"{peer.label}, {loop} loop: {error}", file=sys.stderr)
        compared = None
    return Case(peer.label, loop, only_core, compared)


def _made_up(begin_ns: int, end_ns: int) -> list[Sample]:
    """Times at which no sample is taken, to measure the noise."""
    step_ns = int(_INTERVAL_S * 1e9)
    return [Sample(t, t + 5_000_000, 0) for t in range(begin_ns + step_ns, end_ns, step_ns)]
