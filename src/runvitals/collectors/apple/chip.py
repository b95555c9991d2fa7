"""Which chip a Mac has, and what its GPU may draw."""

from __future__ import annotations

# Apple tells no limit. These are the highest draws that monitors of such Macs (asitop and its successors)
# reckon with, in watts: of the smallest chip of a generation, and of its larger ones, which are alike in all
# generations.
_SMALL = {"M1": 20.0, "M2": 15.0, "M3": 15.0, "M4": 15.0}
_LARGER = {"Pro": 30.0, "Max": 60.0, "Ultra": 120.0}
# What W&B takes for all chips.
UNKNOWN_WATTS = 16.5


class AppleChip:
    """What is known of this Mac's chip; its parts tell each other through it.

    Args:
        memory_bytes: of the whole machine, which processor and GPU share.

    Example:
        >>> chip = AppleChip(16 << 30)
        >>> chip.learn("Apple M3 Max", {"gpu_cores": 40})
        >>> chip.gpu_watts, chip.facts()["name"]
        (60.0, 'Apple M3 Max')
    """

    __slots__ = ("_about", "is_settled", "memory_bytes", "name")

    def __init__(self, memory_bytes: float) -> None:
        self.memory_bytes = memory_bytes
        self.name = ""
        # Whether its name is known, or those who could know have been asked.
        self.is_settled = False
        self._about: dict[str, object] = {}

    def learn(self, name: str, about: dict[str, object]) -> None:
        """Take in what a source knows; what an earlier one said stays."""
        self.name = self.name or name
        self.is_settled = self.is_settled or bool(name)
        self._about = {**about, **self._about}

    @property
    def title(self) -> str:
        """Its name for people."""
        return self.name or "this chip"

    @property
    def gpu_watts(self) -> float | None:
        """The GPU's highest draw; None where it is not known for this chip."""
        _, _, model = self.name.rpartition("Apple ")
        generation, _, size = model.partition(" ")
        if not (generation[:1] == "M" and generation[1:].isdigit()):
            return None
        return _LARGER.get(size) if size else _SMALL.get(generation)

    def facts(self) -> dict[str, object]:
        """What belongs to the facts about the machine."""
        known = self.gpu_watts
        return {
            "name": self.name or "Apple silicon",
            **self._about,
            "memory_bytes": self.memory_bytes,
            "unified_memory": True,
            "gpu_power_limit_watts": UNKNOWN_WATTS if known is None else known,
            "gpu_power_limit_known": known is not None,
        }
