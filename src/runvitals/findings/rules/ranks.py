"""One device or host that all others wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from runvitals.findings.devices import Device
from runvitals.findings.finding import Confidence, Evidence
from runvitals.findings.host_load import pressure
from runvitals.findings.observed_run import ObservedRun, mean_of
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
from runvitals.findings.spans import Span, above, find_spans, known, mask_of, median
from runvitals.findings.windows import Bools, Floats

MADS, MIN_DIFFERENCE = 3.0, 0.10
"""Outside of the median ± 3 MAD and 10 % off (TraceML: a score of 10 %), over minutes."""
MIN_S, UNEXPLAINED_S = 180.0, 600.0
"""It must differ for so long with a cause, and without one."""
MOSTLY = 0.7
"""Of the windows of a span it must differ in so many."""
MOST_ROWS = 0.75
SLOW_CLOCK = 0.8
LEAVE_OUT = "If it is slow again, leave its host out of the next runs."


@dataclass(frozen=True, slots=True)
class SlowCause:
    """Why a device is slow: in a sentence, what to do about it, and the series that show it."""

    text: str
    advice: str
    proof: list[Evidence] = field(default_factory=list)


HEAT = SlowCause("it is throttled by heat", "Look at its cooling: fans, airflow, the room.")
HARDWARE = SlowCause(
    "hardware slows it down", "Look at its power supply and cables, and at the log of its host's BMC."
)
LOW_CLOCK = SlowCause(
    "its clock is lower",
    "Look for limits of its clock and power (nvidia-smi -q -d CLOCK,POWER) and run the vendor's diagnostics "
    "(dcgmi diag -r 3).",
)
LINK = SlowCause(
    "its PCI Express link is slow",
    "Reseat the card or its riser, and look for PCIe errors in the kernel log.",
)
STEAL = SlowCause(
    "the hypervisor gives its host's processors to others",
    "Ask for a machine with processors of its own, or move the run.",
)
WAITS = {
    "cpu": SlowCause(
        "processes on its host wait for processors",
        "See what uses the processors of its host (runvitals top): other jobs, or more workers than it has.",
    ),
    "io": SlowCause(
        "processes on its host wait for its disks",
        "See what reads and writes there, and copy the data to a local disk before the training.",
    ),
    "memory": SlowCause(
        "processes on its host wait for memory", "See what uses the memory of its host; use fewer workers."
    ),
}
"""By what processes wait for."""
SIGNALS: Mapping[str, str] = {
    "clock": "low",
    "watts": "either",
    "busy": "either",
    "active": "either",
    "tensor": "either",
}
"""What is compared, and which side of the median is slow: the slow one may be the one that does not wait."""

Difference = tuple[Sequence[Span], float, float]
"""Where a device differs, its value there, and that of the others."""


def judge(run: ObservedRun) -> Judgement:
    """Find one device, of three or more that do the same, that differs from all others for minutes."""
    telling = [device for device in run.devices if device.has("busy")]
    if len(telling) < 3:
        if len(telling) < 2:
            return Abstention("the run has fewer than two devices that report")
        return Abstention("with two devices, which of them is the slow one is unknown")
    groups = [[device] for device in telling]
    by_host = [[device for device in telling if device.host is host.columns] for host in run.hosts]
    by_host = [devices for devices in by_host if devices]
    occurrences = _slow_groups(run, groups)
    if not occurrences and len(by_host) >= 3 and len(telling) > len(by_host):
        occurrences = _slow_groups(run, by_host)
    if not occurrences and len(by_host) >= 4:
        occurrences = _slow_half(run, by_host)
    return occurrences or _slow_half(run, groups)


def _slow_groups(run: ObservedRun, groups: Sequence[Sequence[Device]]) -> list[Occurrence]:
    """Find groups of devices, each one device or those of one host, that differ from all other groups."""
    outliers: dict[int, dict[str, Difference]] = {}
    at_work = _all_at_work(run, groups)
    for signal, side in SIGNALS.items():
        table = _table(run, groups, signal)
        if table is None:
            continue
        for index, difference in _outside(run, table, at_work, side):
            outliers.setdefault(index, {})[signal] = difference
    occurrences = []
    for index, signals in outliers.items():
        cause = _cause(run, groups[index][0], signals)
        longest = max(seconds_of(spans, run.windows) for spans, _, _ in signals.values())
        if _is_slow(signals, cause) and (cause or longest >= UNEXPLAINED_S):
            occurrences.append(_occurrence(run, groups[index], signals, cause))
    # Half of the devices cannot be the exception.
    return occurrences if len(occurrences) <= max(1, len(groups) // 4) else []


def _all_at_work(run: ObservedRun, groups: Sequence[Sequence[Device]]) -> Bools:
    """The windows of the training in which all groups work: a device that does nothing is no slow one.

    A group without samples, as in a gap of its host, is left out while most have some.
    """
    work = np.vstack([mean_of([device.work for device in group], run.windows.count) for group in groups])
    least = np.where(np.isnan(work), np.inf, work).min(axis=0)
    return np.asarray(run.training_windows & _mostly_known(work) & above(least, 0.1) & above(run.work, 0.4))


def _mostly_known(table: Floats) -> Bools:
    """The columns in which three quarters of the rows, and three or more, have a value."""
    present = (~np.isnan(table)).sum(axis=0)
    return np.asarray((present >= 3) & (present >= MOST_ROWS * len(table)))


def _table(run: ObservedRun, groups: Sequence[Sequence[Device]], signal: str) -> Floats | None:
    """Return a signal with a row for each group; None if it cannot be compared."""
    if not all(device.has(signal) for group in groups for device in group):
        return None
    names = {device.facts.get("name") for group in groups for device in group}
    if signal in ("watts", "clock") and len(names) > 1:
        return None
    return np.vstack(
        [mean_of([device.mean(signal) for device in group], run.windows.count) for group in groups]
    )


def _slow_half(run: ObservedRun, groups: Sequence[Sequence[Device]]) -> list[Occurrence]:
    """Find up to half of the groups whose clock is a fifth below that of the others for ten minutes."""
    table = _table(run, groups, "clock") if len(groups) >= 4 else None
    if table is None:
        return []
    at_work = _all_at_work(run, groups) & known(*table)
    top = np.full(run.windows.count, np.nan)
    if at_work.any():
        top[at_work] = np.percentile(table[:, at_work], 75, axis=0)
    slow: list[int] = []
    spans: list[Span] = []
    for index, row in enumerate(table):
        low = np.asarray(at_work & (row < SLOW_CLOCK * top))
        its_spans = find_spans(low, at_work, min_windows=run.windows.number(UNEXPLAINED_S), close_windows=3)
        if its_spans:
            slow.append(index)
            spans = spans or its_spans
    if not slow or len(slow) > len(groups) // 2:
        return []
    where = mask_of(spans, run.windows.count) & at_work
    value, usual = median(table[slow[0]], where), median(top, where)
    devices = [device for index in slow for device in groups[index]]
    rest = len(run.devices) - len(devices)
    seconds = seconds_of(spans, run.windows)
    return [
        Occurrence(
            "warning",
            "likely",
            spans,
            f"{capitalised(names_of(devices, run))} {'runs' if len(devices) == 1 else 'run'} at "
            f"{value:.0f} MHz, the other {rest} {devices[0].plural} at {usual:.0f} MHz; all ranks wait for "
            "the slowest.",
            evidence(devices[0].host, devices[0].key("clock"), spans, round(usual, 1)),
            devices,
            cost_s=(1 - value / usual) * seconds * len(run.devices),
        )
    ]


def _outside(run: ObservedRun, table: Floats, at_work: Bools, side: str) -> list[tuple[int, Difference]]:
    """Return the rows of a table that lie outside of all others for minutes, each with how they differ."""
    columns = at_work & _mostly_known(table)
    if table.shape[0] < 3 or not columns.any():
        return []
    inner = table[:, columns]
    if np.isnan(inner).any():
        inner = np.where(np.isnan(inner), np.nanmedian(inner, axis=0), inner)  # in a gap nothing differs
    middle, least, most = _of_others(inner)
    difference = inner - middle
    spread = 1.4826 * np.median(np.abs(difference), axis=0)
    far = np.abs(difference) > np.maximum(MADS * spread, MIN_DIFFERENCE * np.abs(middle))
    far &= np.abs(middle) > 1e-9
    if side == "low":
        far &= difference < 0
    # All samples of the others lie on one side too: an outlier, not the end of a spectrum.
    far &= np.maximum(least - inner, inner - most) > MIN_DIFFERENCE / 2 * np.abs(middle)
    minimum = run.windows.number(MIN_S)
    decidable: Bools = np.zeros(run.windows.count, dtype=np.bool_)
    decidable[columns] = True
    result: list[tuple[int, Difference]] = []
    for row in np.flatnonzero(far.sum(axis=1) >= minimum):
        holds: Bools = np.zeros(run.windows.count, dtype=np.bool_)
        holds[columns] = far[row]
        spans = find_spans(holds, decidable, min_windows=minimum, close_windows=3)
        spans = [span for span in spans if holds[span.slice].sum() >= MOSTLY * decidable[span.slice].sum()]
        where = mask_of(spans, run.windows.count)[columns]
        if not where.any() or abs(np.sign(difference[row][where]).mean()) < 0.9:
            continue
        value, usual = float(np.median(inner[row][where])), float(np.median(middle[row][where]))
        result.append((int(row), (spans, value, usual)))
    return result


def _of_others(table: Floats) -> tuple[Floats, Floats, Floats]:
    """Return, for each value, the median, the smallest and the largest of the others in its column."""
    count = table.shape[0]
    ordered = np.sort(table, axis=0)
    ranks = np.argsort(np.argsort(table, axis=0, kind="stable"), axis=0, kind="stable")

    def other(position: int) -> Floats:
        """The value at a position of the others, in order."""
        return np.asarray(np.where(position < ranks, ordered[position], ordered[position + 1]))

    middle = (other((count - 2) // 2) + other((count - 1) // 2)) / 2
    return middle, other(0), other(count - 2)


def _is_slow(signals: Mapping[str, Difference], cause: SlowCause | None) -> bool:
    """Whether what differs is what a slow device has.

    A lower clock is. So is more work than the others, who wait for it, and less, for a device that gets its
    input late; but less of everything with the same clock may be a smaller share of the work.
    """
    if "clock" in signals or cause:
        return True
    differing = {name for name in signals if name != "clock"}
    return len(differing) >= 2 or "busy" in differing


def _cause(run: ObservedRun, device: Device, signals: Mapping[str, Difference]) -> SlowCause | None:
    """Return what of the device's own hardware or host explains that it is slow; None if nothing does."""
    spans = next(iter(signals.values()))[0]
    where = mask_of(spans, run.windows.count)
    for reasons, cause in ((("hwThermal", "swThermal"), HEAT), (("hwPowerBrake", "hwSlowdown"), HARDWARE)):
        share, _ = device.throttle_share(*reasons)
        if median(share, where) > 0.05:
            return replace(cause, proof=evidence(device.host, device.key("temp"), spans))
    if "clock" in signals:
        return LOW_CLOCK
    wait = _of_host(run, device, spans)
    if wait is not None:
        return wait
    gen, most = device.value("pcieLinkGen"), device.value("maxPcieLinkGen")
    return LINK if median(gen, where) < median(most, where) else None


