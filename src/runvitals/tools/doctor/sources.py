"""Checks each source with a real reading."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from runvitals.monitoring.collectors.base import Scope
from runvitals.monitoring.collectors.sources import FAULTS, is_partial
from runvitals.monitoring.environment import hardware
from runvitals.sdk.probe import MachineReading
from runvitals.tools.doctor.finding import Check, State
from runvitals.tools.doctor.remedies import remedy

# Sources for each vendor of PCI cards. One active source is enough.
SOURCES_OF = {
    "NVIDIA": ("nvidia", "dcgm"),
    "AMD": ("amd",),
    "Huawei": ("ascend",),
    "Google": ("tpu",),
    "Amazon": ("trainium", "neuron"),
    "Hygon": ("hygon",),
    "Graphcore": ("graphcore", "ipu"),
    "Habana": ("gaudi",),
    "T-Head": ("thead",),
    "Iluvatar": ("iluvatar",),
    "Tenstorrent": ("tenstorrent",),
    "FuriosaAI": ("furiosa",),
    "Moore Threads": ("moorethreads",),
    "Rebellions": ("rebellions",),
    "Kunlunxin": ("kunlunxin",),
    "Intel": ("intel", "gaudi", "npu"),
    "MetaX": ("metax",),
    "Cambricon": ("cambricon",),
    "Enflame": ("enflame",),
    "Biren": ("biren",),
    "Qualcomm": ("qualcomm",),
}
# Settings that request a source. If they are set, its absence is an error.
_REQUESTED_BY = {
    "openmetrics": "openmetrics_endpoints",
    "dcgm": "dcgm_exporter",
    "trainium": "neuron_monitor_config",
}
_NODES = (
    "/dev/nvidiactl", "/dev/kfd", "/dev/neuron0", "/dev/accel0", "/dev/hl0", "/dev/davinci_manager",
    "/dev/gcu0", "/dev/biren/card_0",
)  # fmt: skip


def findings(reading: MachineReading, values: Mapping[str, Any]) -> Iterator[Check]:
    """Yield a finding for each source, then for accelerators that are present but not measured."""
    for name, state in reading.states.items():
        yield _source(name, state, reading, values)
    yield from _find_unmeasured(reading, values)
    yield from _permissions()


def _source(name: str, state: Mapping[str, str], reading: MachineReading, values: Mapping[str, Any]) -> Check:
    reason = state.get("reason", "")
    count, took_ms = reading.counts.get(name, 0), reading.took_ms.get(name, 0.0)
    read = f"{count} {'value' if count == 1 else 'values'} in {took_ms:.1f} ms"
    if state["state"] == "failing":
        return Check("sources", name, "FAIL", reason, remedy(reason))
    if state["state"] == "absent":
        requested = name in values["collectors"] or bool(values.get(_REQUESTED_BY.get(name, "")))
        broken = reason.startswith(FAULTS) or requested
        return Check("sources", name, "FAIL" if broken else "ABSENT", reason, remedy(reason))
    outcome: State = "PARTIAL" if is_partial(state) or not count else "PASS"
    text = f"{read}; {reason}" if reason else read
    return Check("sources", name, outcome, text, remedy(reason))


def _find_unmeasured(reading: MachineReading, values: Mapping[str, Any]) -> Iterator[Check]:
    """Yield a finding for accelerators on the PCI bus without an active source."""
    on = {name for name, state in reading.states.items() if state["state"] != "absent"}
    by_vendor: dict[str, list[str]] = {}
    for card in hardware.accelerators(Scope(values["host_root"])):
        # Skip display controllers without a compute driver, such as a server's onboard graphics.
        vendor = str(card.get("vendor", ""))
        if vendor in SOURCES_OF and not on.intersection(SOURCES_OF[vendor]):
            by_vendor.setdefault(vendor, []).append(f"{card['address']} ({card.get('driver', 'no driver')})")
    for vendor, cards in by_vendor.items():
        reasons = [
            reading.states[source]["reason"]
            for source in SOURCES_OF[vendor]
            if "reason" in reading.states.get(source, {})
        ]
        why = "; ".join(reasons) or f"no source for {vendor} cards is enabled"
        text = f"{len(cards)} on the PCI bus, not measured: {', '.join(cards[:4])}: {why}"
        yield Check("sources", f"{vendor} cards", "PARTIAL", text, remedy(why))


def _permissions() -> Iterator[Check]:
    """Yield a finding for each device file: whether this user may open it."""
    for node in _NODES:
        if not os.path.exists(node):
            continue
        if os.access(node, os.R_OK | os.W_OK):
            yield Check("sources", node, "PASS", "accessible")
        else:
            reason = f"{node}: permission denied for user {os.getuid()}"
            yield Check("sources", node, "PARTIAL", reason, remedy(reason) or "request access to the device")
