"""Limits from outside: a container's quota, other processes on the host, others on the device."""

from __future__ import annotations

import numpy as np

from runvitals.findings.host_load import is_throttled, pressure
from runvitals.findings.observed_run import ObservedHost, ObservedRun
from runvitals.findings.rule import (
    Abstention,
    FindingRule,
    Judgement,
    Occurrence,
    evidence,
    hosts_with,
    names_of,
    seconds_of,
)
from runvitals.findings.rules.input_bound import wait_of
from runvitals.findings.spans import Span, above, find_spans, known, mask_of, median

OTHERS = 30.0
"""Percent of the host's processors that others use."""
STEAL = 10.0


def judge_cpu_limit(run: ObservedRun) -> Judgement:
    """Find a quota that throttles the run's processes while its devices, or its steps, wait."""
    hosts = hosts_with(run, "proc.cpu.throttledPercent")
    if not hosts:
        return Abstention(
            "no container with a quota of processor time reports throttling", ("proc.cpu.throttledPercent",)
        )
    for host in hosts:
        throttled = is_throttled(host) & ~run.start_windows
        wait = wait_of(run, host)
        if wait is not None:
            throttled &= wait.where | ~wait.decidable
        spans = find_spans(throttled, min_windows=run.windows.number(60), close_windows=3)
        seconds = seconds_of(spans, run.windows)
        if seconds < 0.05 * run.duration_ms / 1000:
            continue
        where = mask_of(spans, run.windows.count)
        share = median(host.columns.mean("proc.cpu.throttledPercent"), where)
        limit = host.cpus
        of = f" of {limit:g} processors" if limit else ""
        lost = seconds if wait is None else float(np.nansum(wait.share[where])) * run.windows.width_s
        return [
            Occurrence(
                "warning",
                "certain" if wait is not None else "likely",
                spans,
                f"The container's limit{of} throttles the run in {share:.0f} % of the scheduler's periods"
                + (f"; {names_of(host.devices, run)} wait." if host.devices else "."),
                evidence(host.columns, "proc.cpu.throttledPercent", spans, 0.0)
                + evidence(host.columns, "cpu.ofLimit", spans),
                host.devices,
                [host.name],
                lost * len(host.devices),
            )
        ]
    return []


def judge_noisy_neighbour(run: ObservedRun) -> Judgement:
    """Find processes outside of the run, or another virtual machine, that take its processors."""
    hosts = [
        host
        for host in run.hosts
        if host.columns.has("cpu.steal") or (host.columns.has("cpu") and host.columns.has("cpu.mean"))
    ]
    if not hosts:
        return Abstention(
            "what processes outside of the run use is unknown", ("cpu", "cpu.mean", "cpu.steal")
        )
    for host in hosts:
        columns = host.columns
        others = columns.mean("cpu.mean") - columns.mean("cpu")
        steal = columns.mean("cpu.steal")
        cpu_pressure, _ = pressure(host, "cpu")
        full = above(columns.mean("cpu.mean"), 90) & above(others, OTHERS)
        if known(cpu_pressure).any():
            full &= above(cpu_pressure, 20)
        stolen = above(steal, STEAL)
        wait = wait_of(run, host)
        harmed = full | stolen
        if wait is not None:
            harmed &= wait.where
        spans = find_spans(harmed & ~run.start_windows, min_windows=run.windows.number(120), close_windows=3)
        seconds = seconds_of(spans, run.windows)
        if seconds < 0.05 * run.duration_ms / 1000:
            continue
        where = mask_of(spans, run.windows.count)
        lost = seconds * 0.2 if wait is None else float(np.nansum(wait.share[where])) * run.windows.width_s
        return _neighbour(run, host, spans, bool(stolen[where].mean() > 0.5), lost)
    return []


