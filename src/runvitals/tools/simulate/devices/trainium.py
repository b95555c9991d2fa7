"""Simulated AWS Trainium chips."""

from __future__ import annotations

from runvitals.tools.simulate.load import DeviceLoad, percent, rounded
from runvitals.tools.simulate.noise import Floats, NoiseBlock

NAME = "Trainium2"
CORES_PER_CHIP = 4  # logical cores of two physical cores each
_CORE_BYTES = 24 * 2.0**30
_CORE_USES = (
    ("tensors", 0.80), ("constants", 0.02), ("model_code", 0.05), ("model_shared_scratchpad", 0.11),
    ("runtime_memory", 0.02),
)  # fmt: skip
_HOST_USES = (("application_memory", 0.55), ("constants", 0.03), ("dma_buffers", 0.24), ("tensors", 0.18))
_HOST_BYTES_PER_CORE = 0.9 * 2.0**30


class SimulatedTrainiumChip:
    """The NeuronCores of one chip. The first chip also reports the totals of the instance.

    Args:
        chip: its number.
        chips: number of chips of the instance.
    """

    def __init__(self, chip: int, chips: int) -> None:
        self._cores = range(chip * CORES_PER_CHIP, (chip + 1) * CORES_PER_CHIP)
        keys = [f"trn.{core}.neuroncore_utilization" for core in self._cores]
        keys += [f"trn.{core}.neuroncore_memory_usage.{use}" for core in self._cores for use, _ in _CORE_USES]
        self._all_cores = chips * CORES_PER_CHIP if chip == 0 else 0
        if self._all_cores:
            keys += ["trn.neuron_device_total_memory_usage", "trn.host_total_memory_usage"]
            keys += [f"trn.host_total_memory_usage.{use}" for use, _ in _HOST_USES]
        self.keys = tuple(keys)
        self.about: dict[str, object] = {
            "index": chip,
            "name": NAME,
            "cores": CORES_PER_CHIP,
            "memory_bytes": int(_CORE_BYTES * CORES_PER_CHIP),
        }

    def read(self, load: DeviceLoad, z: NoiseBlock) -> list[Floats | float]:
        """Return the values of `keys` over the next block of samples."""
        used = load.filled * _CORE_BYTES
        busy = load.busy * (0.35 + 0.6 * load.work * load.clock)
        uses: list[Floats | float] = [rounded(used * part) for _, part in _CORE_USES]
        values: list[Floats | float] = [percent(busy + 0.02 * z[i]) for i in range(CORES_PER_CHIP)]
        for _ in self._cores:
            values += uses
        if self._all_cores:
            host = load.filled * _HOST_BYTES_PER_CORE * self._all_cores
            values += [rounded(used * self._all_cores), rounded(host)]
            values += [rounded(host * part) for _, part in _HOST_USES]
        return values
