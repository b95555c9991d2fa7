"""The results as Markdown tables: each tool with its ratio to runvitals, and the budgets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.overhead.cpu import Usage
from benchmarks.overhead.kills import Losses
from benchmarks.overhead.peers import NOTHING, RUNVITALS
from benchmarks.overhead.processes import Memory
from benchmarks.overhead.stall import Case
from benchmarks.overhead.start import Calls


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose columns are also aligned for reading as plain text."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def ratio(theirs: float, ours: float) -> str:
    return f"{theirs / ours:.1f}×" if ours > 0 else "–"


def cpu_table(usages: Sequence[Usage]) -> str:
    """CPU per sample at both intervals."""
    by_label = {(usage.label, usage.interval_s): usage for usage in usages}
    rows = []
    for label in dict.fromkeys(usage.label for usage in usages):
        at_1_hz = by_label[label, 1.0]
        row = [label, f"{at_1_hz.values} ({at_1_hz.most_values})"]
        for interval_s in (1.0, 0.1):
            usage, ours = by_label.get((label, interval_s)), by_label[RUNVITALS.label, interval_s]
            row += ["–", "–"] if usage is None else [f"{usage.cpu_ms:.2f}", ratio(usage.cpu_ms, ours.cpu_ms)]
        rows.append(row)
    return table(["", "values (at most)", "ms CPU at 1 Hz", "to ours", "ms CPU at 10 Hz", "to ours"], rows)


def children_table(usages: Sequence[Usage]) -> str:
    """CPU per sample at 1 Hz with idle children."""
    counts = sorted({usage.children for usage in usages})
    by_label = {(usage.label, usage.children): usage.cpu_ms for usage in usages}
    rows = []
    for label in dict.fromkeys(usage.label for usage in usages):
        row = [label]
        for count in counts:
            ms, ours = by_label.get((label, count)), by_label[RUNVITALS.label, count]
            row.append("–" if ms is None else f"{ms:.2f} ({ratio(ms, ours)})")
        rows.append(row)
    return table(["ms CPU a sample at 1 Hz", *(f"{count} children" for count in counts)], rows)


def memory_table(usages: Sequence[Usage], bare: Memory) -> str:
    """Memory and threads, at 1 Hz without children."""
    rows = []
    ours = 0.0
    for usage in usages:
        in_trainer = usage.trainer - bare if usage.trainer.pss else usage.trainer
        added = usage.memory.pss + in_trainer.pss
        ours = ours or added
        own = usage.memory
        rows.append(
            [
                usage.label,
                str(usage.process_count),
                f"{own.rss:.1f} / {own.pss:.1f} / {own.uss:.1f}" if own.rss else "–",
                f"{in_trainer.pss:.1f}" if usage.threads else "–",
                f"{added:.1f} ({ratio(added, ours)})",
                str(usage.threads - 1) if usage.threads else "–",
            ]
        )
    header = [
        "MB",
        "processes",
        "their RSS / PSS / USS",
        "PSS in trainer",
        "PSS added in all",
        "threads in trainer",
    ]
    return table(header, rows)


def stall_table(cases: Sequence[Case]) -> str:
    """Stall per sample of both training loops."""
    kinds = [(False, "python"), (False, "numpy"), (True, "python"), (True, "numpy")]
    stalls = {(case.label, case.only_core, case.loop): case.stall for case in cases}
    rows = []
    for label in dict.fromkeys(case.label for case in cases):
        row = ["nothing (the noise)" if label == NOTHING.label else label]
        for only_core, loop in kinds:
            stall = stalls[label, only_core, loop]
            cell = f"{stall.median:.2f} / {stall.worst_step:.2f} ({stall.events})" if stall else "–"
            row.append(cell)
        rows.append(row)
    header = [f"{loop}, {'only core' if only_core else 'spare core'}" for only_core, loop in kinds]
    return table(["ms a sample / worst step (samples)", *header], rows)


def calls_table(calls: Sequence[Calls]) -> str:
    rows = [
        [
            call.label,
            f"{call.import_ms:.0f} ({call.first_import_ms:.0f})",
            f"{call.init_ms:.1f} ({call.first_init_ms:.1f})",
            f"{call.first_use_ms:.0f}",
            f"{call.finish_ms:.1f}",
            "–" if call.log_us is None else f"{call.log_us:.0f}",
        ]
        for call in calls
    ]
    return table(
        ["median (first)", "import, ms", "init, ms", "import + init, ms", "finish, ms", "log, µs"], rows
    )


def losses_table(losses: Sequence[Losses]) -> str:
    rows = [
        [
            loss.label,
            str(loss.kills),
            f"{loss.lost} of {loss.accepted}",
            f"{loss.samples_lost} of {loss.samples}" if loss.samples else "–",
            str(loss.damaged) if loss.samples else "–",
            loss.noticed(),
        ]
        for loss in losses
    ]
    return table(
        ["kill -9", "kills", "rows lost", "samples lost", "damaged records", "on record after"], rows
    )


def budget_table(checks: Sequence[tuple[str, float, float, str]]) -> str:
    """The table of budgets: (name, budget, measured value, unit)."""
    rows = [
        [what, f"≤ {allowed:g} {unit}", f"{measured:.2f} {unit}", "yes" if measured <= allowed else "NO"]
        for what, allowed, measured, unit in checks
    ]
    return table(["budget", "allowed", "measured", "kept"], rows)