def _neighbour(
    run: ObservedRun, host: ObservedHost, spans: list[Span], by_steal: bool, lost: float
) -> list[Occurrence]:
    """Return that others take the processors of a host."""
    columns = host.columns
    where = mask_of(spans, run.windows.count)
    steal, others = columns.mean("cpu.steal"), columns.mean("cpu.mean") - columns.mean("cpu")
    text = (
        f"The hypervisor of {host.name} gives {median(steal, where):.0f} % of its processor time to "
        "other machines."
        if by_steal
        else f"Processes outside of the run use {median(others, where):.0f} % of the processors of "
        f"{host.name}, and none are free."
    )
    proof = (
        evidence(columns, "cpu.steal", spans, 0.0)
        if by_steal
        else evidence(columns, "cpu.mean", spans) + evidence(columns, "cpu", spans)
    )
    return [
        Occurrence(
            "warning", "likely", spans, text, proof, host.devices, [host.name], lost * len(host.devices)
        )
    ]


def judge_device_used_by_others(run: ObservedRun) -> Judgement:
    """Find devices of the run on which processes of others work too."""
    telling = [device for device in run.devices if device.has("other_bytes")]
    if not telling:
        return Abstention("which processes use a device is unknown", ("gpu.{i}.otherMemoryBytes",))
    shared = []
    for device in telling:
        total = device.facts.get("memory_bytes")
        least = max(512 * 2**20, 0.02 * total if isinstance(total, int | float) else 0)
        others = above(device.mean("other_bytes"), least)
        own = device.mean("own_bytes")
        if device.has("own_bytes"):
            others &= above(own, 1)
        spans = find_spans(
            others & above(device.work, 0.2), min_windows=run.windows.number(120), close_windows=3
        )
        if seconds_of(spans, run.windows) >= 0.05 * run.duration_ms / 1000:
            shared.append((device, spans))
    if not shared:
        return []
    device, spans = shared[0]
    devices = [each for each, _ in shared]
    used = median(device.mean("other_bytes"), mask_of(spans, run.windows.count)) / 2**30
    seconds = sum(seconds_of(each, run.windows) for _, each in shared)
    return [
        Occurrence(
            "warning",
            "certain",
            spans,
            f"Processes outside of the run use {names_of(devices, run)} too: {used:.1f} GiB of its memory "
            "are theirs.",
            evidence(device.host, device.key("other_bytes"), spans, 0.0)
            + evidence(device.host, device.key("busy"), spans),
            devices,
            cost_s=0.3 * seconds,
        )
    ]


RULES = (
    FindingRule(
        "cpu_limit",
        "A container's limit throttles the run",
        "The container may use less processor time than the run wants: the kernel stops its threads until "
        "the next period.",
        "The quota was exhausted in 25 % of the scheduler's periods or more (nr_throttled ÷ nr_periods) "
        "while the devices wait.",
        "Raise the container's CPU limit (resources.limits.cpu, --cpus), or start fewer workers than it "
        "allows.",
        ("proc.cpu.throttledPercent",),
        judge_cpu_limit,
        order=3,
    ),
    FindingRule(
        "noisy_neighbour",
        "Others use the host's processors",
        "Processes that do not belong to the run, or other virtual machines on the same hardware, use the "
        "processors that it needs.",
        "All processors are used, 30 % or more of them by others, and tasks wait; or 10 % or more are "
        "stolen by the hypervisor; and the devices wait.",
        "Ask for the host exclusively, pin processes to processors, or move the run.",
        ("cpu", "cpu.mean"),
        judge_noisy_neighbour,
        order=3,
    ),
    FindingRule(
        "device_used_by_others",
        "Others use the run's devices",
        "Another process computes on a device of the run: both are slower, and memory may run out.",
        "Processes outside of the run hold 2 % or more of a device's memory while it works.",
        "Find them with nvidia-smi or runvitals top; use exclusive mode, MIG or a scheduler that assigns "
        "devices.",
        ("gpu.{i}.otherMemoryBytes",),
        judge_device_used_by_others,
        order=3,
    ),
)
