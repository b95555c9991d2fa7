"""AMD's programs as sources: of the library `amdsmi`, `amd-smi` and `rocm-smi`, the first one that works.

They supply what sysfs lacks. A program of another ROCm version may print "Invalid platform" and exit with 0,
so output without GPUs counts as a failure, and the next program is tried.
"""

from __future__ import annotations

import os
import sys

from runvitals.base.json_codec import loads
from runvitals.monitoring.collectors.amd import amd_smi, rocm_smi
from runvitals.monitoring.collectors.amd.readings import AmdGpuReport
from runvitals.monitoring.collectors.amd.rocm_programs import find_rocm_program
from runvitals.monitoring.collectors.base import Every
from runvitals.monitoring.collectors.plumbing import lenient_json
from runvitals.monitoring.collectors.plumbing.plain_text import first_lines
from runvitals.monitoring.collectors.plumbing.tool import StreamingTool, Tool, ToolFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class AmdProgram(Protocol):
        """One of them. `devices` raises ToolFailed or ValueError if it failed or its output is invalid."""

        name: str

        def devices(self, mono_s: float) -> list[AmdGpuReport] | None:
            """Read all cards; None if there is no new output."""

        def close(self) -> None:
            """Release what is open."""


# Starting amd-smi or rocm-smi takes 0.3 to 2 s of CPU time. With 8 GPUs, they may take several seconds.
PROGRAM_EVERY_S = 10.0
LIBRARY_EVERY_S = 2.0
FILL_EVERY_S = 30.0
TIMEOUT_S = 10.0
STATIC_EVERY_S = 900.0
# Pause after all have failed, or none lists a GPU.
PAUSE_S = 300.0
LIBRARY_FOLDERS = ("/opt/rocm/share/amd_smi", "/opt/rocm/lib/python3/site-packages")


class AmdPrograms:
    """Tries one program after another until one works, and then stays with it.

    Args:
        programs: in order of preference.

    ``name`` is the last program that worked, "" before; ``failure`` says why none works, "" if one does.
    """

    def __init__(self, programs: Sequence[AmdProgram]) -> None:
        self.name = ""
        self.failure = ""
        self._programs = list(programs)
        self._turn = 0
        self._failures: list[str] = []
        self._resume_s = float("-inf")

    def devices(self, mono_s: float) -> list[AmdGpuReport] | None:
        """Return the GPUs of a new response since the last call, else None."""
        if mono_s < self._resume_s:
            return None
        program = self._programs[self._turn]
        try:
            devices = program.devices(mono_s)
        except (ToolFailed, ValueError) as error:
            self._next(mono_s, f"{program.name}: {error}")
            return None
        if devices is None:
            return None
        if not devices:
            self._next(mono_s, f"{program.name} lists no GPU")
            return None
        self.name = program.name
        self.failure = ""
        self._failures = []
        return devices

    def pause(self, mono_s: float) -> None:
        """Do not run programs for a while: their output has nothing that is missing."""
        self._resume_s = mono_s + PAUSE_S
        self.close()

    def close(self) -> None:
        """Release what is open."""
        for program in self._programs:
            program.close()

    def _next(self, mono_s: float, failure: str) -> None:
        self.close()
        self._failures.append(failure)
        self._turn = (self._turn + 1) % len(self._programs)
        if len(self._failures) >= len(self._programs):
            self.failure = "; ".join(self._failures)
            self._failures = []
            self._turn = 0
            self._resume_s = mono_s + PAUSE_S


class AmdSmi:
    """`amd-smi`: readings continuously, names and limits occasionally."""

    name = "amd-smi"

    def __init__(self, path: str, every_s: float) -> None:
        self._metric = Tool([path, *amd_smi.METRIC], every_s, TIMEOUT_S)
        self._static = Tool([path, *amd_smi.STATIC], STATIC_EVERY_S, TIMEOUT_S)
        self._static_reports: dict[int, AmdGpuReport] = {}

    def devices(self, mono_s: float) -> list[AmdGpuReport] | None:
        """Read all cards; None if there is no new output."""
        self._read_static(mono_s)
        output = _output(self._metric, mono_s)
        if output is None:
            return None
        devices = _with_readings(amd_smi.parse_metric(lenient_json.find(output)), output)
        for device in devices:
            static = self._static_reports.get(device.index)
            if static is not None:
                device.pci = device.pci or static.pci
                device.title, device.unique_id = static.title, static.unique_id
                device.hip_index, device.partition = static.hip_index, static.partition
                device.readings = static.readings | device.readings
        return devices

    def close(self) -> None:
        """Release what is open."""
        self._metric.close()
        self._static.close()

    def _read_static(self, mono_s: float) -> None:
        # If it fails, limits and addresses keep their values, or stay unknown.
        try:
            output = _output(self._static, mono_s)
            if output is not None:
                self._static_reports = {
                    each.index: each for each in amd_smi.parse_static(lenient_json.find(output))
                }
        except (ToolFailed, ValueError):
            return


