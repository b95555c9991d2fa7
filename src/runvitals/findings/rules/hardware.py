"""Hardware that fails: links, memory, sensors, devices that need a reset, memory that nobody holds."""

from __future__ import annotations

import re

import numpy as np

from runvitals.findings.devices import Device
from runvitals.findings.observed_run import ObservedRun
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
from runvitals.findings.rules import links
from runvitals.findings.rules.activity import held_by_nobody, is_idle
from runvitals.findings.spans import Span, above, below, find_spans, known, mask_of, median
from runvitals.findings.windows import Floats

# https://docs.nvidia.com/deploy/xid-errors/: double-bit errors, remapped rows, contained ones and others.
XIDS_OF_MEMORY = frozenset((48, 63, 64, 92, 94, 95, 140))
NEAR_MS = 60_000
_XID = re.compile(r"GPU (\d+): Xid (\d+)")

RECOVERY = {
    1: "a reset",
    2: "a reboot of its host",
    3: "its peer-to-peer traffic to be drained",
    4: "all its work to be drained, and a reset",
}


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


def judge_memory_errors(run: ObservedRun) -> Judgement:
    """Find errors of a device's memory that were not corrected, and failed repairs."""
    names = ("remappedRowsUncorrectable", "remapFailed")
    telling = [
        device
        for device in run.devices
        if device.has("uncorrected")
        or device.has("critical")
        or any(device.host.has(device.prefix + name) for name in names)
    ]
    if not telling:
        return Abstention("no device counts errors of its memory", ("gpu.{i}.unCorrectedMemoryErrors",))
    failing: list[tuple[Device, int, str, float]] = []
    for device in telling:
        growth = device.growth("uncorrected")
        if above(growth, 0.5).any():
            first = int(np.argmax(above(growth, 0.5)))
            failing.append((device, first, str(device.key("uncorrected")), float(np.nansum(growth))))
        error = critical_error(device)
        if error is not None and is_of_memory(run, device, error[0]):
            failing.append((device, error[0], str(device.key("critical")), error[1]))
        for name in names:
            value = device.value(name)
            present = value[known(value)]
            rises = name == "remapFailed" or (len(present) and present[-1] > present[0])
            if above(value, 0.5).any() and rises:
                failing.append(
                    (device, int(np.argmax(above(value, 0.5))), device.prefix + name, float(np.nanmax(value)))
                )
    if not failing:
        return []
    return _memory_errors(run, failing)


def _memory_errors(run: ObservedRun, failing: list[tuple[Device, int, str, float]]) -> list[Occurrence]:
    """Return that memory of devices fails."""
    device, first_window, key, total = min(failing, key=lambda each: each[1])
    devices = list({id(each): each for each, *_ in failing}.values())
    what = "memory rows that failed" if "remap" in key else "memory errors that could not be corrected"
    span = Span(first_window, run.windows.count - 1)
    return [
        Occurrence(
            "critical",
            "certain",
            [span],
            f"{capitalised(names_of(devices, run))} had {total:.0f} {what}.",
            evidence(device.host, key, [span], 0.0, value=np.full(run.windows.count, total)),
            devices,
        )
    ]


def critical_error(device: Device) -> tuple[int, float] | None:
    """Return the window of a device's first critical error, and how many it had; None without."""
    growth = device.growth("critical")
    first, total = above(growth, 0.5), float(np.nansum(growth))
    if not first.any():
        # The counter is absent before the first.
        value = device.high("critical")
        first, total = above(value, 0.5), float(np.nanmax(value)) if known(value).any() else 0.0
    return (int(np.argmax(first)), total) if first.any() else None


def xids_of(run: ObservedRun, device: Device, window: int) -> set[int]:
    """Return the numbers of the errors that the driver told about a device near a window."""
    near_ms = 2 * run.windows.width_ms + NEAR_MS
    at_ms = run.windows.start_ms + window * run.windows.width_ms
    return {
        int(match[2])
        for mark in run.training.marks
        if abs(mark.time_ms - at_ms) <= near_ms
        and mark.host in ("", device.host.name)
        and (match := _XID.match(mark.text))
        and int(match[1]) == device.index
    }


def is_of_memory(run: ObservedRun, device: Device, window: int) -> bool:
    """Whether a critical error is one of memory: by its number, else by counters of memory errors."""
    xids = xids_of(run, device, window)
    if xids:
        return bool(xids & XIDS_OF_MEMORY)
    around = slice(max(window - run.windows.number(300), 0), window + run.windows.number(300))
    counters = [device.growth("uncorrected")]
    counters += [
        np.diff(device.value(name), prepend=np.nan) for name in ("remappedRowsUncorrectable", "remapFailed")
    ]
    return any(bool(above(counter[around], 0.5).any()) for counter in counters)


