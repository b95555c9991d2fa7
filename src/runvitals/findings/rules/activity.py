"""Devices that do nothing: idle, unused, waiting for the end, starting slowly."""

from __future__ import annotations

import numpy as np

from runvitals.findings.devices import Device
from runvitals.findings.finding import Confidence, Severity
from runvitals.findings.host_load import network_rates, read_rate
from runvitals.findings.observed_run import ObservedRun
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
from runvitals.findings.rules.hang import BUSY_KEYS, find_standstills
from runvitals.findings.spans import Span, above, below, find_spans, known, median
from runvitals.findings.training import MAX_START_S
from runvitals.findings.windows import Bools

IDLE_BUSY, IDLE_ACTIVE = 0.05, 2.0
"""Utilisation below 5 % and SM activity below 2 %: the alert of all-smi, the audit of AI-Ocean."""
IDLE_S = 15 * 60
UNSEEN_IDLE_S = 10 * 60
"""Where no host tells what it does: there is no start to wait for."""
LONG_IDLE_S = 60 * 60
TAIL_S = 10 * 60
MIN_TAIL_SHARE = 0.02
"""A shorter tail of a run is information."""
LONG_START_S = 2 * 60 * 60
"""A run that has not begun to work after so long is idle, whatever it prepares."""
MIN_TRANSFER_MIB_S = 5.0
HELD_MEMORY = 5.0
"""Percent of a device's memory that tell that something is loaded."""
PREPARING_CPU = 10.0
"""Percent of the processors; one of many is enough."""


def is_idle(device: Device) -> tuple[Bools, Bools]:
    """Return where a device does nothing, and where that is known."""
    busy, active, watts = device.work, device.mean("active"), device.mean("watts")
    decidable = known(busy)
    idle = below(busy, IDLE_BUSY)
    idle &= ~above(active, IDLE_ACTIVE)
    # A sensor of utilisation that fails at 0 is contradicted by power near that of work.
    highest = np.nanmax(watts) if known(watts).any() else np.nan
    lowest = np.nanmin(watts) if known(watts).any() else np.nan
    if highest > 2 * lowest:
        idle &= ~above(watts, lowest + 0.5 * (highest - lowest))
    return idle, decidable


def judge_idle(run: ObservedRun) -> Judgement:
    """Find devices of the run that all do nothing for long, after they worked or with something loaded."""
    telling = [device for device in run.devices if device.has("busy")]
    if not telling:
        return Abstention(
            "no device reports its utilisation" if run.devices else "the run has no devices that report"
        )
    spans = [
        span
        for span in _idle_together(run, telling)
        if not _is_tail(run, span) and not _steps_go_on(run, span) and not _is_hang(run, span)
    ]
    if not spans:
        return []
    used = [device for device in telling if _was_used(device)] or telling
    return [_idle(run, [each for each in used if not held_by_nobody(each, spans[-1])] or used, spans)]


def _steps_go_on(run: ObservedRun, span: Span) -> bool:
    """Whether steps are logged without the devices."""
    return bool(run.training.has_steps and run.training.steps_per_window()[span.slice].sum() > len(span) / 2)


def _is_hang(run: ObservedRun, span: Span) -> bool:
    """Whether most of a span is a hang, which is a finding of its own."""
    return any(
        min(each.span.last, span.last) - max(each.span.first, span.first) > 0.7 * len(span)
        for each in find_standstills(run)
    )


def _idle(run: ObservedRun, devices: list[Device], spans: list[Span]) -> Occurrence:
    """Return that devices do nothing: still, for an hour and more, or, as information, in pauses."""
    seconds = seconds_of(spans, run.windows)
    longest = max(len(span) for span in spans) * run.windows.width_s
    goes_on = run.ended_ms is None and spans[-1].last >= run.windows.index(run.now_ms) - 2
    severity: Severity = "critical" if longest >= LONG_IDLE_S else "warning"
    if longest < LONG_IDLE_S and not goes_on and _worked_after(run, spans[-1]):
        severity = "info"
    loaded = [device for device in devices if median(device.mean("memory"), spans[0].slice) > HELD_MEMORY]
    memory = "; their memory is still in use" if loaded and len(loaded) == len(devices) else ""
    if len(devices) == 1:
        memory = memory.replace("their", "its")
    verb = "does" if len(devices) == 1 else "do"
    since_s = (run.windows.start_ms + spans[0].first * run.windows.width_ms - run.started_ms) / 1000
    since = "the start of the run"
    if since_s >= 60:
        since = f"{duration_text(since_s)} after {since}"
    times = f", in {len(spans)} pauses from {since}" if len(spans) > 1 else f", from {since}"
    device = devices[0]
    return Occurrence(
        severity,
        "certain" if longest >= LONG_IDLE_S else "likely" if severity == "warning" else "possible",
        spans,
        f"{capitalised(names_of(devices, run))} {verb} nothing for {duration_text(seconds)}{times}{memory}.",
        evidence(device.host, device.key("busy"), spans)
        + evidence(device.host, device.key("watts"), spans)
        + evidence(device.host, device.key("memory"), spans),
        devices,
        cost_s=seconds * len(devices),
    )


