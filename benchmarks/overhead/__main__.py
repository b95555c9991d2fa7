"""`python -m benchmarks.overhead [--quick] [--calls]`: measure everything, and print it as Markdown."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from typing import TypeVar

from benchmarks.overhead import cpu, kills, output, outside, report, stall, start
from benchmarks.overhead.cpu import Usage
from benchmarks.overhead.peers import PEERS, PSUTIL, RUNVITALS, WANDB_TREE, Peer
from benchmarks.overhead.plan import FULL, QUICK, Plan
from benchmarks.overhead.processes import Memory
from benchmarks.overhead.stall import Case
from benchmarks.overhead.start import Calls

_T = TypeVar("_T")
CHILDREN: tuple[tuple[Peer, tuple[int, ...]], ...] = (
    (RUNVITALS, (10, 100, 1000)),
    (PSUTIL, (10, 100, 1000)),
    (WANDB_TREE, (10, 100)),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench overhead", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short windows; not recorded in RESULTS.md")
    parser.add_argument("--calls", action="store_true", help="only the calls in the training: import, init …")
    parser.add_argument("--output", action="store_true", help="only what recording the output costs")
    options = parser.parse_args()
    plan = QUICK if options.quick else FULL
    if options.calls:
        print(calls_text(measure_calls(plan), plan))
        return
    if options.output:
        print(output.text(output.measure(plan.printing), plan.printing))
        return
    for advice in outside.missing():
        print(advice, file=sys.stderr)
    print(measure(plan))


def measure(plan: Plan) -> str:
    """Measure everything; returns the results as Markdown."""
    _say("idle training process")
    bare_ms_per_s, bare = cpu.bare(plan.second_s)
    usages = measure_cpu(plan, bare_ms_per_s)
    with_children = measure_children(plan, bare_ms_per_s)
    cases = measure_stalls(plan)
    calls = measure_calls(plan)
    _say("kill -9")
    losses = kills.measure(plan.kills)
    return text(usages, with_children, cases, calls, losses, bare, bare_ms_per_s, plan)


def measure_cpu(plan: Plan, bare_ms_per_s: float) -> list[Usage]:
    usages = []
    for interval_s in (1.0, 0.1):
        for peer in PEERS:
            _say(f"CPU every {interval_s} s: {peer.label}")
            usages.append(_found(cpu.in_trainer(peer, interval_s, 0, plan, bare_ms_per_s)))
        for kind in outside.installed():
            if interval_s >= kind.shortest_s:
                _say(f"CPU every {interval_s} s: {kind.__name__}")
                usages.append(_found(cpu.outside(kind, interval_s, plan)))
    return usages


def measure_children(plan: Plan, bare_ms_per_s: float) -> list[Usage]:
    usages = []
    for peer, counts in CHILDREN:
        for count in counts:
            _say(f"CPU with {count} children: {peer.label}")
            usages.append(_found(cpu.in_trainer(peer, 1.0, count, plan, bare_ms_per_s)))
    return usages


def measure_stalls(plan: Plan) -> list[Case]:
    stalls = []
    for peer in stall.PEERS:
        for loop in stall.LOOPS:
            for only_core in (False, True):
                _say(f"stall of a {loop} loop, {'only' if only_core else 'spare'} core: {peer.label}")
                stalls.append(_found(stall.measure(peer, loop, only_core, plan)))
    return stalls


def measure_calls(plan: Plan) -> list[Calls]:
    return [start.measure(peer, plan) for peer in PEERS if _say(f"import, init, finish: {peer.label}")]


def budgets(
    usages: Sequence[Usage],
    with_children: Sequence[Usage],
    cases: Sequence[Case],
    calls: Sequence[Calls],
    losses: Sequence[kills.Losses],
) -> list[tuple[str, float, float, str]]:
    """(name, budget, measured value, unit) of each budget of runvitals."""
    ours = {u.interval_s: u for u in usages if u.label == RUNVITALS.label}
    tree = {u.children: u.cpu_ms for u in with_children if u.label == RUNVITALS.label}
    stalls = [(c.only_core, c.stall) for c in cases if c.label == RUNVITALS.label and c.stall]
    call = next(call for call in calls if call.label == RUNVITALS.label)
    lost = sum(loss.lost + loss.samples_lost for loss in losses if loss.label.startswith(RUNVITALS.label))
    return [
        ("CPU a sample, 1 Hz", 0.40, ours[1.0].cpu_ms, "ms"),
        ("CPU a sample, 1 Hz, 10 children", 0.40, tree[10], "ms"),
        ("CPU a sample, 10 Hz", 0.35, ours[0.1].cpu_ms, "ms"),
        ("CPU a sample, 100 children", 0.8, tree[100], "ms"),
        ("CPU a sample, 1000 children", 4.0, tree[1000], "ms"),
        ("monitor's RSS", 10.0, ours[1.0].memory.rss, "MB"),
        ("threads in the trainer", 0.0, ours[1.0].threads - 1, ""),
        ("import runvitals", 30.0, call.import_ms, "ms"),
        ("init(), median", 5.0, call.init_ms, "ms"),
        (
            "stall a sample, a core to spare",
            0.10,
            max((delay.median for only_core, delay in stalls if not only_core), default=math.nan),
            "ms",
        ),
        (
            "stall a sample, no core to spare",
            0.35,
            max((delay.median for only_core, delay in stalls if only_core), default=math.nan),
            "ms",
        ),
        ("rows and samples lost by kill -9", 0.0, float(lost), ""),
    ]


def text(
    usages: Sequence[Usage],
    with_children: Sequence[Usage],
    cases: Sequence[Case],
    calls: Sequence[Calls],
    losses: Sequence[kills.Losses],
    bare: Memory,
    bare_ms_per_s: float,
    plan: Plan,
) -> str:
    """The tables, each with a description of how it was measured."""
    at_1_hz = [usage for usage in usages if usage.interval_s == 1.0]
    parts = [
        "### Budgets",
        report.budget_table(budgets(usages, with_children, cases, calls, losses)),
        "### CPU time per sample",
        "All processes and threads of a tool together, user and system time, from the kernel's CPU clock of "
        f"each process in ns; windows of {plan.second_s:g} s at 1 Hz and of {plan.tenth_s:g} s at 10 Hz, "
        "divided by the number of samples in the tool's records. The idle training process without a tool "
        f"uses {bare_ms_per_s:.3f} ms per second, which is subtracted. Values: of a typical sample and of "
        "the largest, because runvitals reads slowly changing values less often; without the metrics of the "
        "monitor itself.",
        report.cpu_table(usages),
        "### With children",
        "The training process has idle children, all of which the tool measures.",
        report.children_table(with_children),
        "### Stall of the training loop",
        "Duration of the steps (0.7 ms each) that overlap a sample, minus that of as many steps just before: "
        "median over the samples. Spare core: no process is bound to a core. Only core: the training process "
        "and all processes of the tool are bound to one core. A dash: the samples follow one another so "
        "closely that there is nothing to compare with.",
        report.stall_table(cases),
        "### Memory and threads",
        f"After {plan.settle_s + plan.second_s:g} s at 1 Hz. A bare training process has {bare.pss:.1f} MB "
        "PSS. Threads: those added.",
        report.memory_table(at_1_hz, bare),
        calls_text(calls, plan),
        "### kill -9",
        "Rows are logged every millisecond. A row is lost if its `log()` had returned and it is not in the "
        "records afterwards. A sample, every 0.1 s, is lost if a reader had seen it before the kill.",
        report.losses_table(losses),
    ]
    return "\n\n".join(parts) + "\n"


def calls_text(calls: Sequence[Calls], plan: Plan) -> str:
    """The table of the calls, with a description of how it was measured."""
    return (
        f"### Calls\n\nMedian of {plan.processes} fresh processes that have imported nothing else; in "
        "brackets the first one. Import includes everything that the first use imports. Log is a row of two "
        f"values in a loop without pauses.\n\n{report.calls_table(calls)}"
    )


def _say(what: str) -> bool:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)
    return True


def _found(what: _T) -> _T:
    """Print a result immediately: the benchmark takes a quarter of an hour, and a later part may fail."""
    print(f"         {what}", file=sys.stderr, flush=True)
    return what


if __name__ == "__main__":
    main()
