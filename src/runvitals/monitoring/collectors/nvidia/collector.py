"""The collector of NVIDIA GPUs: reads NVML in a background thread, and handles GPUs that get lost."""

from __future__ import annotations

from runvitals.base.backoff import Backoff
from runvitals.monitoring.collectors.base import Absent, Every
from runvitals.monitoring.collectors.nvidia import nvml
from runvitals.monitoring.collectors.nvidia.locations import NVIDIA_SMI
from runvitals.monitoring.collectors.nvidia.nvml import Nvml
from runvitals.monitoring.collectors.nvidia.nvml_session import NvmlSession
from runvitals.monitoring.collectors.nvidia.processes import HIDDEN, RunGpuProcesses
from runvitals.monitoring.collectors.nvidia.visible_devices import VisibleGpu, named_slices, visible_to
from runvitals.monitoring.collectors.nvidia.xid import CriticalErrors
from runvitals.monitoring.collectors.plumbing.background import BackgroundReader
from runvitals.monitoring.collectors.plumbing.executables import find
from runvitals.monitoring.collectors.plumbing.missing_readings import explain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runvitals.monitoring.collectors.base import Scope, Tick
    from runvitals.monitoring.collectors.nvidia.smi import NvidiaSmi

# How long a tick waits for the driver: 8 GPUs take 2 to 5 ms. Later results go into the next tick.
PATIENCE_S = 0.05
# The first pause before searching for a lost GPU, and the longest pause between searches.
FIRST_LOOK_S = 5.0
MAX_LOOK_S = 300.0
# How often the facts are checked for changes.
FACTS_EVERY_S = 5.0


class NoGpu(Exception):
    """The driver works, but lists no GPU."""


def open_library(scope: Scope) -> Nvidia | NvidiaSmi:
    """Return the collector based on the driver's library, else on nvidia-smi.

    Raises:
        Absent: neither is available.
    """
    try:
        loaded = nvml.load()
    except OSError as error:
        reason = (
            f"the library of the NVIDIA driver could not be loaded: {error}; containers need "
            "NVIDIA_DRIVER_CAPABILITIES with utility in it"
        )
    else:
        return Nvidia(scope, loaded)
    tool = find("nvidia-smi", *NVIDIA_SMI)
    if tool is None:
        raise Absent(reason)
    from runvitals.monitoring.collectors.nvidia.smi import NvidiaSmi

    return NvidiaSmi(scope, tool, reason, certain=True)