def _worked_after(run: ObservedRun, span: Span) -> bool:
    """Whether a device worked after a span: it was a pause, as of somebody at a notebook."""
    return bool(above(run.work[span.last + 1 :], IDLE_BUSY).any())


def _idle_together(run: ObservedRun, devices: list[Device]) -> list[Span]:
    """Return spans in which all devices are idle, without the start of the run and marked validations."""
    states = [is_idle(device) for device in devices]
    every = np.logical_and.reduce([idle | ~decidable for idle, decidable in states])
    decidable = np.logical_or.reduce([decidable for _, decidable in states])
    least_s = IDLE_S
    if run.training.has_steps and run.first_work is not None:
        every[: run.first_work] = False  # a slow start has a rule of its own
    elif run.first_work is None:
        preparing = _starts(run)
        if preparing is None:
            least_s = UNSEEN_IDLE_S
        else:
            every &= ~preparing
    every &= ~run.training.validation()
    return find_spans(every & decidable, decidable, min_windows=run.windows.number(least_s))


def _starts(run: ObservedRun) -> Bools | None:
    """The windows in which a run that never worked may still start; None if no host tells what it does.

    20 minutes are granted to any, two hours to one whose hosts compute, read or receive.
    """
    prepares = np.zeros(run.windows.count, dtype=np.bool_)
    tells = False
    for host in run.hosts:
        received, _ = network_rates(host)
        cpu, rate = host.columns.mean("cpu"), read_rate(host)
        tells = tells or bool(known(cpu).any() or known(received).any() or known(rate).any())
        one_processor = min(100 / (host.cpus or 100), PREPARING_CPU)
        prepares |= (
            above(cpu, 0.8 * one_processor)
            | above(rate, MIN_TRANSFER_MIB_S)
            | above(received, MIN_TRANSFER_MIB_S)
        )
    if not tells:
        return None
    if run.ended_ms is not None and run.first_work is None:
        prepares[:] = False  # it ended without ever having worked
    starts = np.zeros(run.windows.count, dtype=np.bool_)
    starts[: run.windows.number(MAX_START_S)] = True
    prepared = find_spans(prepares, min_windows=2, close_windows=run.windows.number(MAX_START_S / 2))
    if prepared and prepared[0].first <= run.windows.number(MAX_START_S):
        until = prepared[0].last + 1
        if until * run.windows.width_s <= LONG_START_S:
            starts[:until] = True
    return starts


def _was_used(device: Device) -> bool:
    """Whether a device ever worked, or held more memory than its driver needs."""
    return bool(above(device.work, 0.2).any() or above(device.mean("memory"), HELD_MEMORY).any())


def _is_tail(run: ObservedRun, span: Span) -> bool:
    """Whether a span lies between the last step and the end of a run that ended by itself."""
    if not run.training.has_steps or run.state not in ("finished",) or run.ended_ms is None:
        return False
    last_step = run.windows.index(int(run.training.steps_ms[-1]))
    return span.first >= last_step - 2 and span.last >= run.windows.index(run.ended_ms) - 2


def held_by_nobody(device: Device, span: Span) -> bool:
    """Whether a device's memory is in use though no process of the run or of others is known to use it."""
    bytes_used = median(device.mean("memory_bytes"), span.slice)
    own, other = device.mean("own_bytes"), device.mean("other_bytes")
    if not bytes_used > 4 * 2**30 or not (device.has("other_bytes") or device.has("own_bytes")):
        return False
    accounted = float(np.nansum([median(own, span.slice), median(other, span.slice)]))
    return accounted < 0.05 * bytes_used


