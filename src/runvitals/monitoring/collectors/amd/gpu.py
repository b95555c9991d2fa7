"""One AMD GPU: its card in sysfs, its KFD node, and what programs report about it."""

from __future__ import annotations

from runvitals.monitoring.collectors.amd.sysfs import pci_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runvitals.monitoring.collectors.amd.kfd import KfdNode
    from runvitals.monitoring.collectors.amd.sysfs import AmdCard


class AmdGpu:
    """A GPU, or a partition of one.

    Args:
        card: its files in sysfs, None if only a program reports it.
        node: its KFD node, None if there is none.

    ``lasting`` are values from a program, kept until it reports them again. ``seen_s`` is the time at which
    each reading was last written.
    """

    __slots__ = ("card", "lasting", "node", "partition", "pci", "seen_s", "source", "title", "unique_id")

    def __init__(self, card: AmdCard | None, node: KfdNode | None) -> None:
        self.card = card
        self.node = node
        self.partition = 0
        self.pci = (card.pci if card is not None else "") or (node.pci if node is not None else "")
        self.unique_id = (card.unique_id if card is not None else "") or (node.unique_id if node else "")
        self.title = (card.title if card is not None else "") or (node.title if node is not None else "")
        self.source = "sysfs" if card is not None else ""
        self.lasting: dict[str, float] = {}
        self.seen_s: dict[str, float] = {}

    @property
    def identity(self) -> str:
        """Its PCI address, with the partition's number for all but the first."""
        return f"{self.pci}#{self.partition}" if self.partition else self.pci

    def add_source(self, program: str) -> None:
        """Note that a program reports readings of this GPU."""
        if program not in self.source:
            self.source = f"{self.source}, {program}".strip(", ")

    def has_all(self, names: Iterable[str]) -> bool:
        """Return whether all these readings were seen."""
        return all(name in self.seen_s for name in names)

    def missing(self, mono_s: float, names: Iterable[str], patience_s: float) -> list[str]:
        """Return the readings of `names` that have not been written for `patience_s`."""
        never = float("-inf")
        return [name for name in names if mono_s - self.seen_s.get(name, never) > patience_s]

    def shares_board(self, other: AmdGpu) -> bool:
        """Return whether two GPUs are dies of one package, judged by their unique ids."""
        return bool(self.unique_id) and self.unique_id == other.unique_id

    def fact(self) -> dict[str, object]:
        """Identity and properties, for the facts about the machine."""
        card = self.card
        memory = (card.memory_bytes if card is not None else None) or self.lasting.get("memoryTotalBytes")
        memory = memory or (self.node.memory_bytes if self.node is not None else None)
        fact: dict[str, object] = {
            "name": self.title,
            "uuid": self.unique_id,
            "pci": self.pci,
            "memory_bytes": int(memory) if memory else None,
            "source": self.source,
        }
        if card is not None:
            fact |= {"card": card.name, "apu": card.is_apu, "lost": card.lost}
            if card.is_apu:
                fact["unified"] = True
            if card.partition_mode:
                fact |= {"compute_partition": card.partition_mode, "memory_partition": card.memory_mode}
        if self.partition:
            fact["partition"] = self.partition
        return fact


def arrange(cards: Sequence[AmdCard], nodes: Sequence[KfdNode]) -> list[AmdGpu]:
    """GPUs in the order of PCI addresses, each followed by its partitions.

    A partition's card is not a PCI device. Its KFD node is found by the render node, and its GPU by the
    unique id, or by the PCI address without the function.
    """
    gpus = [AmdGpu(card, _node_of(card, nodes)) for card in cards if card.pci]
    parts = [AmdGpu(card, _node_of(card, nodes)) for card in cards if not card.pci]
    gpus.sort(key=lambda gpu: pci_order(gpu.pci))
    arranged: list[AmdGpu] = []
    for gpu in gpus:
        arranged.append(gpu)
        for part in [part for part in parts if _belongs(part, gpu)]:
            parts.remove(part)
            part.pci, part.partition = gpu.pci, arranged[-1].partition + 1
            arranged.append(part)
    return arranged + parts


def _node_of(card: AmdCard, nodes: Sequence[KfdNode]) -> KfdNode | None:
    for node in nodes:
        if card.render_minor is not None and node.render_minor == card.render_minor:
            return node
    return next((node for node in nodes if card.pci and node.pci == card.pci), None)


def _belongs(part: AmdGpu, gpu: AmdGpu) -> bool:
    if part.unique_id and gpu.unique_id:
        return part.unique_id.zfill(16) == gpu.unique_id.zfill(16)
    return bool(part.pci) and part.pci[:-1] == gpu.pci[:-1]