def _of_host(run: ObservedRun, device: Device, spans: Sequence[Span]) -> SlowCause | None:
    """Return what processes on a device's host wait for, more than on the other hosts."""
    if len(run.hosts) < 2:
        return None
    where = mask_of(spans, run.windows.count)
    host = next(host for host in run.hosts if host.columns is device.host)
    for resource, cause in WAITS.items():
        own, key = pressure(host, resource)
        others = [median(pressure(other, resource)[0], where) for other in run.hosts if other is not host]
        usual = float(np.nanmedian(others)) if others and not np.isnan(others).all() else float("nan")
        if key and median(own, where) > 20 and median(own, where) > 2 * usual:
            proof = evidence(host.columns, key, spans, round(usual, 1), value=own, unit="%")
            return replace(cause, proof=proof)
    if median(host.columns.mean("cpu.steal"), where) > 5:
        return replace(STEAL, proof=evidence(host.columns, "cpu.steal", spans, 0.0))
    return None


def _occurrence(
    run: ObservedRun, group: Sequence[Device], signals: Mapping[str, Difference], cause: SlowCause | None
) -> Occurrence:
    device = group[0]
    signal = (
        "clock"
        if "clock" in signals
        else max(signals, key=lambda name: abs(signals[name][1] / signals[name][2] - 1))
    )
    spans, value, normal = signals[signal]
    confidence: Confidence = "likely" if cause else "possible"
    behind = min(abs(1 - value / normal), 0.9)
    seconds = seconds_of(spans, run.windows)
    rank = f" (rank {device.rank})" if device.rank is not None and len(group) == 1 else ""
    holds_up = f"holds up the other {len(run.devices) - len(group)} {device.plural}"
    if not cause:
        holds_up = f"may hold{holds_up.removeprefix('holds')}"
    why = f": {cause.text}" if cause else ", though nothing of its own hardware or host explains it"
    works = "It works while they wait: its" if value > normal else "Its"
    name = {
        "clock": "clock",
        "watts": "power",
        "busy": "utilisation",
        "active": "activity",
        "tensor": "activity of tensor cores",
    }[signal]
    unit = {"clock": " MHz", "watts": " W"}.get(signal, " %")
    return Occurrence(
        "warning",
        confidence,
        spans,
        f"{_name(run, group)}{rank} {holds_up}{why}. {works} {name} is {value:.0f}{unit}, theirs "
        f"{normal:.0f}{unit}.",
        [
            item
            for each, (its_spans, _, usual) in signals.items()
            for item in evidence(device.host, device.key(each), its_spans, round(usual, 1))
        ]
        + (cause.proof if cause else []),
        group,
        cost_s=behind * seconds * len(run.devices),
        advice=f"{cause.advice} {LEAVE_OUT}" if cause else None,
    )


def _name(run: ObservedRun, group: Sequence[Device]) -> str:
    if len(group) == 1:
        return names_of(group, run)
    return f"{group[0].host.name}, with {len(group)} {group[0].plural},"


RULES = (
    FindingRule(
        "straggler",
        "One device is slower than the others",
        "Ranks that train together wait for the slowest of them. Usually it is the one that does not wait.",
        "A device differs from the median of its peers by 3 MAD and 10 % for 3 minutes or more (TraceML; "
        "Minder, FALCON) in clock, power or activity. It is accused with a cause from its own hardware or "
        "host; without one it must differ for 10 minutes and is only possible. Up to half of the hosts or "
        "devices are slow if their clock is a fifth below that of the others for 10 minutes.",
        "Compare the temperature, the clock, the PCI Express link and the host of the slow device with those "
        "of the others. If it is slow again, leave its host out of the next runs and run the vendor's "
        "diagnostics (dcgmi diag -r 3).",
        ("gpu.{i}.gpu", "gpu.{i}.smClock"),
        judge,
        order=3,
    ),
)