def judge_idle_devices(run: ObservedRun) -> Judgement:
    """Find devices that do nothing while others, or the steps, go on, and those that were never used."""
    telling = [device for device in run.devices if device.has("busy")]
    if len(telling) < 1:
        return Abstention(
            "no device reports its utilisation" if run.devices else "the run has no devices that report"
        )
    steps = run.training.steps_per_window() > 0
    minimum = run.windows.number(IDLE_S)
    started = np.arange(run.windows.count) >= (run.first_work or 0)
    stacked = np.vstack([device.work for device in telling])
    total, count = np.nansum(stacked, axis=0), (~np.isnan(stacked)).sum(axis=0)
    idle_devices: list[Device] = []
    spans_of: dict[int, list[Span]] = {}
    for index, device in enumerate(telling):
        idle, decidable = is_idle(device)
        others_work = above(
            (total - np.nan_to_num(device.work)) / np.maximum(count - known(device.work), 1), 0.1
        )
        never = not _was_used(device) and (others_work.any() or any(map(_was_used, telling)))
        going_on = others_work | _filled(steps, run) | never
        idle &= going_on & started & ~run.training.validation()
        spans = find_spans(idle, decidable, min_windows=minimum)
        if spans:
            idle_devices.append(device)
            spans_of[index] = spans
    if not idle_devices:
        return []
    return _idle_devices(run, telling, idle_devices, spans_of)


def _idle_devices(
    run: ObservedRun, telling: list[Device], idle_devices: list[Device], spans_of: dict[int, list[Span]]
) -> list[Occurrence]:
    """Return that some devices do nothing."""
    spans = max(spans_of.values(), key=lambda each: seconds_of(each, run.windows))
    seconds = sum(seconds_of(each, run.windows) for each in spans_of.values())
    unused = [device for device in idle_devices if not _was_used(device)]
    never_text = "nothing ever ran there" if len(unused) == len(idle_devices) else "the others work"
    if len(idle_devices) == len(telling):
        never_text = f"steps are logged without {'it' if len(telling) == 1 else 'them'}"
    verbs = "is allocated and does" if len(idle_devices) == 1 else "are allocated and do"
    subject = capitalised(names_of(idle_devices, run))
    count = f" ({len(idle_devices)} of {len(telling)})" if 1 < len(idle_devices) < len(telling) else ""
    text = f"{subject}{count} {verbs} nothing: {never_text}."
    device = idle_devices[0]
    busy_device = next((each for each in telling if each not in idle_devices), device)
    return [
        Occurrence(
            "warning",
            "certain" if seconds > 1800 else "likely",
            spans,
            text,
            evidence(
                device.host,
                device.key("busy"),
                spans,
                median(busy_device.mean("busy")) if busy_device is not device else None,
            )
            + evidence(device.host, device.key("memory"), spans),
            idle_devices,
            cost_s=seconds,
        )
    ]


def _filled(steps: Bools, run: ObservedRun) -> Bools:
    """The windows between steps that are not further apart than usual."""
    if not run.training.has_steps:
        return np.zeros(run.windows.count, dtype=np.bool_)
    spans = find_spans(
        steps, min_windows=1, close_windows=run.windows.number(3 * run.training.median_gap_ms / 1000)
    )
    filled = np.zeros(run.windows.count, dtype=np.bool_)
    for span in spans:
        filled[span.slice] = True
    return filled


def judge_idle_tail(run: ObservedRun) -> Judgement:
    """Find a long time without work between the last step and the end."""
    telling = [device for device in run.devices if device.has("busy")]
    if not telling:
        return Abstention(
            "no device reports its utilisation" if run.devices else "the run has no devices that report"
        )
    if not run.training.has_steps:
        return Abstention(
            "no steps were logged, so the end of the training is unknown", ("a logged row per step",)
        )
    if run.state != "finished" or run.ended_ms is None:
        return []
    last_step = run.windows.index(int(run.training.steps_ms[-1]))
    end = run.windows.index(run.ended_ms)
    idle = np.logical_and.reduce([is_idle(device)[0] for device in telling])
    spans = find_spans(idle[last_step : end + 1], min_windows=run.windows.number(TAIL_S), close_windows=3)
    if not spans or last_step + spans[-1].last < end - 2:
        return []
    span = Span(last_step + spans[-1].first, last_step + spans[-1].last)
    seconds = len(span) * run.windows.width_s
    if seconds < TAIL_S:
        return []
    subject = f"{capitalised(names_of(telling, run))} {'was' if len(telling) == 1 else 'were'} kept"
    return [
        Occurrence(
            "warning" if seconds >= MIN_TAIL_SHARE * run.duration_ms / 1000 else "info",
            "certain",
            [span],
            f"{subject} for {duration_text(seconds)} after the last step, without work.",
            evidence(telling[0].host, telling[0].key("busy"), [span]),
            telling,
            cost_s=seconds * len(telling),
        )
    ]


