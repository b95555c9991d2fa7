"""CPU time per sample, of all processes and threads of a tool together."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

from benchmarks.overhead import processes
from benchmarks.overhead.outside import NodeExporter, Sadc
from benchmarks.overhead.peers import NOTHING, Peer, Sample
from benchmarks.overhead.plan import Plan
from benchmarks.overhead.processes import Memory
from benchmarks.overhead.session import Session, Watched

_NS_PER_MS = 1e6


@dataclass(frozen=True)
class Usage:
    """The resources that a tool used in a measurement window.

    Attributes:
        cpu_ms: CPU time per sample, minus that of the training process without a tool.
        samples: number of samples.
        values: in a typical sample; `most_values`: in the largest (some values are read less often).
        memory: of the tool's processes; `trainer`: of the training process.
        threads: in the training process.
    """

    label: str
    interval_s: float
    children: int
    cpu_ms: float
    samples: int
    values: int
    most_values: int
    process_count: int
    memory: Memory
    trainer: Memory
    threads: int


@dataclass(frozen=True)
class _Window:
    begin_ns: int
    end_ns: int
    cpu_ns: int

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e9


def bare(seconds: float) -> tuple[float, Memory]:
    """(CPU ms per second, memory) of the idle training process without a tool."""
    with Session(NOTHING, 1.0) as session:
        time.sleep(0.5)
        window = _watch(session, seconds)
        return window.cpu_ns / _NS_PER_MS / window.seconds, processes.memory([session.pid])


def in_trainer(peer: Peer, interval_s: float, children: int, plan: Plan, bare_ms_per_s: float) -> Usage:
    """Measure a tool that the training process starts, with `children` idle children."""
    with Session(peer, interval_s, children) as session:
        time.sleep(plan.settle_s)
        window = _watch(session, _length(plan, interval_s))
        pids = session.pids()
        trainer, threads = processes.memory([session.pid]), processes.thread_count(session.pid)
        others = [pid for pid in pids if pid != session.pid]
        memory = processes.memory(others)
        inside = [Sample(*sample) for sample in session.ask("samples")["samples"]]
        session.end()
        samples = peer.recorded(session.ready["about"]["folder"]) if peer.recorded else inside
    return _usage(
        peer.label, interval_s, children, window, samples, bare_ms_per_s, others, memory, trainer, threads
    )


def outside(kind: type[NodeExporter] | type[Sadc], interval_s: float, plan: Plan) -> Usage:
    """Measure a tool that runs independently of the training."""
    with kind(interval_s) as running:
        time.sleep(plan.settle_s)
        window = _watch(running, _length(plan, interval_s))
        pids = running.pids()
        memory = processes.memory(pids)
        samples = running.finished()
    nothing = Memory(0.0, 0.0, 0.0)
    return _usage(running.peer.label, interval_s, 0, window, samples, 0.0, pids, memory, nothing, 0)


def _length(plan: Plan, interval_s: float) -> float:
    return plan.second_s if interval_s >= 1.0 else plan.tenth_s


def _watch(watched: Watched, seconds: float) -> _Window:
    """The CPU time of all processes during the next seconds, including processes started meanwhile.

    Raises:
        ProcessLookupError: a process ended meanwhile, so that its CPU time is lost.
    """
    pids = watched.pids()
    begin_ns, before = time.time_ns(), watched.clocks(pids)
    time.sleep(seconds)
    end_ns, after = time.time_ns(), watched.clocks(pids)
    new = [pid for pid in watched.pids() if pid not in before]
    used = sum(after.values()) - sum(before.values()) + sum(watched.clocks(new).values())
    return _Window(begin_ns, end_ns, used)


def _usage(
    label: str,
    interval_s: float,
    children: int,
    window: _Window,
    samples: list[Sample],
    bare_ms_per_s: float,
    others: list[int],
    memory: Memory,
    trainer: Memory,
    threads: int,
) -> Usage:
    within = [s for s in samples if window.begin_ns <= (s.begin_ns + s.end_ns) // 2 < window.end_ns]
    if not within:
        raise RuntimeError(f"{label} took no sample in {window.seconds:.1f} s")
    used_ms = window.cpu_ns / _NS_PER_MS - bare_ms_per_s * window.seconds
    return Usage(
        label=label,
        interval_s=interval_s,
        children=children,
        cpu_ms=used_ms / len(within),
        samples=len(within),
        values=int(median(s.values for s in within)),
        most_values=max(s.values for s in within),
        process_count=len(others),
        memory=memory,
        trainer=trainer,
        threads=threads,
    )
