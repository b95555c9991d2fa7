"""A training that no longer makes steps."""

from __future__ import annotations

import numpy as np

from runvitals.findings.devices import Device
from runvitals.findings.observed_run import ObservedRun, mean_of
from runvitals.findings.rule import (
    Abstention,
    FindingRule,
    Judgement,
    Occurrence,
    capitalised,
    duration_text,
    evidence,
    names_of,
    seconds_of,
)
from runvitals.findings.spans import Span, above, below, find_spans, known, median
from runvitals.findings.windows import Bools

BUSY_KEYS = ("gpu.{i}.gpu", "tpu.{i}.dutyCycle", "trn.{core}.neuroncore_utilization")
MIN_HANG_S = 5 * 60
HANG_GAPS = 10.0
"""A step that takes ten times as long as usual (marin's training stalls: 15 minutes without progress)."""
POWER_DROP = 0.40
"""A device that waits in a collective reports 100 % at much less power (marin#7344)."""


def step_is_late(run: ObservedRun) -> Span | None:
    """Return the windows in which a step takes far too long, the last or one between; None without."""
    training = run.training
    if not training.has_steps:
        return None
    gaps = np.diff(training.steps_ms)
    usual = training.median_gap_ms
    longest_usual = float(np.partition(gaps, -2)[-2]) if len(gaps) > 2 else usual
    late_ms = max(MIN_HANG_S * 1000, HANG_GAPS * usual, 2 * min(longest_usual, 30 * 60_000))
    end_ms = run.ended_ms or run.now_ms
    last = int(training.steps_ms[-1])
    if end_ms - last > late_ms:
        return Span(run.windows.index(last) + 1, run.windows.index(end_ms))
    worst = int(np.argmax(gaps))
    if gaps[worst] > late_ms:
        return Span(
            run.windows.index(int(training.steps_ms[worst])) + 1,
            run.windows.index(int(training.steps_ms[worst + 1])) - 1,
        )
    return None


def judge_hang(run: ObservedRun) -> Judgement:
    """Find a training that no longer makes steps though its devices are held."""
    telling = [device for device in run.devices if device.has("busy")]
    if not run.training.has_steps:
        if not telling:
            return Abstention("no steps were logged, and no device reports its utilisation")
        return _flat_devices(run, telling)
    late = step_is_late(run)
    if late is None or len(late) < 2 or not _is_sampled(run, late):
        return []
    before = np.zeros(run.windows.count, dtype=np.bool_)
    before[: late.first] = run.training_windows[: late.first]
    at_full_power = [device for device in run.devices if _works_as_before(device, before, late)]
    if run.devices and len(at_full_power) == len(run.devices):
        return []
    is_tail = late.last >= run.windows.index(run.ended_ms or run.now_ms) - 1
    if is_tail and run.state == "finished":
        return []  # it ended by itself: the tail has a rule of its own
    busy = mean_of([device.work for device in telling], run.windows.count)
    spins = median(busy, late.slice) > 0.9
    if not run.devices:
        cpu = mean_of([host.columns.mean("cpu") for host in run.hosts], run.windows.count)
        if not known(cpu[late.slice]).any():
            return Abstention(
                "steps stopped, but neither devices nor processes report what they do", BUSY_KEYS
            )
        works_on = median(cpu, late.slice) > 0.6 * max(median(cpu, before), 1e-9)
        late_s = len(late) * run.windows.width_s
        if works_on and late_s < max(30 * 60, 60 * run.training.median_gap_ms / 1000):
            return []  # processors at work look like processors that spin
    return _hang(run, telling, late, before, spins)


def _is_sampled(run: ObservedRun, late: Span) -> bool:
    """Whether half of the windows or more have samples: a gap, as of a machine that sleeps, is no hang."""
    sampled = np.zeros(run.windows.count, dtype=np.bool_)
    for host in run.hosts:
        sampled |= host.columns.samples > 0
    return bool(sampled[late.slice].mean() >= 0.5)


