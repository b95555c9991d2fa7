"""The profiles of simulated machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from runvitals.tools.simulate.devices import SimulatedDevice, amd, apple, graphcore, nvidia, tpu, trainium

MAX_DEVICES = 64
# Excess temperature of each position in the chassis.
_WARMER_C = (0.0, 2.5, 1.0, 4.0, 0.5, 3.0, 1.5, 5.0)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of machine.

    Args:
        title: display name.
        count: default number of accelerators per host.
        device: creates one: (index, count) → device; None if it has no accelerators.
        fact: name of their list in the facts about a machine.
        source: the collector that would read them.
        cpus, memory_gib: CPUs and memory of the host.
        processor: CPU model.
        system: operating system.
        disk, nic: names of the disk and the network interface.
        ib_ports: InfiniBand ports, for traffic between hosts.
        step_s: duration of a training step in seconds.
        ranks_per_device: training processes per device; 0: one for the whole host.
    """

    title: str
    count: int
    device: Callable[[int, int], SimulatedDevice] | None
    fact: str
    source: str
    cpus: int
    memory_gib: float
    processor: str
    system: str = "Ubuntu 24.04 LTS"
    disk: str = "nvme0n1"
    nic: str = "eth0"
    ib_ports: int = 0
    step_s: float = 1.2
    ranks_per_device: int = 1


def _warmer(index: int) -> float:
    return _WARMER_C[index % len(_WARMER_C)]


KINDS: dict[str, Kind] = {
    "h100": Kind(
        "NVIDIA H100", 8, lambda i, n: nvidia.SimulatedNvidiaGpu(i, nvidia.H100, _warmer(i)), "gpu_nvidia",
        "nvidia", 224, 2048.0, "Intel Xeon Platinum 8480C", ib_ports=8,
    ),
    "a100": Kind(
        "NVIDIA A100", 8, lambda i, n: nvidia.SimulatedNvidiaGpu(i, nvidia.A100, _warmer(i)), "gpu_nvidia",
        "nvidia", 128, 1024.0, "AMD EPYC 7742", ib_ports=8, step_s=2.4,
    ),
    "mi300x": Kind(
        "AMD MI300X", 8, lambda i, n: amd.SimulatedAmdGpu(i, _warmer(i)), "gpu_amd", "amd",
        192, 2304.0, "AMD EPYC 9474F", ib_ports=8,
    ),
    "trn2": Kind(
        "AWS Trainium2", 16, trainium.SimulatedTrainiumChip, "trainium", "trainium",
        192, 2048.0, "Intel Xeon Platinum 8488C", "Amazon Linux 2023", nic="ens32",
        ranks_per_device=trainium.CORES_PER_CHIP,
    ),
    "v5e": Kind(
        "Google TPU v5e", 8, lambda i, n: tpu.SimulatedTpuChip(i), "tpu", "tpu",
        224, 384.0, "AMD EPYC 7B12", nic="ens8", ranks_per_device=0,
    ),
    "m3": Kind(
        "Apple M3 Max", 1, lambda i, n: apple.SimulatedAppleChip(), "apple", "apple",
        16, 64.0, "Apple M3 Max", "macOS 15.5", "disk0", "en0", step_s=0.4,
    ),
    "ipu": Kind(
        "Graphcore IPU", 4, lambda i, n: graphcore.SimulatedIpu(i, _warmer(i)), "ipu", "ipu",
        96, 512.0, "AMD EPYC 7713", nic="enp1s0", ranks_per_device=0,
    ),
    "cpu": Kind(
        "no accelerator", 0, None, "", "", 16, 64.0, "AMD EPYC 9354", step_s=0.25,
    ),
}  # fmt: skip
_ALIASES = {"mi300": "mi300x"}


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of machine and its number of accelerators.

    Example:
        >>> Profile.parse("h100x8").title
        '8 × NVIDIA H100'
        >>> Profile.parse("v5e").count
        8
    """

    name: str
    kind: Kind
    count: int

    @classmethod
    def parse(cls, text: str) -> Profile:
        """Parse `KIND` or `KINDxCOUNT`.

        Raises:
            ValueError: unknown kind or unsupported count; the message lists what is allowed.
        """
        name, sign, digits = text, "", ""
        if text not in KINDS:
            name, sign, digits = text.rpartition("x")
        name = _ALIASES.get(name or text, name or text)
        kind = KINDS.get(name)
        if kind is None:
            kinds = ", ".join(KINDS)
            raise ValueError(f"unknown profile {text!r}; expected KIND or KINDxCOUNT, KIND one of {kinds}")
        if not sign:
            return cls(text, kind, kind.count)
        most = 1 if name == "m3" else MAX_DEVICES if kind.count else 0
        if not digits.isascii() or not digits.isdigit() or not 1 <= int(digits) <= most:
            allowed = f"1 to {most}" if most else "none"
            raise ValueError(f"invalid profile {text!r}: expected {allowed} devices per host, not {digits}")
        return cls(text, kind, int(digits))

    @property
    def title(self) -> str:
        """The display name."""
        return f"{self.count} × {self.kind.title}" if self.count > 1 else self.kind.title

    @property
    def ranks(self) -> int:
        """Number of training processes per host."""
        return max(1, self.count * self.kind.ranks_per_device)

    def devices(self) -> list[SimulatedDevice]:
        """Return new devices of one host."""
        make = self.kind.device
        return [] if make is None else [make(index, self.count) for index in range(self.count)]
