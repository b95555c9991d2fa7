"""NVIDIA GPUs read with `nvidia-smi -q -x`, for machines on which the driver's library cannot be loaded.

This is the case where a wrapper passes the tool into a container, on hosts that keep the library private, and
in some installations of the Windows Subsystem for Linux. The keys are those of the NVML source. Energy,
NVLink traffic and profiling counters are not in the tool's output.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.base import Every
from runvitals.monitoring.collectors.nvidia import smi_xml
from runvitals.monitoring.collectors.nvidia.processes import HIDDEN, RunGpuProcesses
from runvitals.monitoring.collectors.nvidia.smi_gpu import SmiGpu, identity
from runvitals.monitoring.collectors.nvidia.visible_devices import VisibleGpu, visible_to
from runvitals.monitoring.collectors.plumbing.missing_readings import explain
from runvitals.monitoring.collectors.plumbing.tool import Tool, ToolFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope, Tick
    from runvitals.monitoring.collectors.nvidia.smi_xml import SmiGpuLog, SmiLog

# A call takes 20 ms of CPU for one GPU, and a second if the driver has to wake the GPU first.
EVERY_S, TIMEOUT_S = 2.0, 20.0
# If there is no other sign of a GPU and the tool lists none, it is rarely called again.
SELDOM_S = 300.0
# After a pause due to failures, readings older than this are dropped: they do not belong to this tick.
STALE_S = 10.0
MAX_BYTES, MAX_GPUS = 4 << 20, 256


class NvidiaSmi:
    """`gpu.{i}.…`, `gpu.{i}.mig.…` and `gpu.process.{i}.…` of all GPUs that nvidia-smi lists.

    Args:
        path: path of nvidia-smi.
        why: why the library is not used.
        certain: whether there is another sign of a GPU. Without one, a tool that lists no GPU is not a
            failure.

    Raises:
        ToolFailed: by `sample`: the tool failed or its output is invalid. Raised at each call until it works.
    """

    name = "nvidia"

    def __init__(self, scope: Scope, path: str, why: str, certain: bool, proc: str = "/proc") -> None:
        self.facts: dict[str, object] | None = None
        self.absent: dict[str, str] = {"NVML": why}
        self._scope = scope
        self._proc = proc
        self._why = why
        self._certain = certain
        self._tool = Tool([path, "-q", "-x"], EVERY_S, TIMEOUT_S, MAX_BYTES)
        self._members = RunGpuProcesses(scope, proc, scope.path("/proc") if scope.host_root else proc)
        self._failed = ""
        self._seldom = Every(SELDOM_S)
        self._cards: dict[str, SmiGpu] = {}

    @property
    def pending(self) -> bool:
        """Whether the first call is in progress."""
        return not self._cards and self._tool.running

    def sample(self, tick: Tick) -> None:
        """Write the newest readings, if there are any."""
        if not self._certain and self._failed and not (self._tool.running or self._seldom.due(tick.mono_s)):
            return
        try:
            log = self._read_output(tick.mono_s)
        except (ToolFailed, ValueError) as error:
            self._failed = str(error)
            if self._certain:
                raise ToolFailed(self._failed) from None
            self._seldom.due(tick.mono_s)
            self.absent = {"NVML": self._why, "nvidia-smi": self._failed}
            return
        if log is not None:
            self._write(tick, log)
        elif self._failed and self._certain:
            raise ToolFailed(self._failed)  # still failing, with no newer output

    def close(self) -> None:
        """Stop the running call."""
        self._tool.close()

    def _read_output(self, mono_s: float) -> SmiLog | None:
        try:
            output = self._tool.output(mono_s)
            log = None if output is None else smi_xml.read(output)
        except ToolFailed as failed:
            # If a GPU is lost, it reports the others and exits with an error.
            log = _read_or_none(failed.output) if failed.has_ended else None
            if log is None:
                raise
        except ValueError as error:
            raise ValueError(f"{' '.join(self._tool.argv)}: {error}") from None
        if log is None:
            return None
        if not log.gpus:
            raise ToolFailed(f"{self._tool.argv[0]} works, but lists no GPU")
        if len(log.gpus) > MAX_GPUS:
            raise ToolFailed(
                f"{self._tool.argv[0]} lists {len(log.gpus)} GPUs; at most {MAX_GPUS} are supported"
            )
        self._certain = True
        was_failing, self._failed = bool(self._failed), ""
        return None if was_failing and mono_s - self._tool.moment_s > STALE_S else log

    def _write(self, tick: Tick, log: SmiLog) -> None:
        self._members.refresh(tick.mono_s)
        matches = self._match(log, tick)
        for card, gpu in matches:
            card.read(gpu, self._tool.moment_s, self._members)
            card.write(tick)
        self._update_facts(log, [card for card, _ in matches])

    def _match(self, log: SmiLog, tick: Tick) -> list[tuple[SmiGpu, SmiGpuLog]]:
        """Return the GPUs of the output, each with its state. Records events for GPUs that are lost or back.

        A GPU keeps its index when one before it falls off the bus.
        """
        matches: list[tuple[SmiGpu, SmiGpuLog]] = []
        for position, gpu in enumerate(log.gpus):
            who = identity(gpu) or str(position)
            card = self._cards.get(who)
            if card is None and any(other.is_at(who) for other in self._cards.values()):
                continue  # only its address: a known GPU that is lost, not a new one
            if card is None:
                used = {other.index for other in self._cards.values()}
                card = self._cards[who] = SmiGpu(position if position not in used else max(used) + 1, who)
            elif card.is_lost:
                tick.events.append(_event("device_back", "info", card, "is back"))
            card.is_lost = False
            matches.append((card, gpu))
        present = {card.who for card, _ in matches}
        for who, card in self._cards.items():
            if who not in present and not card.is_lost:
                card.is_lost = True
                tick.events.append(
                    _event("device_lost", "error", card, "is no longer reported by nvidia-smi")
                )
        return matches

    def _update_facts(self, log: SmiLog, cards: list[SmiGpu]) -> None:
        """Update `facts` and `absent`."""
        is_hidden = not any(card.in_use for card in cards) and self._members.may_be_hidden()
        absent = {"NVML": self._why, **explain({card.index: card.missing for card in cards})}
        for card in self._cards.values():
            if card.is_lost:
                absent[f"gpu.{card.index}"] = f"lost ({card.who})"
        if is_hidden:
            absent["gpu.process"] = HIDDEN
        if absent != self.absent:
            self.absent = absent
        facts = self._facts(log, is_hidden)
        if facts != self.facts:
            self.facts = facts

    def _facts(self, log: SmiLog, is_hidden: bool) -> dict[str, object]:
        cards = sorted(self._cards.values(), key=lambda card: card.index)
        candidates = [
            VisibleGpu(card.index, card.who, str(card.about.get("name", "")), card.slice_uuids)
            for card in cards
            if not card.is_lost
        ]
        # Most releases do not print the UUIDs of slices, by which CUDA_VISIBLE_DEVICES selects them.
        is_known = all("slices" not in card.about or card.slice_uuids for card in cards)
        visible_indices = visible_to(self._scope.pids, self._proc, candidates) if is_known else None
        gpus: list[dict[str, object]] = []
        for card in cards:
            about = {"index": card.index, **card.about}
            about["visible"] = None if visible_indices is None else card.index in visible_indices
            about["used"] = None if card.is_lost or is_hidden else card.in_use
            if card.is_lost:
                about["lost"] = True
            gpus.append(about)
        names = {"nvidia_driver": "driver_version", "cuda_driver": "cuda_version"}
        driver = {fact: log.fields[field] for fact, field in names.items() if field in log.fields}
        return {**driver, "gpu_nvidia": gpus}


def _read_or_none(output: bytes) -> SmiLog | None:
    try:
        log = smi_xml.read(output)
    except ValueError:  # the output is only the error message, which is reported
        return None
    return log if log.gpus else None


def _event(name: str, level: str, card: SmiGpu, what: str) -> dict[str, object]:
    text = f"GPU {card.index} {what}"
    return {"name": name, "level": level, "text": text, "gpu": card.index, "uuid": card.who}