def judge_needs_reset(run: ObservedRun) -> Judgement:
    """Find devices that the driver, or the vendor's tool, says are broken."""
    names = ("recoveryAction", "healthy", "remapPending")
    telling = [
        device
        for device in run.devices
        if device.has("critical") or any(device.host.has(device.prefix + name) for name in names)
    ]
    if not telling:
        return Abstention(
            "no driver tells whether a device needs a reset", ("gpu.{i}.recoveryAction", "gpu.{i}.healthy")
        )
    broken, failed = [], []
    for device in telling:
        action, healthy, pending = (device.value(name) for name in names)
        bad = above(action, 0.5) | below(healthy, 0.5)
        spans = find_spans(bad, known(action) | known(healthy), min_windows=2)
        if not spans and above(pending, 0.5).any():
            spans = find_spans(above(pending, 0.5), known(pending), min_windows=2)
        error = critical_error(device)
        if spans:
            broken.append((device, spans))
        elif error is not None and not is_of_memory(run, device, error[0]):
            failed.append((device, [Span(error[0], run.windows.count - 1)], error[1]))
    if broken:
        return _needs_reset(run, broken)
    return _failed(run, failed) if failed else []


def _failed(run: ObservedRun, failed: list[tuple[Device, list[Span], float]]) -> list[Occurrence]:
    """Return that devices had critical errors that are not of their memory."""
    device, spans, total = failed[0]
    devices = [each for each, *_ in failed]
    numbers = sorted(xids_of(run, device, spans[0].first))
    which = f" (Xid {', '.join(map(str, numbers))})" if numbers else " (Xid)"
    works = above(device.work[spans[0].first + 1 :], 0.2).any()
    return [
        Occurrence(
            "warning" if works else "critical",
            "likely",
            spans,
            f"The driver reported {total:.0f} critical {'error' if total == 1 else 'errors'}{which} of "
            f"{names_of(devices, run)}" + ("." if works else ", which does nothing since: reset it."),
            evidence(
                device.host, device.key("critical"), spans, 0.0, value=np.full(run.windows.count, total)
            ),
            devices,
            cost_s=0.0 if works else _lost_s(run, spans, devices),
        )
    ]


def _lost_s(run: ObservedRun, spans: list[Span], devices: list[Device]) -> float:
    """The device-seconds that broken devices cost: those of all, if no step was logged since."""
    begin_ms = run.windows.start_ms + spans[0].first * run.windows.width_ms
    steps_ms = run.training.steps_ms
    stopped = run.training.has_steps and int(steps_ms[-1]) < begin_ms + 2 * run.windows.width_ms
    return seconds_of(spans, run.windows) * len(run.devices if stopped else devices)


def _needs_reset(run: ObservedRun, broken: list[tuple[Device, list[Span]]]) -> list[Occurrence]:
    """Return that devices need a reset."""
    device, spans = broken[0]
    where = mask_of(spans, run.windows.count)
    action_number = median(device.value("recoveryAction"), where)
    needs = RECOVERY.get(int(action_number), "a reset") if action_number >= 1 else "a reset"
    devices = [each for each, _ in broken]
    busy, memory = median(device.work, where), median(device.mean("memory"), where)
    contradiction = ""
    if busy > 0.3 and memory < 2:
        contradiction = (
            f" It reports {100 * busy:.0f} % utilisation without memory in use: do not believe it."
        )
    key = device.prefix + (
        "recoveryAction" if device.host.has(device.prefix + "recoveryAction") else "healthy"
    )
    return [
        Occurrence(
            "critical",
            "certain",
            spans,
            f"The driver says that {names_of(devices, run)} "
            f"{'needs' if len(devices) == 1 else 'need'} {needs}.{contradiction}",
            evidence(device.host, key, spans, 0.0 if "recovery" in key else 1.0)
            + (evidence(device.host, device.key("busy"), spans) if contradiction else []),
            devices,
            cost_s=_lost_s(run, spans, devices),
        )
    ]


def judge_sensor(run: ObservedRun) -> Judgement:
    """Find readings that cannot be true."""
    if not run.devices:
        return Abstention("the run has no devices that report")
    implausible: list[tuple[Device, list[Span], str]] = []
    for device in run.devices:
        share = device.mean("power")
        if not known(share).any() and device.has("watts", "limit"):
            share = 100 * device.mean("watts") / device.mean("limit")
        checks: list[tuple[Floats, float, str]] = [
            (device.value("powerSuspect"), 0.5, device.prefix + "powerSuspect"),
            (device.value("busySuspect"), 0.5, device.prefix + "busySuspect"),
            (share, 200.0, device.key("watts") or device.prefix + "powerPercent"),
        ]
        for column, most, key in checks:
            spans = find_spans(above(column, most), known(column), min_windows=2, close_windows=4)
            if spans:
                implausible.append((device, spans, key))
                break
    if not implausible:
        return []
    device, spans, key = implausible[0]
    devices = list({id(each): each for each, *_ in implausible}.values())
    watts, limit = (
        median(device.mean("watts"), mask_of(spans, run.windows.count)),
        median(device.mean("limit")),
    )
    what = (
        f"the power sensor reads {watts:.0f} W" + (f" at a limit of {limit:.0f} W" if limit > 0 else "")
        if "busy" not in key
        else "utilisation reads 100 % at little power"
    )
    return [
        Occurrence(
            "info",
            "certain",
            spans,
            f"A sensor of {names_of(devices, run)} is implausible: {what}. Its values are not counted.",
            evidence(device.host, device.key("watts"), spans, _or_none(limit)),
            devices,
        )
    ]


