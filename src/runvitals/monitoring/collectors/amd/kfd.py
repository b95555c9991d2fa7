"""AMD's compute driver KFD (/sys/class/kfd).

It knows the nodes in the order of HIP's indices, partitions, and the memory of processes.
"""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Heap types of device memory: visible to the host, and private.
_LOCAL_HEAPS = ("1", "2")


class KfdNode:
    """A KFD node: a GPU, or a partition of one.

    Args:
        number: its index in the topology, whose order HIP's indices follow.
        gpu_id: the id in the names of its per-process files.
    """

    __slots__ = ("gpu_id", "memory_bytes", "number", "pci", "render_minor", "title", "unique_id")

    def __init__(self, number: int, gpu_id: str, properties: Mapping[str, str]) -> None:
        self.number = number
        self.gpu_id = gpu_id
        self.title = ""
        self.memory_bytes = 0
        self.render_minor = _integer(properties.get("drm_render_minor")) or None
        unique = _integer(properties.get("unique_id"))
        self.unique_id = f"{unique:016x}" if unique else ""
        location, domain = _integer(properties.get("location_id")), _integer(properties.get("domain"))
        bus, device, function = location >> 8 & 0xFF, location >> 3 & 0x1F, location & 7
        self.pci = f"{domain:04x}:{bus:02x}:{device:02x}.{function}" if location else ""


def find_nodes(root: str) -> list[KfdNode]:
    """Return the GPUs among the nodes, in order; empty without KFD."""
    folder = root + "/sys/class/kfd/kfd/topology/nodes"
    try:
        numbers = sorted(int(name) for name in os.listdir(folder) if name.isdigit())
    except OSError:
        return []
    nodes = []
    for number in numbers:
        # Nodes that a container may not use cannot be read. CPUs are nodes without a gpu_id.
        gpu_id = (read_text(f"{folder}/{number}/gpu_id") or "0").strip()
        if gpu_id == "0":
            continue
        node = KfdNode(number, gpu_id, _properties(f"{folder}/{number}/properties"))
        node.title = (read_text(f"{folder}/{number}/name") or "").strip()
        node.memory_bytes = _memory(f"{folder}/{number}/mem_banks")
        nodes.append(node)
    return nodes


def visible(nodes: Sequence[KfdNode], environ: Mapping[str, str]) -> list[KfdNode]:
    """Return the GPUs that HIP shows to a process with these environment variables; the first is its GPU 0.

    ROCR_VISIBLE_DEVICES (indices, or ``GPU-<unique id>``) is applied first, then HIP_VISIBLE_DEVICES, or else
    CUDA_VISIBLE_DEVICES, to the remaining GPUs. Entries after the first invalid one are ignored.

    Example:
        >>> environ = {"ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "1"}
        >>> [node.number for node in visible(nodes, environ)]
        [5]
    """
    chosen = list(nodes)
    rocr = environ.get("ROCR_VISIBLE_DEVICES")
    if rocr is not None:
        chosen = _choose_nodes(chosen, rocr)
    hip = environ.get("HIP_VISIBLE_DEVICES") or environ.get("CUDA_VISIBLE_DEVICES")
    return _choose_nodes(chosen, hip) if hip else chosen


def process_memory(root: str, pid: int, node: KfdNode) -> float | None:
    """Bytes of GPU memory that a process uses through ROCm; None if it uses none."""
    text = read_text(f"{root}/sys/class/kfd/kfd/proc/{pid}/vram_{node.gpu_id}")
    return float(text) if text is not None and text.strip().isdigit() else None


def all_memory(root: str, node: KfdNode) -> float | None:
    """Bytes of GPU memory that all processes use through ROCm; None if unknown."""
    try:
        pids = os.listdir(f"{root}/sys/class/kfd/kfd/proc")
    except OSError:
        return None
    return sum(process_memory(root, int(pid), node) or 0.0 for pid in pids if pid.isdigit())


def _choose_nodes(nodes: list[KfdNode], text: str) -> list[KfdNode]:
    chosen: list[KfdNode] = []
    for entry in text.split(","):
        entry = entry.strip()
        if entry.isdigit() and int(entry) < len(nodes):
            node = nodes[int(entry)]
        elif entry.upper().startswith("GPU-"):
            matches = [
                node for node in nodes if node.unique_id and node.unique_id == entry[4:].lower().zfill(16)
            ]
            if not matches:
                break
            node = matches[0]
        else:
            break
        if node not in chosen:
            chosen.append(node)
    return chosen


def _properties(path: str) -> dict[str, str]:
    lines = (read_text(path) or "").split("\n")
    return {name: value for name, _, value in (line.partition(" ") for line in lines) if value}


def _memory(banks: str) -> int:
    try:
        names = os.listdir(banks)
    except OSError:
        return 0
    banks_properties = [_properties(f"{banks}/{name}/properties") for name in names]
    return sum(
        _integer(bank.get("size_in_bytes"))
        for bank in banks_properties
        if bank.get("heap_type") in _LOCAL_HEAPS
    )


def _integer(text: str | None) -> int:
    return int(text) if text is not None and text.strip().isdigit() else 0
