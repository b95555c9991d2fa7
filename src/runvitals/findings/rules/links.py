"""Links between devices and their host that are slower than they could be."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from runvitals.findings.devices import Device
from runvitals.findings.finding import Evidence, Severity
from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.persistence import persisting, recurrences
from runvitals.findings.rule import (
    Abstention,
    FindingRule,
    Judgement,
    Occurrence,
    evidence,
    names_of,
    seconds_of,
)
from runvitals.findings.spans import Span, above, known, mask_of, median
from runvitals.findings.windows import Bools, Floats

OPEN_S, LASTING_S = 180.0, 300.0
"""Of load with a slow link until it is reported; of load at a speed until that counts as usual."""
MIN_PEERS, OF_PEERS, OF_ONE_PEER, OF_MAXIMUM, OF_PAST = 3, 0.55, 0.3, 0.07, 0.75
"""Boards have slots with 16, 8 and 4 lanes, so one device or two that have fewer are no fault. A sixteenth of
the maximum is slower than any slot."""
MIN_REPLAYS = 100.0
"""Of packets, since the run began: a bad contact makes thousands."""
_CONSUMER = re.compile(r"GeForce|Laptop|Mobile|Max-Q|\bRTX [2-5]0\d\d\b|GTX|TITAN|Radeon RX|Arc", re.I)


def speed_of(device: Device, generation: str, width: str) -> Floats:
    """The speed of a link per window, in lanes of generation 0: each generation doubles it."""
    gen, lanes = device.high_of(generation), device.high_of(width)
    if not known(gen).any() and not known(lanes).any():
        return gen
    powers = np.exp2(np.clip(gen, 0, 10)) if known(gen).any() else np.ones_like(gen)
    return powers * (np.clip(lanes, 0, 64) if known(lanes).any() else 1.0)


def judge_pcie(run: ObservedRun) -> Judgement:
    """Find links to devices that are slower under load than they were, or than those of others."""
    telling = [
        device
        for device in run.devices
        if device.host.has(device.prefix + "pcieLinkGen") or device.host.has(device.prefix + "pcieLinkWidth")
    ]
    telling = [device for device in telling if not device.shares_host_memory]
    if not telling:
        return Abstention(
            "no device reports its PCI Express link", ("gpu.{i}.pcieLinkGen", "gpu.{i}.pcieLinkWidth")
        )
    usual = {id(device): _usual(device) for device in telling}
    degraded: list[tuple[Device, list[Span]]] = []
    narrow: list[tuple[Device, list[Span]]] = []
    for device in telling:
        speed, most = _under_load(device), speed_of(device, "maxPcieLinkGen", "maxPcieLinkWidth")
        peers = [
            usual[id(each)]
            for each in telling
            if each is not device and each.facts.get("name") == device.facts.get("name")
        ]
        slow = _is_slow(run, device, speed, most, [peer for peer in peers if not np.isnan(peer)])
        spans = persisting(run, slow, known(speed), open_s=OPEN_S)
        if spans:
            degraded.append((device, spans))
            continue
        spans = persisting(run, above(0.9 * most - speed, 0.0), known(speed), open_s=OPEN_S)
        if spans:
            narrow.append((device, spans))
    return [
        *(_slow_link(run, time, group, "warning") for time, group in recurrences(run, degraded)),
        *(_slow_link(run, time, group, "info") for time, group in recurrences(run, narrow)),
    ]


def _under_load(device: Device) -> Floats:
    """The speed of a link in windows of load, and after such a window: idle links save power."""
    at_work = above(device.work, 0.3)
    at_work[1:] &= above(device.work, 0.3)[:-1]
    return np.where(at_work, speed_of(device, "pcieLinkGen", "pcieLinkWidth"), np.nan)


def _usual(device: Device) -> float:
    speed = _under_load(device)
    return median(speed)


def _is_slow(run: ObservedRun, device: Device, speed: Floats, most: Floats, peers: Sequence[float]) -> Bools:
    """Where a link is slower than it was before, than that of its peers, or than any slot."""
    slow = above(OF_PAST * _lasting_most(run, speed) - speed, 0.0)
    is_consumer = bool(_CONSUMER.search(str(device.facts.get("name") or "")))
    if len(peers) >= MIN_PEERS:
        slow |= above(OF_PEERS * float(np.median(peers)) - speed, 0.0)
    elif peers and not is_consumer:
        slow |= above(OF_ONE_PEER * float(np.median(peers)) - speed, 0.0)
    if not is_consumer:
        slow |= above(OF_MAXIMUM * most - speed, 0.0)
    replays = device.growth("replays")
    if above(replays, 0.5).any():
        slow |= above(0.9 * most - speed, 0.0) & above(np.nancumsum(replays), MIN_REPLAYS)
    return slow & ~(known(most) & above(speed - 0.9 * most, 0.0))


def _lasting_most(run: ObservedRun, speed: Floats) -> Floats:
    """The highest speed until each window that lasted for minutes of load."""
    result = np.full(len(speed), np.nan)
    positions = np.flatnonzero(known(speed))
    count = run.windows.number(LASTING_S)
    if len(positions) <= count:
        return result
    lasting = np.lib.stride_tricks.sliding_window_view(speed[positions], count).min(axis=1)
    result[positions[count - 1 :]] = np.maximum.accumulate(lasting)
    return result


def _slow_link(
    run: ObservedRun, time: list[Span], degraded: list[tuple[Device, list[Span]]], severity: Severity
) -> Occurrence:
    """Report that links are slow."""
    device, spans = degraded[0]
    where = mask_of(spans, run.windows.count) & known(_under_load(device))
    devices = [each for each, _ in degraded]

    def number(name: str) -> str:
        value = median(device.value(name), where)
        return "?" if np.isnan(value) else f"{value:.0f}"

    def proof(name: str, most: str) -> list[Evidence]:
        normal = median(device.value(most), where)
        return evidence(device.host, device.prefix + name, spans, None if np.isnan(normal) else normal)

    reason = "" if severity != "info" else " Some slots, and laptops, have no more."
    return Occurrence(
        severity,
        "certain",
        time,
        f"The PCI Express link of {names_of(devices, run)} is generation {number('pcieLinkGen')} "
        f"×{number('pcieLinkWidth')} under load; "
        f"it can be generation {number('maxPcieLinkGen')} ×{number('maxPcieLinkWidth')}.{reason}",
        proof("pcieLinkGen", "maxPcieLinkGen") + proof("pcieLinkWidth", "maxPcieLinkWidth"),
        devices,
        cost_s=0.05 * seconds_of(spans, run.windows) * len(devices) if severity != "info" else 0.0,
    )


PCIE_DEGRADED = FindingRule(
    "pcie_degraded",
    "A PCI Express link is slow",
    "The link between host and device runs with fewer lanes or at a lower generation than it did, or than "
    "those of other devices.",
    "Under load, for three minutes: its speed is below three quarters of what it was for five minutes "
    "before; or below 55 % of the median of three or more devices of the same name (30 % of one or two); or "
    "below 7 % of its maximum; or below its maximum while pcieReplays grow. A link below its maximum is "
    "information otherwise: slots and laptops often have fewer lanes. Idle links save power and are not "
    "looked at; systems on a chip have no such link.",
    "Reseat the device or its riser, check the slot and the BIOS; pcieReplays that grow are a sign of a bad "
    "contact.",
    ("gpu.{i}.pcieLinkGen", "gpu.{i}.pcieLinkWidth"),
    judge_pcie,
    order=3,
)
