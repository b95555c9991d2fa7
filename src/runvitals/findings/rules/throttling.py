"""Clocks that are lower than they could be: heat, power, brakes, and no reason told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runvitals.findings.devices import Device
from runvitals.findings.finding import Severity
from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.rule import (
    Abstention,
    FindingRule,
    Judgement,
    Occurrence,
    capitalised,
    evidence,
    joined,
    names_of,
    seconds_of,
)
from runvitals.findings.spans import Span, above, below, find_spans, known, mask_of, median
from runvitals.findings.windows import Floats

MIN_THROTTLED = 0.05
"""Share of the time (users of NVML count a reason that is set for more than 5 % of ten minutes)."""
MOSTLY_CAPPED = 0.5
CLOCK_SHARE = 0.6
"""Of the highest clock, or of what its peers have: far below what any cap on purpose costs."""


def _throttled(
    run: ObservedRun, reasons: Sequence[str], min_share: float
) -> tuple[list[tuple[Device, list[Span], Floats, str]], bool]:
    """Return the devices that are throttled for one of these reasons, and whether any device tells."""
    throttled, has_signal = [], False
    for device in run.devices:
        share, key = device.throttle_share(*reasons)
        if key is None:
            continue
        has_signal = True
        spans = find_spans(above(share, min_share), known(share), min_windows=2, close_windows=3)
        total = float(np.nansum(share[mask_of(spans, run.windows.count)])) * run.windows.width_s
        if spans and total >= max(20.0, 0.01 * run.duration_ms / 1000):
            throttled.append((device, spans, share, key))
    return throttled, has_signal


def _lost_share(device: Device, spans: Sequence[Span], share: Floats) -> float:
    """The share of a device's speed that is lost in spans: by its clock, or a fifth where that is unknown."""
    clock = device.mean("clock")
    where = mask_of(spans, len(clock))
    usual = device.max_clock or (float(np.nanpercentile(clock, 95)) if known(clock).any() else float("nan"))
    now = median(clock, where)
    if np.isnan(usual) or np.isnan(now) or usual <= 0:
        return 0.2 * median(share, where)
    return min(max(1 - now / usual, 0.0), 1.0)


def _occurrence(
    run: ObservedRun,
    throttled: list[tuple[Device, list[Span], Floats, str]],
    severity: Severity,
    what: str,
    costs: bool = True,
) -> Occurrence:
    worst = max(throttled, key=lambda each: float(np.nansum(each[2])))
    device, spans, share, key = worst
    where = mask_of(spans, run.windows.count)
    devices = [each for each, *_ in throttled]
    middle = 100 * median(share, where)
    cost_s = 0.0
    if costs:
        # Ranks of one training wait for the slowest: a few throttled devices slow all of them.
        slowed = len(run.devices) if run.training.has_steps and len(run.devices) > 1 else len(devices)
        cost_s = _lost_share(device, spans, share) * seconds_of(spans, run.windows) * slowed
    usual = device.max_clock
    clock = device.mean("clock")
    if usual is None and known(clock).any():
        usual = float(np.nanpercentile(clock, 95))
    temp = median(device.mean("temp"), where)
    heat = f" at {temp:.0f} °C" if not np.isnan(temp) and "hermal" in key else ""
    total = 100 * float(np.nansum(share)) * run.windows.width_ms / run.duration_ms
    return Occurrence(
        severity,
        "certain",
        spans,
        f"{capitalised(names_of(devices, run))} "
        f"{'is' if len(devices) == 1 else 'are'} {what} {middle:.0f} % of the time{heat}"
        + _clock_text(device, spans, usual)
        + ".",
        evidence(device.host, key, spans, 0.0, value=100 * share, unit="%")
        + evidence(device.host, device.key("clock"), spans, usual)
        + evidence(device.host, device.key("temp" if "hermal" in key else "limit"), spans),
        devices,
        cost_s=cost_s,
        share=min(total / 100, 1.0),
    )


