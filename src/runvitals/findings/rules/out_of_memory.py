"""Memory that runs out: it is swapped to a disk, it is almost used up, the kernel has killed."""

from __future__ import annotations

import numpy as np

from runvitals.findings.host_load import pressure
from runvitals.findings.observed_run import ObservedHost, ObservedRun
from runvitals.findings.persistence import persisting, recurrences
from runvitals.findings.rule import (
    Abstention,
    FindingRule,
    Judgement,
    Occurrence,
    evidence,
    seconds_of,
)
from runvitals.findings.rules.memory_use import amount_text, limit_mib, used_percent
from runvitals.findings.spans import Span, above, find_spans, known
from runvitals.findings.windows import Bools, Floats

NEAR, VERY_NEAR = 92.0, 97.0
"""Percent of the limit (TraceML: OOM close)."""
PLENTY_MIB = 64 * 1024.0
"""So much that is left is no end that is near, whatever share it is."""
WAITS = 10.0
"""Percent of the time in which tasks wait for memory: then unified memory is short, too."""
OPEN_S = 60.0


def swaps(host: ObservedHost) -> tuple[Bools, Floats, str]:
    """Return where a host swaps and waits for it, by how much swap grew since the run began, and the key."""
    columns = host.columns
    key = "swap.used" if columns.has("swap.used") else "swap.used_percent"
    used, least = columns.mean(key), 256 * 2**20 if key == "swap.used" else 2.0
    base = used[known(used)][:1]
    grown = used - (base[0] if len(base) else 0.0)
    swapping = above(grown, least)
    waits, pressure_key = pressure(host, "memory")
    if pressure_key is not None:
        return swapping & above(waits, 5), grown, key
    change = np.abs(np.diff(used, prepend=used[:1]))
    return swapping & above(change, least / 20) & above(columns.mean("memory_percent"), 85), grown, key


def judge_swapping(run: ObservedRun) -> Judgement:
    """Find hosts that move memory of the run to a disk and wait for it."""
    hosts = [
        host for host in run.hosts if host.columns.has("swap.used") or host.columns.has("swap.used_percent")
    ]
    if not hosts:
        return Abstention("the use of swap is unknown", ("swap.used", "swap.used_percent"))
    host_spans: list[tuple[tuple[ObservedHost, str, Floats], list[Span]]] = []
    for host in hosts:
        swapping, grown, key = swaps(host)
        if not swapping.any():
            continue
        spans = persisting(run, swapping, known(grown), open_s=OPEN_S)
        if spans:
            host_spans.append(((host, key, grown), spans))
    return [_swapping(run, time, members) for time, members in recurrences(run, host_spans)]


def _swapping(
    run: ObservedRun, time: list[Span], members: list[tuple[tuple[ObservedHost, str, Floats], list[Span]]]
) -> Occurrence:
    """Report that hosts swap."""
    (host, key, grown), spans = members[0]
    columns = host.columns
    waits, pressure_key = pressure(host, "memory")
    amount = amount_text(float(np.nanmax(grown)) / 2**20) + " of memory " if key == "swap.used" else ""
    first = float(columns.mean(key)[known(grown)][0])
    return Occurrence(
        "critical",
        "likely",
        time,
        f"{host.name} swaps {amount}to disk: the run waits for it.",
        evidence(columns, key, spans, first)
        + (evidence(columns, pressure_key, spans, 0.0, value=waits, unit="%") if pressure_key else []),
        hosts=[each.name for (each, *_), _ in members],
        devices=[device for (each, *_), _ in members for device in each.devices],
        cost_s=0.5 * sum(seconds_of(where, run.windows) * len(each.devices) for (each, *_), where in members),
    )


