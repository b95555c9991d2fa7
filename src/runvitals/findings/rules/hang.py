"""A training that no longer makes steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from runvitals.findings.devices import Device
from runvitals.findings.finding import Confidence, Severity
from runvitals.findings.host_load import network_rates, read_rate, write_rate
from runvitals.findings.observed_run import ObservedHost, ObservedRun, mean_of
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
from runvitals.findings.training import MIN_STEPS
from runvitals.findings.windows import Bools

BUSY_KEYS = ("gpu.{i}.gpu", "tpu.{i}.dutyCycle", "trn.{core}.neuroncore_utilization")
MIN_HANG_S, MIN_SPIN_S = 15 * 60, 5 * 60
"""Without a step (marin's training stalls: 15 minutes); sooner if all devices spin alike."""
HANG_GAPS = 10.0
"""A step that takes ten times as long as usual."""
HANG_PAUSES, MAX_PAUSE_S = 3.0, 60 * 60
"""A pause three times as long as any before, or an hour: evaluations and checkpoints come again."""
LONG_PAUSE_S = 30 * 60
"""A pause that ended is a warning if it was as long, else information."""
POWER_DROP = 0.40
"""A device that waits in a collective reports 100 % at much less power (marin#7344)."""
SPIN_POWER = 0.35
"""The share of the power of work, above that of rest, that a device draws which only waits."""
IDLE_BUSY, SPIN_BUSY = 10.0, 90.0
MIN_TRANSFER_MIB_S = 10.0

State = Literal["works", "busy", "spins", "idle", "silent"]
"""Of a device; `busy` if nothing but its utilisation tells what it does."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """A time without a step that is too long.

    Args:
        from_ms: the last step before, ms UTC.
        to_ms: the first after; None if none followed.
        usual_ms: between steps before.
        states: what each device that tells does in it.
    """

    span: Span
    from_ms: int
    to_ms: int | None
    usual_ms: float
    states: Sequence[tuple[Device, State]]

    def those(self, state: State) -> list[Device]:
        """The devices in a state."""
        return [device for device, its in self.states if its == state]


def find_standstills(run: ObservedRun) -> list[Standstill]:
    """Return the times in which a training makes no step though neither devices nor hosts work.

    Each is judged by what came before it, so that it stays what it is while the run goes on.
    """
    return [
        standstill
        for standstill in _pauses(run)
        if not standstill.those("works")
        and (not _all_busy(standstill) or _seems_to_wait(run, standstill))
        and not _hosts_go_on(run, standstill)
    ]


def _all_busy(standstill: Standstill) -> bool:
    """Whether nothing tells if devices wait or work."""
    return bool(standstill.states) and len(standstill.those("busy")) == len(standstill.states)


def _seems_to_wait(run: ObservedRun, standstill: Standstill) -> bool:
    """Whether devices that only tell their utilisation seem to wait: for an hour, processes do far less."""
    late = standstill.span
    if len(late) * run.windows.width_s < MAX_PAUSE_S:
        return False
    before = np.zeros(run.windows.count, dtype=np.bool_)
    before[: late.first] = run.training_windows[: late.first]
    cpus = [host.columns.mean("cpu") for host in run.hosts]
    return all(
        median(cpu, before) > 1 and median(cpu, late.slice) < (1 - POWER_DROP) * median(cpu, before)
        for cpu in cpus
    )


def _pauses(run: ObservedRun) -> Iterator[Standstill]:
    """Yield the pauses between steps that are far longer than those before."""
    training = run.training
    if not training.has_steps:
        return
    end_ms = run.ended_ms or run.now_ms
    begins = training.steps_ms
    ends = np.append(begins[1:], max(end_ms, int(begins[-1])))
    gaps = (ends - begins).astype(np.float64)
    for step in np.flatnonzero(gaps >= MIN_SPIN_S * 1000):
        from_ms, to_ms = int(begins[step]), int(ends[step])
        is_last = step == len(gaps) - 1
        if step < MIN_STEPS - 1 or (is_last and run.state == "finished"):
            continue  # a run that ended by itself: its tail has a rule of its own
        lasted_ms = gaps[step] - training.validated_ms(from_ms, to_ms)
        usual_ms, longest_ms = float(np.median(gaps[:step])), float(gaps[:step].max())
        if lasted_ms < max(MIN_SPIN_S * 1000, HANG_GAPS * usual_ms):
            continue
        # The window of the last step is not part of it, nor is that of the next.
        span = Span(run.windows.index(from_ms) + 1, run.windows.index(to_ms) - (0 if is_last else 1))
        if len(span) < 2 or not _is_sampled(run, span):
            continue
        states = _states(run, span)
        pause_ms = min(HANG_PAUSES * longest_ms, MAX_PAUSE_S * 1000)
        spins = len(states) > 1 and all(state == "spins" for _, state in states)
        least_ms = max(MIN_HANG_S * 1000, pause_ms)
        if spins:
            least_ms = max(MIN_SPIN_S * 1000, pause_ms / 2)
        if lasted_ms >= least_ms:
            yield Standstill(span, from_ms, None if is_last else to_ms, usual_ms, states)


def _is_sampled(run: ObservedRun, late: Span) -> bool:
    """Whether half of the windows or more have samples: a gap, as of a machine that sleeps, is no hang."""
    sampled = np.zeros(run.windows.count, dtype=np.bool_)
    for host in run.hosts:
        sampled |= host.columns.samples > 0
    return bool(sampled[late.slice].mean() >= 0.5)


def _states(run: ObservedRun, late: Span) -> list[tuple[Device, State]]:
    """Return what each device does in some windows, of those that tell."""
    before = np.zeros(run.windows.count, dtype=np.bool_)
    before[: late.first] = run.training_windows[: late.first]
    unmarked = np.zeros(run.windows.count, dtype=np.bool_)
    unmarked[late.slice] = True
    validation = unmarked & run.training.validation()
    if not validation[late.slice].all():
        unmarked &= ~validation
    return [(device, _state(device, before, unmarked)) for device in run.devices if device.has("busy")]


def _state(device: Device, before: Bools, now: Bools) -> State:
    busy = median(device.work, now) * 100
    if np.isnan(busy):
        return "silent"
    if busy < IDLE_BUSY:
        return "idle"
    for signal in ("tensor", "watts", "power", "active"):
        usual, value = median(device.mean(signal), before), median(device.mean(signal), now)
        if np.isnan(usual) or np.isnan(value) or usual <= 1:
            continue
        rest = 0.0
        if signal in ("watts", "power"):
            rest = min(float(np.nanmin(device.mean(signal))), 0.15 * usual)
        waits = value - rest < SPIN_POWER * (usual - rest)
        return "spins" if waits and busy >= SPIN_BUSY else "works"
    return "busy" if busy >= SPIN_BUSY else "works"


def _hosts_go_on(run: ObservedRun, standstill: Standstill) -> bool:
    """Whether processes move data as they did not before, or, for half an hour, compute as before.

    Not if a device waits for another.
    """
    if standstill.those("spins") or standstill.those("busy"):
        return False
    before = np.zeros(run.windows.count, dtype=np.bool_)
    before[: standstill.span.first] = run.training_windows[: standstill.span.first]
    late = standstill.span
    if any(_moves_data(host, late, before) for host in run.hosts):
        return True
    lasts = not run.devices or len(late) * run.windows.width_s < 2 * MIN_HANG_S
    return lasts and any(_computes(host, late, before) for host in run.hosts)


def _computes(host: ObservedHost, late: Span, before: Bools) -> bool:
    cpu = host.columns.mean("cpu" if host.columns.has("cpu") else "cpu.mean")
    return median(cpu, late.slice) > max((1 - POWER_DROP) * median(cpu, before), 1.0)


def _moves_data(host: ObservedHost, late: Span, before: Bools) -> bool:
    rates = (*network_rates(host), read_rate(host), write_rate(host))
    return any(
        median(rate, late.slice) > max(MIN_TRANSFER_MIB_S, 2 * np.nan_to_num(median(rate, before)))
        for rate in rates
    )


def judge_hang(run: ObservedRun) -> Judgement:
    """Find a training that no longer makes steps though its devices are held."""
    telling = [device for device in run.devices if device.has("busy")]
    if not run.training.has_steps:
        if not telling:
            return Abstention("no steps were logged, and no device reports its utilisation")
        return _flat_devices(run, telling)
    pauses = list(_pauses(run))
    last = pauses[-1] if pauses else None
    if last and last.to_ms is None and _all_busy(last) and not _seems_to_wait(run, last):
        return Abstention(
            "steps stopped, and utilisation alone does not tell whether devices work or wait",
            ("gpu.{i}.powerWatts", "gpu.{i}.smActive", "tpu.{i}.tensorcoreUtilization"),
        )
    if not run.devices and pauses:
        cpu = [host.columns.mean("cpu") for host in run.hosts]
        if not known(mean_of(cpu, run.windows.count)[pauses[-1].span.slice]).any():
            return Abstention(
                "steps stopped, but neither devices nor processes report what they do", BUSY_KEYS
            )
    return [_hang(run, standstill) for standstill in find_standstills(run)]


def _hang(run: ObservedRun, standstill: Standstill) -> Occurrence:
    """Return a standstill as a hang, or as a pause that ended."""
    late = standstill.span
    end_ms = standstill.to_ms or run.ended_ms or run.now_ms
    seconds = (end_ms - standstill.from_ms - run.training.validated_ms(standstill.from_ms, end_ms)) / 1000
    usual = duration_text(standstill.usual_ms / 1000)
    went_on = ", then it went on" if standstill.to_ms is not None else ""
    text = f"No step for {duration_text(seconds)}{went_on}; before, one took {usual}. {_who(run, standstill)}"
    severity: Severity = "critical"
    if standstill.to_ms is not None:
        severity = "warning" if seconds >= LONG_PAUSE_S else "info"
    confidence: Confidence = "certain" if seconds > 2 * MIN_HANG_S else "likely"
    if _all_busy(standstill):
        confidence, severity = "possible", "warning" if severity == "critical" else severity
    before = np.zeros(run.windows.count, dtype=np.bool_)
    before[: late.first] = run.training_windows[: late.first]
    evidence_items = []
    for device in [*standstill.those("idle")[:1], *standstill.those("spins")[:1]]:
        for signal in ("busy", "watts"):
            usual_value = median(device.mean(signal), before)
            normal = None if np.isnan(usual_value) else round(usual_value, 1)
            evidence_items += evidence(device.host, device.key(signal), [late], normal)
    if not evidence_items and run.hosts:
        columns = run.hosts[0].columns
        evidence_items += evidence(columns, "cpu", [late], median(columns.mean("cpu"), before))
    return Occurrence(
        severity,
        confidence,
        [late],
        text,
        evidence_items,
        run.devices,
        cost_s=seconds * len(run.devices),
        from_ms=standstill.from_ms,
        to_ms=standstill.to_ms,
    )


def _who(run: ObservedRun, standstill: Standstill) -> str:
    """Say what the devices do, and which of them the others wait for."""
    waiting = standstill.those("spins") + standstill.those("busy")
    behind = standstill.those("idle") + standstill.those("silent")
    if not standstill.states:
        return "Its processes do nothing."
    verb = "stays" if len(standstill.states) == 1 else "stay"
    everything = names_of([device for device, _ in standstill.states], run)
    if waiting and behind and len(behind) <= len(waiting):
        does = "does" if len(behind) == 1 else "do"
        ranks = [device.rank for device in behind if device.rank is not None]
        rank = f" (rank {ranks[0]})" if len(ranks) == len(behind) == 1 else ""
        others = f"the other {len(waiting)} {waiting[0].plural} wait"
        if len(waiting) == 1:
            others = f"{names_of(waiting, run)} waits"
        who = f"{capitalised(names_of(behind, run))}{rank} {does} nothing"
        return f"{who} while {others} for {'it' if len(behind) == 1 else 'them'}: look there first."
    if waiting:
        spin = "it only waits" if len(standstill.states) == 1 else "they only wait"
        return (
            f"{capitalised(everything)} {verb} allocated, but {spin}, in a collective that never completes."
        )
    nothing = "does nothing" if len(standstill.states) == 1 else "do nothing"
    return f"{capitalised(everything)} {verb} allocated and {nothing}."


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
            f"{capitalised(names_of(devices, run))} have been fully used at little power for "
            f"{duration_text(seconds)}, all alike: they seem to wait for each other.",
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
        "kernel of a collective operation spins while it waits for a rank that never comes.",
        "No step for 15 minutes, 10 times the usual distance of steps, and 3 times the longest pause before "
        "(or an hour), without marked validations; after 5 minutes if several devices are all fully used at "
        "a fraction of the power of work. Devices must do nothing or only wait: at half load, or at the "
        "power of the steps before, they work, and a long step is no hang. Where nothing but utilisation "
        "tells, it is a possible hang after an hour in which the processes use 40 % less of the processors. "
        "Hosts that begin to move data while the devices rest, or that compute as before for less than 30 "
        "minutes, make it `idle`. If "
        "steps go on afterwards, it was a pause: a warning from 30 minutes on. Without logged steps, several "
        "devices that are all fully used at little power for 15 minutes are a possible hang.",
        "Look at the stacks of all ranks (py-spy dump) and at which rank did not reach the collective; "
        "then stop the run and resume from the last checkpoint. NCCL_DEBUG=INFO and a timeout of the process "
        "group end such a run by themselves.",
        ("a logged row per step", *BUSY_KEYS),
        judge_hang,
        order=1,
    ),
)