def _clock_text(device: Device, spans: Sequence[Span], usual: float | None) -> str:
    now = median(device.mean("clock"), mask_of(spans, device.host.windows.count))
    if np.isnan(now) or not usual or now > 0.97 * usual:
        return ""
    return f", with clocks of {now:.0f} instead of {usual:.0f} MHz"


def judge_thermal(run: ObservedRun) -> Judgement:
    """Find devices that are throttled because they are hot."""
    throttled, has_signal = _throttled(run, ("hwThermal", "swThermal"), MIN_THROTTLED)
    for device in run.devices:
        if device.kind == "tpu" and device.host.has(f"tpu.{device.index}.throttleScore"):
            has_signal = True
            score = device.value("throttleScore") / 10
            spans = find_spans(above(score, 0.1), known(score), min_windows=2, close_windows=3)
            if spans:
                throttled.append((device, spans, score, f"tpu.{device.index}.throttleScore"))
    if not has_signal:
        return Abstention(
            "no device tells for how long it was throttled", ("gpu.{i}.throttle.{reason}Seconds",)
        )
    if not throttled:
        return []
    return joined([_occurrence(run, throttled, "warning", "throttled by heat")], run)


def judge_power(run: ObservedRun) -> Judgement:
    """Find devices whose clocks the power limit holds down, which is a choice."""
    throttled, has_signal = _throttled(run, ("swPowerCap",), MOSTLY_CAPPED)
    if not has_signal:
        return Abstention(
            "no device tells for how long it was capped", ("gpu.{i}.throttle.swPowerCapSeconds",)
        )
    throttled = [
        each for each in throttled if median(each[0].work, mask_of(each[1], run.windows.count)) > 0.5
    ]
    if not throttled:
        return []
    occurrence = _occurrence(run, throttled, "info", "capped by the power limit", costs=False)
    return [occurrence]


def judge_brake(run: ObservedRun) -> Judgement:
    """Find devices that hardware slows down: a brake of the power supply, or a failing board."""
    throttled, has_signal = _throttled(run, ("hwPowerBrake", "hwSlowdown"), MIN_THROTTLED)
    if not has_signal:
        return Abstention(
            "no device tells for how long hardware slowed it down", ("gpu.{i}.throttle.hwSlowdownSeconds",)
        )
    heated = {id(device) for device, *_ in _throttled(run, ("hwThermal",), MIN_THROTTLED)[0]}
    throttled = [each for each in throttled if id(each[0]) not in heated or "Brake" in each[3]]
    if not throttled:
        return []
    return joined([_occurrence(run, throttled, "critical", "slowed down by hardware (power brake)")], run)


def judge_clock(run: ObservedRun) -> Judgement:
    """Find devices whose clock is far below its maximum, or that of its peers, though they work."""
    telling = [device for device in run.devices if device.has("clock", "busy")]
    if not telling:
        return Abstention("no device reports clock and utilisation", ("gpu.{i}.smClock", "gpu.{i}.gpu"))
    limited, compared = [], False
    for device in telling:
        clock = device.mean("clock")
        peers = [
            median(each.mean("clock"), above(each.work, 0.5))
            for each in telling
            if each is not device and each.facts.get("name") == device.facts.get("name")
        ]
        peer = float(np.nanmedian(peers)) if len(peers) >= 2 and not np.isnan(peers).all() else float("nan")
        usual = device.max_clock if device.max_clock is not None else peer
        if np.isnan(usual):
            continue
        compared = True
        # One window after work begins: clocks take a moment to rise.
        at_work = above(device.work, 0.5)
        at_work[1:] &= above(device.work, 0.5)[:-1]
        low = at_work & below(clock, CLOCK_SHARE * usual)
        heat, _ = device.throttle_share("hwThermal", "swThermal", "hwPowerBrake", "hwSlowdown")
        low &= ~above(heat, MIN_THROTTLED)
        spans = find_spans(low, known(clock), min_windows=run.windows.number(45), close_windows=3)
        if spans and (seconds_of(spans, run.windows) > 0.05 * run.duration_ms / 1000):
            limited.append((device, spans, usual))
    if not compared:
        return Abstention("neither the highest clock nor the clocks of peers are known", ("gpu.{i}.smClock",))
    if not limited:
        return []
    return _limited_clock(run, limited)