def judge_slow_start(run: ObservedRun) -> Judgement:
    """Find a training whose first step takes more than 20 minutes."""
    if not run.training.has_steps and not any(device.has("busy") for device in run.devices):
        return Abstention("neither steps nor utilisation tell when the training began", BUSY_KEYS)
    first_ms = None
    if len(run.training.steps_ms):
        first_ms = int(run.training.steps_ms[0])
    elif run.first_work is not None:
        first_ms = run.windows.start_ms + run.first_work * run.windows.width_ms
    until_ms = first_ms if first_ms is not None else (run.ended_ms or run.now_ms)
    if until_ms - run.started_ms <= MAX_START_S * 1000 or not run.devices:
        return []
    span = Span(0, max(run.windows.index(until_ms) - 1, 1))
    if first_ms is None:
        starts = _starts(run)
        if starts is None or not starts[span.slice].all() or not known(run.work).any():
            return []  # it never began: idle
    if median(run.work, span.slice) > 0.5:
        return []  # it works without logging: a long first epoch
    return [_slow_start(run, span, first_ms)]


def _slow_start(run: ObservedRun, span: Span, first_ms: int | None) -> Occurrence:
    """Return that a run takes long until its first step, or has not made one yet."""
    confidence: Confidence = "likely" if len(run.training.steps_ms) else "possible"
    seconds = ((first_ms or run.ended_ms or run.now_ms) - run.started_ms) / 1000
    text = f"The first step came only after {duration_text(seconds)}."
    if first_ms is None:
        text = f"No step and no work of the devices in the first {duration_text(seconds)}: it still starts."
    elif not len(run.training.steps_ms):
        text = f"The devices began to work after {duration_text(seconds)}."
    return Occurrence(
        "warning",
        confidence,
        [span],
        text,
        [item for device in run.devices[:1] for item in evidence(device.host, device.key("busy"), [span])]
        + [item for host in run.hosts[:1] for item in evidence(host.columns, "cpu", [span])],
        run.devices,
        cost_s=seconds * len(run.devices),
        to_ms=first_ms,
    )


RULES = (
    FindingRule(
        "idle",
        "The devices do nothing",
        "All devices of the run have been without work for long, though they worked before or hold memory.",
        "Utilisation below 5 % and SM activity below 2 % for 15 minutes (all-smi, Northeastern's IdleBot). "
        "The start of a run is left out: 20 minutes, or while its hosts compute, read or receive; so are "
        "marked validations and tails of runs that end by themselves. Pauses of less than an hour, after "
        "which the devices worked again, are information: somebody works at a notebook.",
        "Find what the process waits for (py-spy dump); if nothing, end the run so that others can use the "
        "devices.",
        BUSY_KEYS,
        judge_idle,
        order=2,
    ),
    FindingRule(
        "idle_devices",
        "Some devices are allocated and unused",
        "The run holds devices that do nothing while others work, or that it never used at all.",
        "Utilisation below 5 % for 15 minutes while other devices of the run work or steps are logged; or "
        "nothing was ever loaded on the device.",
        "Ask for fewer devices, or start a process for each: check the launcher's number of processes and "
        "CUDA_VISIBLE_DEVICES.",
        BUSY_KEYS,
        judge_idle_devices,
        order=2,
    ),
    FindingRule(
        "idle_tail",
        "The devices are kept after the last step",
        "The run goes on after its training has ended, for example to upload or to evaluate on the "
        "processors, and keeps its devices.",
        "No device works between the last logged step and the end of the run, for 10 minutes. Less than 2 % "
        "of the run is information.",
        "Do what follows the training in a job without accelerators, or end the run before it.",
        ("a logged row per step", *BUSY_KEYS),
        judge_idle_tail,
        order=2,
    ),
    FindingRule(
        "slow_start",
        "The training starts slowly",
        "Much time passes before the first step: packages are installed, data is copied, a model is loaded "
        "or compiled.",
        "No step was logged in the first 20 minutes (SageMaker Debugger: MaxInitializationTime) and the "
        "devices did not work.",
        "Keep data and environments near the machine, cache compiled kernels (TORCHINDUCTOR_CACHE_DIR, "
        "JAX's compilation "
        "cache), load checkpoints in parallel.",
        ("a logged row per step", *BUSY_KEYS),
        judge_slow_start,
        order=2,
    ),
)
