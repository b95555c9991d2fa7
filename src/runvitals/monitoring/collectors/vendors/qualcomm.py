"""Qualcomm Cloud AI 100: the sections of `qaic-util -q`, one for each chip; a card may have four.

The tool reports how many of a chip's cores are allocated, which is not a load: a program may hold them idle.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing.quantity import amount, whole
from runvitals.monitoring.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import LIMIT, POWER, TOTAL, USED
from runvitals.monitoring.collectors.vendors.formats import healthy, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.vendors.formats import Row

# Units after names, "Board power(Watts)", and as they would follow a number.
_UNITS = {"degree c": "C", "celsius": "C", "watts": "W", "watt": "W", "milliwatts": "mW"}
# The first name of the section on reservations, which are parts of the chips before.
_FIRST_RESERVATION, _GREATEST = 100, 9999


def rows(output: bytes) -> list[Row]:
    """Return a row for each chip.

    Names are in lower case; the unit in brackets is moved behind the number.
    """
    numbered_rows: list[tuple[int, Row]] = []
    for line in text_of(output).splitlines():
        words = line.split()
        number = whole(words[1].rstrip(":"), _GREATEST) if len(words) == 2 and words[0] == "QID" else None
        if number is not None:
            numbered_rows.append((number, {"index": number}))
            continue
        head, colon, value = line.strip().partition(":")
        if numbered_rows and colon:
            name, _, unit = head.partition("(")
            unit = unit.rstrip(") ").lower()
            numbered_rows[-1][1].setdefault(
                name.strip().lower(), f"{value.strip()} {_UNITS.get(unit, unit)}".strip()
            )
    chips = [row for number, row in numbered_rows if number < _FIRST_RESERVATION]
    for row in chips:
        _complete(row)
    return chips


def _complete(row: Row) -> None:
    """Add used memory, and the chip's power and limit, or the board's if the release lacks these.

    0 W means unknown.
    """
    total, free = amount(row.get("dram total"), "bytes"), amount(row.get("dram free"), "bytes")
    if total is not None and free is not None:
        row["dram used"] = max(total - free, 0.0)
    for name in ("soc power", "board power"):
        if amount(row.get(name), "W") == 0.0:
            del row[name]
    part = "soc" if "soc power" in row else "board"
    row["power"] = row.get(f"{part} power")
    row["limit"] = row.get(f"{part} tdp cap", row.get("tdp cap") if part == "board" else None)
    row["healthy"] = healthy(row.get("status", ""))


QUALCOMM = Vendor(
    name="qualcomm",
    title="Qualcomm Cloud AI",
    programs=("qaic-util",),
    folders=("/opt/qti-aic/tools",),
    commands=(("-q",),),
    every_s=5.0,
    timeout_s=20.0,
    rows=rows,
    readings=(
        Reading(USED, "bytes", "dram used"),
        Reading(TOTAL, "bytes", "dram total"),
        Reading("temp", "°C", "soc temperature"),
        Reading(POWER, "W", "power"),
        Reading(LIMIT, "W", "limit"),
        Reading("boardPowerWatts", "W", "board power"),
        Reading("healthy", "1", "healthy"),
        Reading("graphicsClock", "MHz", "nsp frequency"),
        Reading("memoryClock", "MHz", "ddr frequency"),
    ),
    identity={
        "index": ("index",),
        "name": ("sku type", "pci info"),
        "pci": ("pci address",),
        "uuid": ("hw serial",),
        "serial": ("board serial",),
    },
    missing={"gpu": "qaic-util reports how many cores are allocated, not how busy they are"},
)


def probe(scope: Scope) -> Smi:
    """Watch the devices of this vendor."""
    return watch(scope, QUALCOMM)