def _limited_clock(run: ObservedRun, limited: list[tuple[Device, list[Span], float]]) -> list[Occurrence]:
    """Return that clocks are low."""
    device, spans, usual = limited[0]
    devices = [each for each, *_ in limited]
    now = median(device.mean("clock"), mask_of(spans, run.windows.count))
    capped, cap_key = device.throttle_share("swPowerCap")
    share = median(capped, mask_of(spans, run.windows.count))
    reason = (
        f", held down by the power limit {100 * share:.0f} % of the time"
        if share > MOSTLY_CAPPED
        else ", and no reason is known"
    )
    seconds = seconds_of(spans, run.windows)
    return [
        Occurrence(
            "warning",
            "certain" if seconds > 300 or share > MOSTLY_CAPPED else "likely",
            spans,
            f"The clock of {names_of(devices, run)} stays at {now:.0f} MHz, {100 * now / usual:.1f} % of "
            f"{usual:.0f} MHz, under load{reason}.",
            evidence(device.host, device.key("clock"), spans, usual)
            + (
                evidence(device.host, cap_key, spans, 0.0, value=100 * capped, unit="%")
                if share > MOSTLY_CAPPED
                else []
            ),
            devices,
            cost_s=(1 - now / usual) * seconds * len(devices),
        )
    ]


RULES = (
    FindingRule(
        "thermal_throttling",
        "Heat slows devices down",
        "A device lowers its clocks because it, or its memory, is too hot. Ranks of one training wait for "
        "the slowest device.",
        "The driver's counters of throttled time grow by 5 % of the time or more, in two windows or more. "
        "The first reading is "
        "history, and a counter that falls is a gap.",
        "Check fans, filters, airflow and the room's temperature; compare with the other hosts of the "
        "rack; lower the power limit until it is mended.",
        ("gpu.{i}.throttle.{reason}Seconds", "tpu.{i}.throttleScore"),
        judge_thermal,
        order=3,
    ),
    FindingRule(
        "power_capped",
        "The power limit holds clocks down",
        "The device runs at its power limit. That is usual under full load, and a choice where the limit "
        "was lowered.",
        "The driver's counter of the power cap grows by 50 % of the time or more while the device works.",
        "Nothing, if the limit is meant. Otherwise compare enforcedPowerLimitWatts with the default "
        "(nvidia-smi -q -d POWER).",
        ("gpu.{i}.throttle.swPowerCapSeconds",),
        judge_power,
        order=7,
    ),
    FindingRule(
        "hw_slowdown",
        "Hardware slows devices down",
        "A signal from outside of the chip halves its clocks or worse: a power brake of the server, or a "
        "power supply that cannot deliver.",
        "The driver's counters hwSlowdown or hwPowerBrake grow by 5 % of the time or more, in two windows "
        "or more, without heat.",
        "Check power supplies, cables and the server's power limit (BMC); drain the host if it comes back.",
        ("gpu.{i}.throttle.hwSlowdownSeconds",),
        judge_brake,
        order=3,
    ),
    FindingRule(
        "clock_limited",
        "Clocks stay far below their maximum",
        "The device is under load, and its clock is far below what it can do, without heat or a brake.",
        "The clock is below 60 % of its maximum, or of what devices of the same name in the run have, for "
        "45 seconds or more of load.",
        "Reset clock limits (nvidia-smi -rgc, -rac), check the power limit and the driver; a reset or a "
        "cold start helps against stuck sensors.",
        ("gpu.{i}.smClock", "gpu.{i}.gpu"),
        judge_clock,
        order=3,
    ),
)
