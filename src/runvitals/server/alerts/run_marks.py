"""Runs that nobody waits for: imported and simulated ones, and notebooks."""

from __future__ import annotations

from typing import Final

from runvitals.server.events.run_events import RunEvent
from runvitals.server.metadata_store import MetadataStore

_ABOUT: Final = "run"
_MACHINE: Final = "machine"


def is_of_interest(store: MetadataStore, event: RunEvent) -> bool:
    """Whether users are notified of an event: not of those of imported runs, and of the end of a simulation
    or a notebook only if it failed.
    """
    sections = store.sections.read([event.run_id], (_ABOUT, _MACHINE))[event.run_id]
    about = sections.shared.get(_ABOUT, {})
    if about.get("imported_from"):
        return False
    machines = sections.by_host.get(_MACHINE, {}).values()
    is_idle = about.get("notebook") or any(machine.get("simulated") for machine in machines)
    return not (is_idle and event.event == "finished")