def _hang(
    run: ObservedRun, telling: list[Device], late: Span, before: Bools, spins: bool
) -> list[Occurrence]:
    """Return the hang of a run in some windows."""
    seconds = len(late) * run.windows.width_s
    how = "they spin in a collective that never completes" if spins else "they do nothing"
    who = f"{names_of(telling, run)} stay allocated: {how}" if telling else "its processes do nothing"
    usual = duration_text(run.training.median_gap_ms / 1000)
    text = f"No step for {duration_text(seconds)}; before, one took {usual}. {capitalised(who)}."
    found = []
    for device in telling[:2]:
        for signal in ("busy", "watts"):
            found += evidence(device.host, device.key(signal), [late], _normal(device, signal, before))
    if not found and run.hosts:
        columns = run.hosts[0].columns
        found += evidence(columns, "cpu", [late], median(columns.mean("cpu"), before))
    return [
        Occurrence(
            "critical",
            "certain" if seconds > 15 * 60 else "likely",
            [late],
            text,
            found,
            run.devices,
            cost_s=seconds * len(run.devices),
            from_ms=int(run.training.steps_ms[-1]) if late.last >= run.windows.count - 2 else None,
        )
    ]


def _works_as_before(device: Device, before: Bools, late: Span) -> bool:
    """Whether a device draws the power, or is as active, as during the steps before."""
    for signal in ("tensor", "active", "watts", "power", "busy"):
        if not device.has(signal):
            continue
        column = device.mean(signal)
        usual, now = median(column, before), median(column, late.slice)
        if np.isnan(usual) or np.isnan(now):
            continue
        if signal in ("watts", "power"):
            idle = float(np.nanmin(column))
            usual, now = usual - 0.5 * idle, now - 0.5 * idle
        if usual > 0:
            return now > (1 - POWER_DROP) * usual
    return False


def _normal(device: Device, signal: str, before: Bools) -> float | None:
    usual = median(device.mean(signal), before)
    return None if np.isnan(usual) else round(usual, 1)


def _flat_devices(run: ObservedRun, devices: list[Device]) -> Judgement:
    """Find many devices that are equal, flat and fully used at little power: all wait for each other."""
    if len(devices) < 2 or not all(device.has("watts") for device in devices):
        return Abstention(
            "no steps were logged, so a hang looks like a long step", ("a logged row per step",)
        )
    busy = np.vstack([device.mean("busy") for device in devices])
    watts = np.vstack([device.mean("watts") for device in devices])
    flat = np.ones(run.windows.count, dtype=np.bool_)
    for row, power in zip(busy, watts, strict=True):
        high = np.nanpercentile(power, 90) if known(power).any() else np.nan
        flat &= above(row, 95) & below(power, (1 - POWER_DROP) * high)
    spans = find_spans(
        flat, known(mean_of(list(busy), run.windows.count)), min_windows=run.windows.number(15 * 60)
    )
    last = [span for span in spans if span.last >= run.windows.count - 3]
    if not last:
        return []
    seconds = seconds_of(last, run.windows)
    return [
        Occurrence(
            "critical",
            "possible",
            last,
            f"{names_of(devices, run)} have been fully used at little power for {duration_text(seconds)}, "
            "all alike: "
            "they seem to wait for each other.",
            evidence(devices[0].host, devices[0].key("busy"), last)
            + evidence(devices[0].host, devices[0].key("watts"), last, float(np.nanpercentile(watts[0], 90))),
            devices,
            cost_s=seconds * len(devices),
        )
    ]


RULES = (
    FindingRule(
        "hang",
        "The training hangs",
        "The training makes no more steps while its devices stay allocated. Utilisation may read 100 %: a "
        "kernel of a "
        "collective operation spins while it waits for a rank that never comes.",
        "The last logged step is older than 5 minutes and than 10 times the usual distance of steps, and "
        "power or activity of "
        "a device is 40 % lower than during the steps before. A long step at full power is no hang. "
        "Without logged steps, "
        "several devices that are all fully used at little power for 15 minutes are a possible hang.",
        "Look at the stacks of all ranks (py-spy dump) and at which rank did not reach the collective; "
        "then stop the run and "
        "resume from the last checkpoint. NCCL_DEBUG=INFO and a timeout of the process group end such a "
        "run by themselves.",
        ("a logged row per step", *BUSY_KEYS),
        judge_hang,
        order=1,
    ),
)
