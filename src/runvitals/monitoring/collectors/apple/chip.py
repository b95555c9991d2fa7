"""The chip of a Mac, and its GPU's highest power draw."""

from __future__ import annotations

# Apple documents no limit. These are the highest draws, in watts, that monitors of such Macs assume (asitop
# and its successors): of the base chip of each generation, and of the larger ones, which are the same in all
# generations.
_SMALL = {"M1": 20.0, "M2": 15.0, "M3": 15.0, "M4": 15.0}
_LARGER = {"Pro": 30.0, "Max": 60.0, "Ultra": 120.0}
# The limit that W&B assumes for all chips.
UNKNOWN_WATTS = 16.5


class AppleChip:
    """The properties of this Mac's chip, shared by the sources that find them out.

    Args:
        memory_bytes: of the machine; CPU and GPU share it.

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
        # Whether the name is known, or cannot be found out.
        self.is_settled = False
        self._about: dict[str, object] = {}

    def learn(self, name: str, about: dict[str, object]) -> None:
        """Add what a source reports. Earlier values are kept."""
        self.name = self.name or name
        self.is_settled = self.is_settled or bool(name)
        self._about = {**about, **self._about}

    @property
    def title(self) -> str:
        """Its display name."""
        return self.name or "this chip"

    @property
    def gpu_watts(self) -> float | None:
        """The GPU's highest draw; None if unknown for this chip."""
        _, _, model = self.name.rpartition("Apple ")
        generation, _, size = model.partition(" ")
        if not (generation[:1] == "M" and generation[1:].isdigit()):
            return None
        return _LARGER.get(size) if size else _SMALL.get(generation)

    def facts(self) -> dict[str, object]:
        """Return the chip's facts, for those about the machine."""
        watts = self.gpu_watts
        return {
            "name": self.name or "Apple silicon",
            **self._about,
            "memory_bytes": self.memory_bytes,
            "unified": True,
            "gpu_power_limit_watts": UNKNOWN_WATTS if watts is None else watts,
            "gpu_power_limit_known": watts is not None,
        }