def judge_held_memory(run: ObservedRun) -> Judgement:
    """Find memory of devices that is in use though no process holds it."""
    telling = [
        device
        for device in run.devices
        if device.has("memory_bytes") and (device.has("other_bytes") or device.has("own_bytes"))
    ]
    if not telling:
        return Abstention(
            "which processes hold a device's memory is unknown",
            ("gpu.{i}.otherMemoryBytes", "gpu.process.{i}.memoryAllocatedBytes"),
        )
    device_spans = []
    for device in telling:
        bytes_used = device.mean("memory_bytes")
        accounted = np.nan_to_num(device.mean("own_bytes")) + np.nan_to_num(device.mean("other_bytes"))
        nobody = (
            above(bytes_used, 4 * 2**30) & (accounted < 0.05 * np.nan_to_num(bytes_used)) & is_idle(device)[0]
        )
        spans = find_spans(nobody & known(bytes_used), known(bytes_used), min_windows=run.windows.number(120))
        if spans and held_by_nobody(device, spans[-1]):
            device_spans.append((device, spans))
    if not device_spans:
        return []
    device, spans = device_spans[0]
    devices = [each for each, _ in device_spans]
    used = median(device.mean("memory_bytes"), mask_of(spans, run.windows.count)) / 2**30
    seconds = sum(seconds_of(each, run.windows) for _, each in device_spans)
    return [
        Occurrence(
            "critical",
            "likely",
            spans,
            f"{used:.1f} GiB of {names_of(devices, run)} are in use, and no process holds them: a process "
            "died without giving them back.",
            evidence(device.host, device.key("memory_bytes"), spans, 0.0)
            + evidence(device.host, device.key("busy"), spans),
            devices,
            cost_s=seconds,
        )
    ]


RULES = (
    FindingRule(
        "device_needs_reset",
        "A device needs a reset",
        "The driver says that a device must be reset, or its host rebooted, before it can be trusted again.",
        "The driver's recovery action is not “none”, the vendor's tool reports the device as unhealthy, or "
        "memory rows wait for replacement, in two windows or more; or the driver reported a critical error "
        "(Xid) that is none of memory and none of a program.",
        "Drain the host, reset the device (nvidia-smi --gpu-reset) or reboot, and run its diagnostics "
        "before the next job.",
        ("gpu.{i}.recoveryAction", "gpu.{i}.healthy"),
        judge_needs_reset,
        order=0,
    ),
    FindingRule(
        "memory_errors",
        "A device's memory fails",
        "A device reported errors of its memory that it could not correct.",
        "The counters of uncorrected errors grow during the run, the replacement of a row failed, or the "
        "driver reported an Xid of memory (48, 63, 64, 92, 94, 95, 140).",
        "Stop using the device, keep the last checkpoint from before the error, run the vendor's "
        "diagnostics (dcgmi diag -r 3).",
        ("gpu.{i}.unCorrectedMemoryErrors",),
        judge_memory_errors,
        order=0,
    ),
    links.PCIE_DEGRADED,
    FindingRule(
        "sensor_implausible",
        "A sensor cannot be right",
        "A reading contradicts physics or other readings, so it is not counted in means, energy or costs.",
        "Power above twice its limit, or utilisation of 100 % at less than a quarter of the power limit, "
        "in two windows or more.",
        "Update driver and firmware; a cold start of the machine often helps.",
        ("gpu.{i}.powerPercent",),
        judge_sensor,
        order=7,
    ),
    FindingRule(
        "held_memory_without_process",
        "Memory of a device is held by nobody",
        "A process that died, or one in another container, still holds memory of the device; nothing works "
        "there.",
        "More than 4 GiB are in use, less than 5 % of it by processes that are known, and the device is "
        "idle, for 2 minutes (vllm-dashboard: 4 GiB in two scans).",
        "Look for processes with the device open (fuser -v /dev/nvidia*), end them, or reset the device.",
        ("gpu.{i}.otherMemoryBytes", "gpu.process.{i}.memoryAllocatedBytes"),
        judge_held_memory,
        order=0,
    ),
)
