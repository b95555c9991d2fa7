"""Creates a simulated run from settings."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from runvitals.base.signal_flag import SignalFlag
from runvitals.journal import paths
from runvitals.model.state import SILENT_MS
from runvitals.monitoring.settings.settings import SETTINGS
from runvitals.sdk.identity import new_run_id
from runvitals.tools.simulate.node import RunLocation
from runvitals.tools.simulate.profiles import Profile
from runvitals.tools.simulate.simulation import Simulation

TAG = "simulated"
_RECORDED = ("sampling_interval", "process_tree", "disk_paths", "labels")


def begin(
    profile: Profile,
    nodes: int,
    scenario_s: float,
    speed: float | None,
    seed: int,
    values: Mapping[str, Any],
    directory: str,
    now_ms: int | None = None,
) -> Simulation:
    """Create a simulated run.

    Args:
        profile: the machine of every host.
        nodes: number of hosts.
        scenario_s: simulated duration in seconds.
        speed: simulated seconds per recorded second, with the first sample now; None records the simulated
            duration, with the last sample now.
        seed: different seeds give different runs.
        values: resolved settings.
        directory: the data folder.
        now_ms: the current time, ms UTC; default: the system clock.

    Raises:
        ValueError: the run that the settings name already exists.
        OSError: the folder is not writable.
    """
    run_id = values["run_id"] or f"sim-{profile.name}-{new_run_id()}"
    folder = paths.run_dir(run_id, directory)
    if os.path.isdir(folder):
        raise ValueError(f"run {run_id} already exists; a simulation cannot resume a run")
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    start_ms = now_ms if speed is not None else now_ms - round(scenario_s * 1000.0)
    location = RunLocation(run_id, values["project"], folder, values["sampling_interval"], start_ms)
    hosts = f", {nodes} hosts" if nodes > 1 else ""
    machines = f"{nodes} hosts, each {profile.title}" if nodes > 1 else profile.title
    about = {
        "project": values["project"],
        "name": values["name"] or f"simulated {profile.name}{hosts}",
        "tags": [TAG, *(tag for tag in values["tags"] if tag != TAG)],
        "notes": values["notes"] or f"Simulated: {machines}, seed {seed}. Nothing is measured.",
        "job_type": values["job_type"] or "simulation",
        **{key: values[key] for key in ("group",) if values[key]},
    }
    recorded = (*_RECORDED, "entity") if values["entity"] else _RECORDED
    settings = {name: SETTINGS[name].redact(values[name]) for name in recorded}
    return Simulation(profile, nodes, scenario_s, speed or 1.0, seed, location, about, settings)


def at_once(simulation: Simulation, stop: SignalFlag, clock: Callable[[], int]) -> Callable[[int], bool]:
    """Return a function that does not wait. The run counts as running for as long as samples are written.

    The function returns False once `stop` is set.

    Args:
        clock: the time, ms UTC.
    """
    noted_ms = 0

    def wait(tick: int) -> bool:
        nonlocal noted_ms
        now_ms = clock()
        if now_ms - noted_ms > SILENT_MS // 3 or not simulation.shows_life:
            simulation.note_alive(now_ms)
            noted_ms = now_ms
        return not stop.is_set()

    return wait


def pacer(interval_s: float, stop: SignalFlag) -> Callable[[int], bool]:
    """Return a function that waits until a sample is due, counted from the first call.

    The function returns False once `stop` is set.
    """
    began_s = 0.0

    def wait(tick: int) -> bool:
        nonlocal began_s
        now_s = time.monotonic()
        began_s = began_s or now_s
        return not stop.wait(max(0.0, began_s + tick * interval_s - now_s))

    return wait
