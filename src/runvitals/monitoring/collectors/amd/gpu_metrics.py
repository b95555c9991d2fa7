"""The driver's binary table of readings, `gpu_metrics`: 4 bytes of size and revision, then fields.

The layouts are those of the kernel's ``kgd_pp_interface.h`` (natural alignment). A field with all bits set
has no value. A read makes the firmware fill the whole table, which takes 1 ms on some chips. So it is used
only
for readings without a file: the energy of Instinct cards, the utilization of partitions and of chips whose
own file for it fails, and the clocks of APUs, whose files mark none while idle.
"""

from __future__ import annotations

import struct
from struct import calcsize, unpack_from

from runvitals.monitoring.collectors.base import PseudoFile
from runvitals.monitoring.collectors.plumbing.quantity import SENTINELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# The unit of the energy accumulator since revision 1.4. Earlier revisions do not define it.
JOULES = 2.0**-16
_DIES = 8
_PARTITIONS = 8

# (format, content revision) -> (offset, struct code, factor) of each reading.
_HALF = "<H"
_EARLY = {"gpu": (16, _HALF, 1.0), "memory": (18, _HALF, 1.0)}
_LATE = {"gpu": (12, _HALF, 1.0), "memory": (14, _HALF, 1.0)}
# Current clocks, and their averages. An APU may have either.
_APU = {
    "gpu": (28, _HALF, 1.0),
    "graphicsClock": (76, _HALF, 1.0),
    "memoryClock": (80, _HALF, 1.0),
    "meanGraphicsClock": (64, _HALF, 1.0),
    "meanMemoryClock": (68, _HALF, 1.0),
}
LAYOUTS: Mapping[tuple[int, int], Mapping[str, tuple[int, str, float]]] = {
    (1, 0): {"gpu": (28, _HALF, 1.0), "memory": (30, _HALF, 1.0)},
    (1, 1): _EARLY,
    (1, 2): _EARLY,
    (1, 3): _EARLY,
    (1, 4): {**_LATE, "energyJoules": (24, "<Q", JOULES)},
    (1, 5): {**_LATE, "energyJoules": (88, "<Q", JOULES)},
    (1, 6): {**_LATE, "energyJoules": (16, "<Q", JOULES)},
    (1, 7): {**_LATE, "energyJoules": (24, "<Q", JOULES)},
    (1, 8): {**_LATE, "energyJoules": (24, "<Q", JOULES)},
    (2, 0): {
        "gpu": (40, _HALF, 1.0),
        "graphicsClock": (80, _HALF, 1.0),
        "memoryClock": (84, _HALF, 1.0),
        "meanGraphicsClock": (68, _HALF, 1.0),
        "meanMemoryClock": (72, _HALF, 1.0),
    },
    (2, 1): _APU,
    (2, 2): _APU,
    (2, 3): _APU,
    (2, 4): {**_APU, "gpu": (28, _HALF, 0.01)},
    (3, 0): {
        "gpu": (42, _HALF, 1.0),
        "meanGraphicsClock": (174, _HALF, 1.0),
        "meanMemoryClock": (186, _HALF, 1.0),
    },
}
_MEANS = {"meanGraphicsClock": "graphicsClock", "meanMemoryClock": "memoryClock"}
# Since revision 1.9 a table is a list of fields. Number of a field -> reading, factor.
_FIELDS_OF_LISTS = {4: ("gpu", 1.0), 5: ("memory", 1.0), 7: ("energyJoules", JOULES)}
_TYPES_IN_LISTS = "BbHhIiQq"
# (format, content revision) -> offset of the number of partitions, offset of the first one. Each begins with
# the utilization of its dies.
PARTITIONS = {(1, 6): (306, 312), (1, 7): (338, 344), (1, 8): (338, 344)}
# Bytes behind the last partition.
_AFTER_PARTITIONS = 8


class GpuMetrics:
    """The `gpu_metrics` file of one card.

    ``partitions`` is the utilization of each partition in %, as of the last `read`.
    """

    __slots__ = ("_file", "_path", "partitions")

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: PseudoFile | None = None
        self.partitions: list[float] = []

    def read(self) -> dict[str, float]:
        """Return the readings of the table; {} if it cannot be read or has an unknown revision."""
        self.partitions = []
        try:
            if self._file is None:
                self._file = PseudoFile(self._path)
            table = self._file.read()
        except OSError:  # EOPNOTSUPP, EBUSY during a reset
            self.close()
            return {}
        self.partitions = partitions(table)
        return decode(table)

    def close(self) -> None:
        """Release what is open."""
        if self._file is not None:
            self._file.close()
            self._file = None


def decode(table: bytes) -> dict[str, float]:
    """Decode the readings of a table.

    Example:
        >>> decode(bytes([20, 0, 1, 3]) + bytes(12) + bytes([97, 0, 255, 255]))
        {'gpu': 97.0}
    """
    revision = _revision(table)
    if revision[0] == 1 and revision[1] >= 9:
        return _fields(table)
    readings = {}
    for reading, (offset, code, factor) in LAYOUTS.get(revision, {}).items():
        try:
            (value,) = unpack_from(code, table, offset)
        except struct.error:
            continue  # shorter than its revision defines
        if value not in SENTINELS:
            readings[reading] = value * factor
    for mean, clock in _MEANS.items():
        if mean in readings:
            readings.setdefault(clock, readings[mean])
            del readings[mean]
    return readings


def _fields(table: bytes) -> dict[str, float]:
    """Return the readings in a list of fields.

    Each field has 8 bytes with its number, type and count, and then its values.
    """
    by_name: dict[str, float] = {}
    at = 8
    try:
        (count,) = unpack_from("<i", table, 4)
        for _ in range(count):
            (about,) = unpack_from("<Q", table, at)
            code = f"<{about & 0x3FF}{_TYPES_IN_LISTS[about >> 20 & 0xF]}"
            values = unpack_from(code, table, at + 8)
            at += 8 + calcsize(code)
            reading, factor = _FIELDS_OF_LISTS.get(about >> 10 & 0x3FF, ("", 1.0))
            if reading and values and values[0] not in SENTINELS:
                by_name[reading] = values[0] * factor
    except (struct.error, IndexError):
        return by_name  # truncated, or a type of a later revision: what was read before it is right
    return by_name


def partitions(table: bytes) -> list[float]:
    """Utilization of each partition in %, the mean over its dies."""
    layout = PARTITIONS.get(_revision(table))
    if layout is None:
        return []
    count_at, first = layout
    # Drivers of one revision differ in the fields of a partition.
    size = (unpack_from(_HALF, table)[0] - first - _AFTER_PARTITIONS) // _PARTITIONS
    busy = []
    try:
        (count,) = unpack_from(_HALF, table, count_at)
        for number in range(count if count <= _PARTITIONS else 0):
            dies = [die for die in unpack_from(f"<{_DIES}I", table, first + number * size) if die <= 100]
            if not dies:
                return []
            busy.append(sum(dies) / len(dies))
    except struct.error:
        return []
    return busy


def _revision(table: bytes) -> tuple[int, int]:
    return (table[2], table[3]) if len(table) >= 4 else (0, 0)
