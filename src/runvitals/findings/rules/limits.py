"""Limits from outside: a container's quota, other processes on the host, others on the device."""

from __future__ import annotations

import re

import numpy as np

from runvitals.findings.devices import Device
from runvitals.findings.host_load import (
    all_processors,
    is_throttled,
    own_processors,
    pressure,
    use_of_others,
)
from runvitals.findings.observed_run import ObservedHost, ObservedRun
from runvitals.findings.persistence import persisting, recurrences
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
from runvitals.findings.rules.input_bound import Wait, wait_of
from runvitals.findings.spans import Span, above, known, mask_of, median
from runvitals.findings.training import MIN_STEPS

OTHERS = 30.0
"""Percent of the host's processors that others use."""
STEAL = 10.0
SLOWER, USUAL_S = 1.25, 1800.0
"""So many times as long as in the half hour before: a step is slowed down."""
MIN_OWN = 0.3
"""Processors that the run itself uses: one that hardly computes is not slowed down by others."""
OPEN_S = 180.0
"""Of evidence: the counters of the kernel leave little doubt."""
MIN_OF_OTHERS, OF_OTHERS, OF_SCREENS = 2.0**30, 0.1, 0.25
"""Bytes, and the share of the memory, that others hold; a desktop with a browser takes up to 2 GiB of 12."""
_WITH_SCREEN = re.compile(r"GeForce|Laptop|\bRTX [2-5]0\d\d\b|GTX|TITAN|Quadro|Radeon (RX|Pro)|Arc", re.I)


def judge_cpu_limit(run: ObservedRun) -> Judgement:
    """Find a quota that throttles the run's processes while its devices, or its steps, wait."""
    hosts = hosts_with(run, "proc.cpu.throttledPercent")
    if not hosts:
        return Abstention(
            "no container with a quota of processor time reports throttling", ("proc.cpu.throttledPercent",)
        )
    host_spans: list[tuple[tuple[ObservedHost, Wait | None], list[Span]]] = []
    for host in hosts:
        throttled = is_throttled(host) & ~run.start_windows
        if not throttled.any():
            continue
        wait = wait_of(run, host)
        decidable = ~run.start_windows & known(host.columns.mean("proc.cpu.throttledPercent"))
        if wait is not None:
            throttled &= wait.where | ~wait.decidable
        spans = persisting(run, throttled, decidable, open_s=OPEN_S)
        if spans:
            host_spans.append(((host, wait), spans))
    return [_limit(run, time, members) for time, members in recurrences(run, host_spans)]


def _limit(
    run: ObservedRun, time: list[Span], members: list[tuple[tuple[ObservedHost, Wait | None], list[Span]]]
) -> Occurrence:
    """Report that quotas throttle the run."""
    (host, wait), spans = members[0]
    where = mask_of(spans, run.windows.count)
    share = median(host.columns.mean("proc.cpu.throttledPercent"), where)
    of = f" of {host.cpus:g} processors" if host.cpus else ""
    return Occurrence(
        "warning",
        "certain" if wait is not None else "likely",
        time,
        f"The container's limit{of} throttles the run in {share:.0f} % of the scheduler's periods"
        + (
            f"; {names_of(host.devices, run)} {'waits' if len(host.devices) == 1 else 'wait'}."
            if host.devices
            else "."
        ),
        evidence(host.columns, "proc.cpu.throttledPercent", spans, 0.0)
        + evidence(host.columns, "cpu.ofLimit", spans),
        [device for (each, _), _ in members for device in each.devices],
        [each.name for (each, _), _ in members],
        sum(_lost_s(run, each, waits, where, 1.0) for (each, waits), where in members),
    )


def _lost_s(
    run: ObservedRun, host: ObservedHost, wait: Wait | None, spans: list[Span], share: float
) -> float:
    """The device-seconds that a host lost in spans; a share of them where it is unknown how it waits."""
    devices = len(host.devices) if run.devices else 1  # the host itself is what computes
    if wait is None:
        return share * seconds_of(spans, run.windows) * devices
    waited = float(np.nansum(wait.share[mask_of(spans, run.windows.count)]))
    return waited * run.windows.width_s * devices


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
    host_spans: list[tuple[tuple[ObservedHost, Wait | None], list[Span]]] = []
    for host in hosts:
        columns = host.columns
        others = use_of_others(host)
        cpu_pressure, _ = pressure(host, "cpu")
        full = above(all_processors(host)[0], 90) & above(others, OTHERS)
        if known(cpu_pressure).any():
            full &= above(cpu_pressure, 20)
        full &= own_processors(host) >= MIN_OWN
        harmed = (full | above(columns.mean("cpu.steal"), STEAL)) & ~run.start_windows
        if not harmed.any():
            continue
        wait = wait_of(run, host)
        if wait is not None:
            harmed &= wait.where
        decidable = ~run.start_windows & (known(others) | known(columns.mean("cpu.steal")))
        spans = persisting(run, harmed, decidable, open_s=OPEN_S)
        if spans:
            host_spans.append(((host, wait), spans))
    return [_neighbour(run, time, members) for time, members in recurrences(run, host_spans)]


