"""The use of each GPU by the run's processes.

It is read from fdinfo of their open files and from ROCm's per-process files.

A user's own processes can be read without root. /sys/class/kfd has all the memory of ROCm's processes, but
under the host's process ids; in a container with its own PID namespace, only fdinfo can be used. Engine time
covers graphics and kernels submitted through the driver, not ROCm's user-mode queues: if none was counted,
the value is left out.
"""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.amd.kfd import process_memory
from runvitals.monitoring.collectors.base import read_text
from runvitals.monitoring.collectors.plumbing.run_processes import total_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runvitals.monitoring.collectors.amd.kfd import KfdNode

_ENGINES = ("drm-engine-gfx", "drm-engine-compute")
_UNITS = {"": 1.0, "KiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3}


class DrmClient:
    """A client of the driver: one open file, or several copies of it. Old drivers do not report memory."""

    __slots__ = ("busy_ns", "vram_bytes")

    def __init__(self, busy_ns: int, vram_bytes: float | None) -> None:
        self.busy_ns = busy_ns
        self.vram_bytes = vram_bytes


class ProcessUse:
    """Use of each GPU by some processes.

    Args:
        root: the host's root, for /sys.
        proc: path of procfs in our PID namespace.
    """

    def __init__(self, root: str, proc: str = "/proc") -> None:
        self._root = root
        self._proc = proc
        self._before: dict[tuple[str, str], int] = {}
        self._before_s = 0.0

    def read(
        self, pids: Iterable[int], nodes: Mapping[str, KfdNode], mono_s: float
    ) -> dict[str, dict[str, float]]:
        """Read what the run's processes use of each GPU, by PCI address.

        Only GPUs that one of the processes uses. ``memoryAllocatedBytes`` if it is known of all of them;
        ``gpu`` in % from the second call on, if it is counted.

        Args:
            pids: the run's processes.
            nodes: PCI address → its node in ROCm's topology.
            mono_s: the time of the tick.
        """
        clients: dict[tuple[str, str], DrmClient] = {}
        rocm: dict[str, float] = {}
        for pid in pids:
            clients.update(self._clients(pid))
            for pci, node in nodes.items():
                used = process_memory(self._root, pid, node)
                if used is not None:
                    rocm[pci] = rocm.get(pci, 0.0) + used
        elapsed_ns = (mono_s - self._before_s) * 1e9
        uses: dict[str, dict[str, float]] = {}
        memory: dict[str, float | None] = {}
        for (pci, number), client in clients.items():
            use = uses.setdefault(pci, {})
            memory[pci] = total_of((memory.get(pci, 0.0), client.vram_bytes))
            before = self._before.get((pci, number))
            if client.busy_ns and before is not None and client.busy_ns >= before and elapsed_ns > 0:
                share = (client.busy_ns - before) * 100.0 / elapsed_ns
                use["gpu"] = min(use.get("gpu", 0.0) + share, 100.0)
        for pci, total in memory.items():
            if total is not None:
                uses[pci]["memoryAllocatedBytes"] = total
        for pci, used in rocm.items():
            uses.setdefault(pci, {})["memoryAllocatedBytes"] = used
        self._before = {key: client.busy_ns for key, client in clients.items()}
        self._before_s = mono_s
        return uses

    def _clients(self, pid: int) -> dict[tuple[str, str], DrmClient]:
        """(PCI address, client id) → its use. Copies of an open file (forked workers) are one client."""
        try:
            descriptors = os.listdir(f"{self._proc}/{pid}/fd")
        except OSError:  # it has ended, or belongs to another user
            return {}
        clients = {}
        for descriptor in descriptors:
            try:
                target = os.readlink(f"{self._proc}/{pid}/fd/{descriptor}")
            except OSError:
                continue
            if target.startswith("/dev/dri/"):
                text = read_text(f"{self._proc}/{pid}/fdinfo/{descriptor}")
                entry = parse_fdinfo(text) if text is not None else None
                if entry is not None:
                    pci, number, client = entry
                    clients[(pci, number)] = client
        return clients


def parse_fdinfo(text: str) -> tuple[str, str, DrmClient] | None:
    r"""(PCI address, client id, use) of an open file of an amdgpu card; None for other files.

    Example:
        >>> pci, number, client = parse_fdinfo(
        ...     "drm-driver:\tamdgpu\ndrm-client-id:\t9\ndrm-pdev:\t0000:03:00.0\n"
        ...     "drm-memory-vram:\t2 KiB\ndrm-engine-gfx:\t500 ns\n")
        >>> pci, number, client.vram_bytes, client.busy_ns
        ('0000:03:00.0', '9', 2048.0, 500)
    """
    fields = {}
    for line in text.split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            fields[name.strip()] = value.strip()
    if fields.get("drm-driver") != "amdgpu" or "drm-pdev" not in fields:
        return None
    # drm-memory-vram is the older name of drm-resident-vram; drm-total-vram includes swapped-out memory.
    memory = fields.get("drm-memory-vram") or fields.get("drm-resident-vram")
    busy = sum(_first_integer(fields.get(engine, "0")) for engine in _ENGINES)
    return (
        fields["drm-pdev"].lower(),
        fields.get("drm-client-id", ""),
        DrmClient(busy, None if memory is None else _bytes(memory)),
    )


def _first_integer(text: str) -> int:
    word = text.split(None, 1)[0] if text else ""
    return int(word) if word.isdigit() else 0


def _bytes(text: str) -> float:
    word, _, unit = text.partition(" ")
    return int(word) * _UNITS.get(unit.strip(), 0.0) if word.isdigit() else 0.0
