"""Clocks that are lower than they could be: heat, power, brakes, and no reason told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runvitals.findings.devices import Device
from runvitals.findings.finding import Severity
from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.persistence import persisting, recurrences
from runvitals.findings.rule import (
    Abstention,
    FindingRule,
    Judgement,
    Occurrence,
    capitalised,
    evidence,
    names_of,
    seconds_of,
)
from runvitals.findings.spans import Span, above, below, find_spans, known, mask_of, median
from runvitals.findings.windows import Bools, Floats

MIN_THROTTLED = 0.05
"""Share of the time (users of NVML count a reason that is set for more than 5 % of ten minutes)."""
MIN_THROTTLED_S = 20.0
"""Of throttled time altogether; a short blip is none."""
OPEN_S, CLOCK_S = 60.0, 120.0
"""A minute of windows with throttled time, two with a low clock: counters and clocks tell surely."""
MOSTLY_CAPPED = 0.5
CLOCK_SHARE = 0.6
"""Of the highest clock, or of what its peers have: far below what any cap on purpose costs."""


@dataclass(frozen=True, eq=False)
class Throttled:
    """A device that is throttled: by how much of each window, and the key that tells."""

    device: Device
    share: Floats
    key: str

    def seconds(self, span: Span) -> float:
        """The throttled seconds of a span."""
        return float(np.nansum(self.share[span.slice])) * self.device.host.windows.width_s


def _throttled(
    run: ObservedRun, reasons: Sequence[str], min_share: float, *, but: Sequence[str] = ()
) -> tuple[list[tuple[Throttled, list[Span]]], bool]:
    """Return the devices that are throttled for one of these reasons, and whether any device tells.

    Args:
        but: windows with these reasons do not count.
    """
    throttled, has_signal = [], False
    for device in run.devices:
        share, key = device.throttle_share(*reasons)
        if key is None:
            continue
        has_signal = True
        holds = above(share, min_share)
        if but and holds.any():
            holds &= ~above(device.throttle_share(*but)[0], MIN_THROTTLED)
        slow_device = Throttled(device, share, key)
        spans = [span for span in _lasting(run, holds, share) if slow_device.seconds(span) >= MIN_THROTTLED_S]
        if spans:
            throttled.append((slow_device, spans))
    return throttled, has_signal


def _lasting(run: ObservedRun, holds: Bools, share: Floats) -> list[Span]:
    return persisting(run, holds, known(share), open_s=OPEN_S)


def _reports(
    run: ObservedRun,
    throttled: Sequence[tuple[Throttled, list[Span]]],
    severity: Severity,
    what: str,
    costs: bool = True,
) -> list[Occurrence]:
    """Report throttled devices, those at about the same time as one."""
    return [
        _occurrence(run, time, members, severity, what, costs)
        for time, members in recurrences(run, throttled)
    ]


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
    time: list[Span],
    throttled: list[tuple[Throttled, list[Span]]],
    severity: Severity,
    what: str,
    costs: bool,
) -> Occurrence:
    worst, spans = max(throttled, key=lambda each: sum(each[0].seconds(span) for span in each[1]))
    device, share, key = worst.device, worst.share, worst.key
    where = mask_of(spans, run.windows.count)
    devices = [each.device for each, _ in throttled]
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
    return Occurrence(
        severity,
        "certain",
        time,
        f"{capitalised(names_of(devices, run))} "
        f"{'is' if len(devices) == 1 else 'are'} {what} {middle:.0f} % of the time{heat}"
        + _clock_text(device, spans, usual)
        + ".",
        evidence(device.host, key, spans, 0.0, value=100 * share, unit="%")
        + evidence(device.host, device.key("clock"), spans, usual)
        + evidence(device.host, device.key("temp" if "hermal" in key else "limit"), spans),
        devices,
        cost_s=cost_s,
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
            spans = _lasting(run, above(score, 0.1), score)
            if spans:
                throttled.append((Throttled(device, score, f"tpu.{device.index}.throttleScore"), spans))
    if not has_signal:
        return Abstention(
            "no device tells for how long it was throttled", ("gpu.{i}.throttle.{reason}Seconds",)
        )
    return _reports(run, throttled, "warning", "throttled by heat")


def judge_power(run: ObservedRun) -> Judgement:
    """Find devices whose clocks the power limit holds down, which is a choice."""
    throttled, has_signal = _throttled(run, ("swPowerCap",), MOSTLY_CAPPED)
    if not has_signal:
        return Abstention(
            "no device tells for how long it was capped", ("gpu.{i}.throttle.swPowerCapSeconds",)
        )
    throttled = [
        (slow_device, spans)
        for slow_device, spans in throttled
        if median(slow_device.device.work, mask_of(spans, run.windows.count)) > 0.5
    ]
    return _reports(run, throttled, "info", "capped by the power limit", costs=False)


def judge_brake(run: ObservedRun) -> Judgement:
    """Find devices that hardware slows down: a brake of the power supply, or a failing board."""
    braked, has_signal = _throttled(run, ("hwPowerBrake",), MIN_THROTTLED)
    slowed, has_slowdown = _throttled(run, ("hwSlowdown",), MIN_THROTTLED, but=("hwThermal",))
    if not has_signal and not has_slowdown:
        return Abstention(
            "no device tells for how long hardware slowed it down", ("gpu.{i}.throttle.hwSlowdownSeconds",)
        )
    known_brakes = {id(slow_device.device) for slow_device, _ in braked}
    throttled = braked + [each for each in slowed if id(each[0].device) not in known_brakes]
    return _reports(run, throttled, "critical", "slowed down by hardware (power brake)")


def judge_clock(run: ObservedRun) -> Judgement:
    """Find devices whose clock is far below its maximum, or that of its peers, though they work."""
    telling = [device for device in run.devices if device.has("clock", "busy")]
    if not telling:
        return Abstention("no device reports clock and utilisation", ("gpu.{i}.smClock", "gpu.{i}.gpu"))
    limited: list[tuple[tuple[Device, float], list[Span]]] = []
    compared, peers = False, _clocks_of_peers(telling)
    for device in telling:
        usual = device.max_clock or peers.get(device.facts.get("name"), float("nan"))
        if np.isnan(usual):
            continue
        compared = True
        clock = device.mean("clock")
        # One window after work begins: clocks take a moment to rise.
        at_work = above(device.work, 0.5)
        at_work[1:] &= above(device.work, 0.5)[:-1]
        low = at_work & below(clock, CLOCK_SHARE * usual)
        if not low.any():
            continue
        heat, _ = device.throttle_share("hwThermal", "swThermal", "hwPowerBrake", "hwSlowdown")
        low &= ~above(heat, MIN_THROTTLED)
        spans = persisting(run, low, known(clock) & at_work, open_s=CLOCK_S)
        if not spans and at_work.sum() <= run.windows.number(CLOCK_S):  # a run of less than two minutes
            spans = find_spans(low, known(clock), min_windows=run.windows.number(45), close_windows=3)
        if spans:
            limited.append(((device, usual), spans))
    if not compared:
        return Abstention("neither the highest clock nor the clocks of peers are known", ("gpu.{i}.smClock",))
    return [_limited_clock(run, time, members) for time, members in recurrences(run, limited)]


def _clocks_of_peers(devices: Sequence[Device]) -> dict[Any, float]:
    """The usual clock at work of devices of the same name, where three or more tell."""
    by_name: dict[Any, list[float]] = {}
    for device in devices:
        if device.max_clock is None:
            clock = median(device.mean("clock"), above(device.work, 0.5))
            by_name.setdefault(device.facts.get("name"), []).append(clock)
    return {
        name: float(np.nanmedian(clocks))
        for name, clocks in by_name.items()
        if len(clocks) >= 3 and not np.isnan(clocks).all()
    }


def _limited_clock(
    run: ObservedRun, time: list[Span], limited: list[tuple[tuple[Device, float], list[Span]]]
) -> Occurrence:
    """Report that clocks are low."""
    (device, usual), spans = limited[0]
    devices = [each for (each, _), _ in limited]
    now = median(device.mean("clock"), mask_of(spans, run.windows.count))
    capped, cap_key = device.throttle_share("swPowerCap")
    share = median(capped, mask_of(spans, run.windows.count))
    reason = (
        f", held down by the power limit {100 * share:.0f} % of the time"
        if share > MOSTLY_CAPPED
        else ", and the driver gives no reason"
    )
    seconds = seconds_of(spans, run.windows)
    return Occurrence(
        "warning",
        "certain" if seconds > 300 or share > MOSTLY_CAPPED else "likely",
        time,
        f"The clock of {names_of(devices, run)} stays at {now:.0f} MHz, {100 * now / usual:.2g} % of "
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


RULES = (
    FindingRule(
        "thermal_throttling",
        "Heat slows devices down",
        "A device lowers its clocks because it, or its memory, is too hot. Ranks of one training wait for "
        "the slowest device.",
        "The driver's counters of throttled time grow by 5 % of the time or more, in two windows or more "
        "and for a minute, by 20 seconds altogether. The first reading is "
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
        "two minutes of load or more (45 seconds in a run that has less).",
        "Reset clock limits (nvidia-smi -rgc, -rac), check the power limit and the driver; a reset or a "
        "cold start helps against stuck sensors.",
        ("gpu.{i}.smClock", "gpu.{i}.gpu"),
        judge_clock,
        order=3,
    ),
)