def _neighbour(
    run: ObservedRun, time: list[Span], members: list[tuple[tuple[ObservedHost, Wait | None], list[Span]]]
) -> Occurrence:
    """Report that others take the processors of hosts."""
    (host, wait), spans = members[0]
    columns = host.columns
    where = mask_of(spans, run.windows.count)
    steal, others = columns.mean("cpu.steal"), use_of_others(host)
    total, key = all_processors(host)
    by_steal = bool(above(steal, STEAL)[where].mean() > 0.5)
    factor = slower_steps(run, time) if wait is None else 1.0
    which = f"the processors of {host.name}" + (" that it may use" if key == "cpu.ofAllowed" else "")
    text = (
        f"The hypervisor of {host.name} gives {median(steal, where):.0f} % of its processor time to "
        "other machines"
        if by_steal
        else f"Processes outside of the run use {median(others, where):.0f} % of {which}, and none are free"
    )
    text += f": a step takes {factor:.1f} times as long." if factor >= SLOWER else "."
    proof = (
        evidence(columns, "cpu.steal", spans, 0.0)
        if by_steal
        else evidence(columns, key, spans, value=total) + evidence(columns, "cpu", spans)
    )
    is_harmed = by_steal or wait is not None or factor >= SLOWER
    lost = 1 - 1 / factor if factor >= SLOWER else 0.2
    return Occurrence(
        "warning" if is_harmed else "info",
        "likely" if is_harmed else "possible",
        time,
        text,
        proof,
        [device for (each, _), _ in members for device in each.devices],
        [each.name for (each, _), _ in members],
        sum(_lost_s(run, each, waits, where, lost) for (each, waits), where in members),
    )


def slower_steps(run: ObservedRun, spans: list[Span]) -> float:
    """Return how many times as long as before a step takes in some spans; 1 if that is unknown."""
    steps_ms = run.training.steps_ms
    if not run.training.has_steps:
        return 1.0
    gaps = np.diff(steps_ms)
    ends = np.clip((steps_ms[1:] - run.windows.start_ms) // run.windows.width_ms, 0, run.windows.count - 1)
    inside = mask_of(spans, run.windows.count)
    before = np.zeros(run.windows.count, dtype=np.bool_)
    for span in spans:
        before[max(span.first - run.windows.number(USUAL_S), 0) : span.first] = True
    before &= ~inside
    slow, usual = gaps[inside[ends]], gaps[before[ends]]
    if len(slow) < MIN_STEPS or len(usual) < MIN_STEPS:
        return 1.0
    return float(np.median(slow) / max(np.median(usual), 1.0))


def judge_device_used_by_others(run: ObservedRun) -> Judgement:
    """Find devices of the run on which processes of others work too."""
    telling = [device for device in run.devices if device.has("other_bytes", "own_bytes")]
    if not telling:
        return Abstention(
            "which processes use a device is unknown",
            ("gpu.{i}.otherMemoryBytes", "gpu.process.{i}.memoryAllocatedBytes"),
        )
    shared: list[tuple[Device, list[Span]]] = []
    for device in telling:
        others = above(device.mean("other_bytes"), _real_share(device)) & above(device.mean("own_bytes"), 1)
        spans = persisting(
            run, others & above(device.work, 0.2), known(device.mean("other_bytes")), open_s=OPEN_S
        )
        if spans:
            shared.append((device, spans))
    return [_used_by_others(run, time, members) for time, members in recurrences(run, shared)]


def _real_share(device: Device) -> float:
    """The bytes from which others compute on a device, and do not only draw its screen."""
    total = device.facts.get("memory_bytes")
    if not isinstance(total, int | float):
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = 100 * device.mean("memory_bytes") / device.mean("memory")
        total = median(sizes, above(device.mean("memory"), 1))
    share = OF_SCREENS if _WITH_SCREEN.search(str(device.facts.get("name") or "")) else OF_OTHERS
    return max(MIN_OF_OTHERS, share * total if total > 0 else 0.0)


def _used_by_others(
    run: ObservedRun, time: list[Span], shared: list[tuple[Device, list[Span]]]
) -> Occurrence:
    """Report that others use devices."""
    device, spans = shared[0]
    devices = [each for each, _ in shared]
    used = median(device.mean("other_bytes"), mask_of(spans, run.windows.count)) / 2**30
    return Occurrence(
        "warning",
        "certain",
        time,
        f"Processes outside of the run use {names_of(devices, run)} too: {used:.1f} GiB of its memory "
        "belong to them.",
        evidence(device.host, device.key("other_bytes"), spans, 0.0)
        + evidence(device.host, device.key("busy"), spans),
        devices,
        cost_s=0.3 * sum(seconds_of(each, run.windows) for _, each in shared),
    )


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
        "All processors are used, 30 % or more of them by others and a third of one by the run, and tasks "
        "wait; or 10 % or more are stolen by the hypervisor; and the devices wait, or steps take a quarter "
        "longer than in the half hour before. Without either, nothing shows that the run is slower: it is "
        "information then.",
        "Ask for the host exclusively, pin processes to processors, or move the run.",
        ("cpu", "cpu.mean"),
        judge_noisy_neighbour,
        order=3,
    ),
    FindingRule(
        "device_used_by_others",
        "Others use the run's devices",
        "Another process computes on a device of the run: both are slower, and memory may run out.",
        "Processes outside of the run hold 10 % or more of a device's memory, and 1 GiB, while it works for "
        "the run, for three minutes; 25 % where it may drive a screen.",
        "Find them with nvidia-smi or runvitals top; use exclusive mode, MIG or a scheduler that assigns "
        "devices.",
        ("gpu.{i}.otherMemoryBytes",),
        judge_device_used_by_others,
        order=3,
    ),
)