class Nvidia:
    """`gpu.{i}.…`, `gpu.{i}.mig.…` and `gpu.process.{i}.…` of all GPUs that the driver lists.

    Args:
        library: the loaded library with NVML's functions.
        patience_s: how long a tick waits for the driver.

    Raises:
        NvmlError, NoGpu, Hung: by `sample`.
    """

    name = "nvidia"

    def __init__(
        self, scope: Scope, library: Any, patience_s: float = PATIENCE_S, proc: str = "/proc"
    ) -> None:
        self.facts: dict[str, object] | None = None
        self.absent: dict[str, str] = {}
        self._scope = scope
        self._nvml = Nvml(library)
        self._members = RunGpuProcesses(scope, proc, scope.path("/proc") if scope.host_root else proc)
        self._proc = proc
        self._session: NvmlSession | None = None
        self._numbers: dict[str, int] = {}
        self._about: dict[str, dict[str, object]] = {}
        self._errors = CriticalErrors()
        self._look = Backoff(FIRST_LOOK_S, MAX_LOOK_S)
        self._refresh = Every(FACTS_EVERY_S)
        self._reads = 0
        self._reader = BackgroundReader(self._read, patience_s=patience_s)

    @property
    def pending(self) -> bool:
        """Whether a read is in progress."""
        return self._reader.pending

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        self._reader.sample(tick)

    def close(self) -> None:
        """Stop the thread. The driver releases this process's resources when it exits."""
        self._reader.close()

    # -- in the thread

    def _read(self, tick: Tick) -> None:
        session = self._open(tick)
        self._members.refresh(tick.mono_s)
        event_count = len(tick.events)
        lost = session.sample(tick)
        for device, reason in lost:
            tick.events.append(
                _event("device_lost", "error", device.index, f"is lost: {reason}", device.uuid)
            )
        self._errors.note(tick, event_count)
        if lost:
            self._look.note_success()
            self._look.note_failure(tick.mono_s)
        # At the second reading everything has had a value that will have one.
        self._reads += 1
        if lost or self._reads == 2 or self._refresh.due(tick.mono_s):
            self._update_facts(session)

    def _open(self, tick: Tick) -> NvmlSession:
        """Return the session; a new one if there is none or a GPU is missing."""
        session = self._session
        if session is not None and not session.is_ours:
            session = self._session = None  # a forked child must not touch its parent's
        if session is not None:
            if not self._missing_uuids(session) and not session.problems:
                return session
            if not self._look.due(tick.mono_s):
                return session
        before = self._missing_uuids(session) if session is not None else set(self._numbers)
        if session is not None:
            self._session = None
            session.close()
        session = NvmlSession(self._nvml, self._members, self._numbers)
        if not session.devices and not session.problems:
            session.close()
            raise NoGpu("the driver responds, but lists no GPU")
        self._session = session
        if self._missing_uuids(session) or session.problems:
            self._look.note_failure(tick.mono_s)
        else:
            self._look.note_success()
        for device in session.devices:
            self._about[device.uuid] = device.facts()
            if device.uuid in before:
                tick.events.append(_event("device_back", "info", device.index, "is back", device.uuid))
        self._refresh = Every(FACTS_EVERY_S)
        return session

    def _missing_uuids(self, session: NvmlSession) -> set[str]:
        return set(self._numbers) - {device.uuid for device in session.devices}

    def _update_facts(self, session: NvmlSession) -> None:
        """Update `facts` and `absent` if they have changed."""
        is_hidden = not any(device.in_use for device in session.devices) and self._members.may_be_hidden()
        absent = explain({device.index: device.missing() for device in session.devices})
        for position, reason in session.problems.items():
            absent[f"GPU {position} of the driver's list"] = reason
        for uuid in sorted(self._missing_uuids(session)):
            absent[f"gpu.{self._numbers[uuid]}"] = f"lost ({uuid})"
        if is_hidden:
            absent["gpu.process"] = HIDDEN
        if absent != self.absent:
            self.absent = absent
        facts = self._facts(session, is_hidden)
        if facts != self.facts:
            self.facts = facts

    def _facts(self, session: NvmlSession, is_hidden: bool) -> dict[str, object]:
        candidates = [
            VisibleGpu(device.index, device.uuid, device.name, [slice.uuid for slice in device.slices])
            for device in session.devices
        ]
        visible_indices = visible_to(self._scope.pids, self._proc, candidates)
        has_slices = any(device.slices for device in session.devices)
        slice_uuids = named_slices(self._scope.pids, self._proc, candidates) if has_slices else set()
        gpus: list[dict[str, object]] = []
        by_uuid = {device.uuid: device for device in session.devices}
        for uuid, index in sorted(self._numbers.items(), key=lambda pair: pair[1]):
            device = by_uuid.get(uuid)
            about = {
                **self._about[uuid],
                "visible": None if visible_indices is None else index in visible_indices,
            }
            about["used"] = None if device is None or is_hidden else device.in_use
            if device is None:
                about["lost"] = True
            else:
                about.update(device.state())
            slices = about.get("slices")
            if slice_uuids and isinstance(slices, list):
                about["slices"] = [
                    {**mig_slice, "visible": mig_slice["uuid"] in slice_uuids} for mig_slice in slices
                ]
            gpus.append(about)
        return {**session.driver, "gpu_nvidia": gpus}


def _event(name: str, level: str, index: int, what: str, uuid: str) -> dict[str, object]:
    return {"name": name, "level": level, "text": f"GPU {index} {what}", "gpu": index, "uuid": uuid}