class RocmSmi:
    """`rocm-smi` of ROCm 4 to 7."""

    name = "rocm-smi"

    def __init__(self, path: str, every_s: float) -> None:
        self._tool = Tool([path, *rocm_smi.ARGUMENTS], every_s, TIMEOUT_S)

    def devices(self, mono_s: float) -> list[AmdGpuReport] | None:
        """Read all cards; None if there is no new output."""
        output = _output(self._tool, mono_s)
        return None if output is None else _with_readings(rocm_smi.parse(lenient_json.find(output)), output)

    def close(self) -> None:
        """Release what is open."""
        self._tool.close()


class AmdSmiLibrary:
    """The Python module `amdsmi`, in a child process that prints continuously.

    Args:
        folder: the folder of the module.
    """

    name = "amdsmi"

    def __init__(self, folder: str, every_s: float) -> None:
        script = os.path.join(os.path.dirname(__file__), "amdsmi_child.py")
        self._stream = StreamingTool([sys.executable, "-I", "-S", "-E", script, str(every_s), folder])
        self._silent = Every(TIMEOUT_S + every_s)
        self._heard = True

    def devices(self, mono_s: float) -> list[AmdGpuReport] | None:
        """Read all cards; None if there is no new output."""
        lines = self._stream.lines(mono_s)
        if not lines:
            if self._silent.due(mono_s):
                if not self._heard:
                    raise ToolFailed(f"the library in {self._stream.argv[-1]} did not respond")
                self._heard = False
            return None
        self._heard = True
        report = loads(lines[-1])
        if not isinstance(report, dict) or "gpus" not in report:
            raise ToolFailed(str(report.get("error") if isinstance(report, dict) else report))
        return [_from_library(gpu) for gpu in report["gpus"]]

    def close(self) -> None:
        """Release what is open."""
        self._stream.close()


def programs(every_s: float, library_every_s: float) -> list[AmdProgram]:
    """Return the programs installed on this machine, in order of preference."""
    available: list[AmdProgram] = []
    for folder in (*sys.path, *LIBRARY_FOLDERS):
        if folder and os.path.isfile(f"{folder}/amdsmi/__init__.py"):
            available.append(AmdSmiLibrary(folder, library_every_s))
            break
    available += [AmdSmi(path, every_s) for path in find_rocm_program("amd-smi")]
    available += [RocmSmi(path, every_s) for path in find_rocm_program("rocm-smi")]
    return available


def _output(tool: Tool, mono_s: float) -> bytes | None:
    """Return its output. A program that printed JSON and then crashed counts as successful."""
    try:
        return tool.output(mono_s)
    except ToolFailed as failed:
        if b"}" not in failed.output:
            raise
        return failed.output


def _with_readings(devices: list[AmdGpuReport], output: bytes) -> list[AmdGpuReport]:
    """Return the GPUs of the output.

    Raises ValueError, with the output's first lines, if it has none, or none with a known reading.
    """
    if not any(device.readings for device in devices):
        what = "reports no known reading of its GPUs" if devices else "lists no GPU"
        raise ValueError(f"{what}; it printed {first_lines(output)}")
    return devices


def _from_library(gpu: dict[str, object]) -> AmdGpuReport:
    index, readings = gpu.get("index"), gpu.get("readings")
    device = AmdGpuReport(index if isinstance(index, int) else 0)
    device.pci = str(gpu.get("pci") or "").lower()
    device.unique_id = str(gpu.get("uuid") or "").lower()
    if isinstance(readings, dict):
        device.readings = {
            str(name): float(value) for name, value in readings.items() if isinstance(value, (int, float))
        }
    device.clean()
    return device