def judge_near(run: ObservedRun) -> Judgement:
    """Find memory that is almost used up, or that ran out."""
    hosts = [
        host
        for host in run.hosts
        if known(used_percent(host)[0]).any() or host.columns.has("proc.memory.oomKills")
    ]
    if not hosts and run.out_of_memory is None:
        return Abstention("how much memory is used is unknown", ("memory_percent",))
    killed = _killed(hosts)
    if killed:
        return killed
    if run.out_of_memory:
        last = run.windows.count - 1
        return [
            Occurrence(
                "critical",
                "certain",
                [Span(max(last - 1, 0), last)],
                "The kernel ended the training because memory ran out.",
                [
                    item
                    for host in hosts
                    for item in evidence(host.columns, used_percent(host)[1], [Span(last, last)])
                ],
                hosts=[host.name for host in run.hosts],
            )
        ]
    near = [(host, spans) for host in hosts if (spans := _near(run, host))]
    return [_almost_full(time, members) for time, members in recurrences(run, near)]


def _near(run: ObservedRun, host: ObservedHost) -> list[Span]:
    """Return where a host's memory is almost used up.

    Where it swaps, that is reported instead. Unified memory is full on purpose, until tasks wait for it.
    """
    used, _ = used_percent(host)
    near = above(used, NEAR)
    if not near.any():
        return []
    total = limit_mib(host)
    if total is not None:
        near &= ~above((100 - used) / 100 * total, PLENTY_MIB)
    if any(device.shares_host_memory for device in host.devices):
        near &= above(pressure(host, "memory")[0], WAITS)
    near &= ~swaps(host)[0]
    return find_spans(
        near, known(used), min_windows=run.windows.number(OPEN_S), close_windows=run.windows.number(300)
    )


def _almost_full(time: list[Span], near: list[tuple[ObservedHost, list[Span]]]) -> Occurrence:
    """Report that the memory of hosts is almost used up."""
    highest = [
        (max(float(np.nanmax(used_percent(host)[0][span.slice])) for span in spans), host, spans)
        for host, spans in near
    ]
    most, host, spans = max(highest, key=lambda each: each[0])
    used, key = used_percent(host)
    return Occurrence(
        "critical" if most >= VERY_NEAR else "warning",
        "certain",
        time,
        f"{most:.0f} % of the memory of {host.name} is used: little is left before the kernel kills a "
        "process.",
        evidence(host.columns, key, spans[-1:], NEAR, value=used, unit="%"),
        hosts=[each.name for each, _ in near],
    )


def _killed(hosts: list[ObservedHost]) -> list[Occurrence]:
    """Return that the kernel killed processes because memory ran out; nothing if it did not."""
    occurrences = []
    for host in hosts:
        kills = host.columns.growth("proc.memory.oomKills")
        if not above(kills, 0.5).any():
            continue
        window = int(np.argmax(above(kills, 0.5)))
        span = Span(max(window - 1, 0), window)
        occurrences.append(
            Occurrence(
                "critical",
                "certain",
                [span],
                f"The kernel killed a process on {host.name}: memory ran out.",
                evidence(host.columns, "proc.memory.oomKills", [Span(window, window)], 0.0, value=kills)
                + evidence(host.columns, used_percent(host)[1], [span]),
                hosts=[host.name],
            )
        )
    return occurrences


SWAPPING = FindingRule(
    "swapping",
    "Memory is swapped to a disk",
    "The host moves memory to a disk and reads it back: everything waits for it.",
    "256 MiB or more were swapped since the run began while tasks wait for memory (PSI of 5 %), or "
    "while memory is 85 % full and swap changes.",
    "Use less memory (fewer workers, smaller prefetch), ask for more, or switch swap off so that the "
    "job fails early.",
    ("swap.used", "swap.used_percent"),
    judge_swapping,
    order=3,
)

OUT_OF_MEMORY_NEAR = FindingRule(
    "out_of_memory_near",
    "Memory is almost used up",
    "The memory that the run may use is almost full, or was: the kernel ends the largest process next.",
    "92 % of the container's limit (its working set, without cached files) or of the host's memory are used "
    "for a minute, and less than 64 GiB are left; 97 % are critical (TraceML); or the kernel has killed a "
    "process. Memory of devices is not looked at: allocators keep what they once had. Memory that host and "
    "device share counts only while tasks wait for it (PSI of 10 %); where the host swaps, that is reported.",
    "Ask for more memory, use fewer workers or a smaller prefetch, load data lazily.",
    ("memory_percent", "proc.memory.oomKills"),
    judge_near,
    order=0,
)
