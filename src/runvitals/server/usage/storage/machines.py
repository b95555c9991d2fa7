"""CPUs and slices of GPUs in the facts about the machines of runs."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import select

from runvitals.server.database.database import StoredTable, among
from runvitals.server.database.tables.runs import section

_PROFILE: Final = re.compile(r"(?:([0-9])c\.)?([0-9])g\.")
_COMPUTE_SLICES: Final = 7
_FOUR_SLICES: Final = ("A30", "RTX PRO 6000")
"""Models whose MIG has 4 compute slices instead of 7."""


@dataclass(frozen=True, slots=True)
class DeviceSlices:
    """The MIG slices of a device that a run uses.

    Args:
        uuids: of the slices.
        part: their share of the device's compute slices.
    """

    uuids: frozenset[str]
    part: float


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """A machine as a run sees it.

    Args:
        cpus: how many the run may use; None: unknown.
        slices: of the devices of which it uses slices only, by the UUID of the device.
    """

    cpus: float | None = None
    slices: Mapping[str, DeviceSlices] = field(default_factory=dict)


UNKNOWN_MACHINE: Final = MachineFacts()


class UsageMachineTable(StoredTable):
    """The machines of runs."""

    def of_runs(self, run_ids: Collection[int]) -> dict[tuple[int, str], MachineFacts]:
        """The machines by run and host."""
        with self._database.read() as connection:
            rows = connection.execute(
                select(section.c.run_id, section.c.host, section.c.body).where(
                    among(connection, section.c.run_id, run_ids), section.c.name == "machine"
                )
            )
            return {(run_id, host): machine_facts(json.loads(body)) for run_id, host, body in rows}


def machine_facts(machine: Mapping[str, Any]) -> MachineFacts:
    """Extract the CPUs and the slices of GPUs from the facts about a machine.

    Example:
        >>> machine_facts({"cpu": {"available": 8.0}}).cpus
        8.0
    """
    cpu = machine.get("cpu")
    available = cpu.get("available") if isinstance(cpu, dict) else None
    cpus = float(available) if isinstance(available, (int, float)) and available > 0 else None
    gpus = machine.get("gpu_nvidia")
    slices = {
        str(about.get("uuid")): partitions
        for about in (gpus if isinstance(gpus, list) else ())
        if isinstance(about, dict) and (partitions := _slices(about)) is not None
    }
    return MachineFacts(cpus, slices)


def _slices(about: Mapping[str, Any]) -> DeviceSlices | None:
    listed = about.get("slices")
    visible = [
        item
        for item in (listed if isinstance(listed, list) else ())
        if isinstance(item, dict) and item.get("visible")
    ]
    profiles = [_PROFILE.match(str(item.get("name"))) for item in visible]
    if not visible or None in profiles:
        return None
    count = sum(int(profile[1] or profile[2]) for profile in profiles if profile is not None)
    model = str(about.get("name"))
    all_slices = 4 if any(name in model for name in _FOUR_SLICES) else _COMPUTE_SLICES
    return DeviceSlices(frozenset(str(item.get("uuid")) for item in visible), min(1.0, count / all_slices))
