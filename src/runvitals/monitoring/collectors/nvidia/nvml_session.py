"""An NVML session, from initialization to shutdown: facts about the driver, and its GPUs."""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.nvidia.device import NvidiaGpu
from runvitals.monitoring.collectors.nvidia.nvml import FUNCTION_NOT_FOUND, NvmlError
from runvitals.monitoring.collectors.nvidia.xid import XidEvents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from runvitals.monitoring.collectors.base import Tick
    from runvitals.monitoring.collectors.nvidia.nvml import Nvml
    from runvitals.monitoring.collectors.nvidia.processes import RunGpuProcesses


class NvmlSession:
    """Initializes NVML and opens its GPUs. The handles are invalid in a forked child.

    Args:
        numbers: UUID -> index of each GPU in earlier sessions; new GPUs are added. When a GPU has fallen off
            the bus, the driver renumbers those behind it, but their keys must not change.

    Raises:
        NvmlError: the driver reports an error.
    """

    __slots__ = ("_events", "_nvml", "_pid", "devices", "driver", "problems")

    def __init__(self, nvml: Nvml, members: RunGpuProcesses, numbers: dict[str, int]) -> None:
        self._nvml = nvml
        self._pid = os.getpid()
        self.devices: list[NvidiaGpu] = []
        # Index in the driver's list -> why the GPU could not be opened.
        self.problems: dict[int, str] = {}
        nvml.first(("nvmlInit_v2", "nvmlInit"))
        for position in range(nvml.uint("nvmlDeviceGetCount_v2")):
            try:
                self.devices.append(NvidiaGpu(nvml, position, members))
            except NvmlError as error:
                self.problems[position] = error.reason
        _number(self.devices, numbers)
        self.driver = _driver(nvml)
        self._events = self._open_events()

    @property
    def is_ours(self) -> bool:
        """Whether this process opened the session, not its parent before a fork."""
        return self._pid == os.getpid()

    def sample(self, tick: Tick) -> list[tuple[NvidiaGpu, str]]:
        """Read all GPUs. Returns those that were lost, with the reason, and removes them from `devices`."""
        lost = []
        for device in self.devices:
            try:
                device.sample(tick)
            except NvmlError as error:
                lost.append((device, error.reason))
        if lost:
            gone = [device for device, _ in lost]
            self.devices = [device for device in self.devices if device not in gone]
        if self._events is not None:
            try:
                tick.events += self._events.take()
            except NvmlError:  # losing a GPU ends the queue; the next session opens a new one
                self._events = None
        return lost

    def close(self) -> None:
        """Release all GPUs: one that hangs can only be reset when no process has it open."""
        if not self.is_ours:
            return
        for device in self.devices:
            device.free()
        if self._events is not None:
            self._events.free()
        self._nvml.code("nvmlShutdown")

    def _open_events(self) -> XidEvents | None:
        try:
            return XidEvents(self._nvml, [(device.index, device.handle) for device in self.devices])
        except NvmlError:  # Windows, or a sandbox: no events
            return None


def _number(devices: list[NvidiaGpu], numbers: dict[str, int]) -> None:
    """Assign known GPUs their earlier index, and new ones their place, or the next index if it is taken."""
    used = set(numbers.values())
    for device in devices:
        index = numbers.get(device.uuid)
        if index is None:
            index = device.position if device.position not in used else max(used) + 1
            numbers[device.uuid] = index
            used.add(index)
        device.number(index)


def _driver(nvml: Nvml) -> Mapping[str, str]:
    facts = {}
    try:
        facts["nvidia_driver"] = nvml.text("nvmlSystemGetDriverVersion")
    except NvmlError as error:
        if error.code != FUNCTION_NOT_FOUND:
            raise
    try:
        cuda = nvml.uint("nvmlSystemGetCudaDriverVersion_v2")
    except NvmlError:  # a driver without CUDA
        return facts
    facts["cuda_driver"] = f"{cuda // 1000}.{cuda % 1000 // 10}"
    return facts
