"""Qualcomm Cloud AI 100: the sections of `qaic-util -q`, one for each chip; a card may have four.

The tool tells how many of a chip's cores are given away, which is no load: a program may hold them and wait.
"""

from __future__ import annotations

from runvitals.collectors.plumbing.quantity import amount, whole
from runvitals.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.collectors.vendors.devices import LIMIT, POWER, TOTAL, USED
from runvitals.collectors.vendors.formats import healthy, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Scope
    from runvitals.collectors.vendors.formats import Row

# Units as they stand behind names, "Board power(Watts)", and as they would stand behind a number.
_UNITS = {"degree c": "C", "celsius": "C", "watts": "W", "watt": "W", "milliwatts": "mW"}
# From here on numbers are those of reservations, which are parts of the chips before.
_FIRST_RESERVATION, _GREATEST = 100, 9999


def rows(output: bytes) -> list[Row]:
    """Names are in small letters, without the unit in brackets, which is put behind the number instead."""
    found: list[tuple[int, Row]] = []
    for line in text_of(output).splitlines():
        words = line.split()
        number = whole(words[1].rstrip(":"), _GREATEST) if len(words) == 2 and words[0] == "QID" else None
        if number is not None:
            found.append((number, {"index": number}))
            continue
        head, colon, value = line.strip().partition(":")
        if found and colon:
            name, _, unit = head.partition("(")
            unit = unit.rstrip(") ").lower()
            found[-1][1].setdefault(name.strip().lower(), f"{value.strip()} {_UNITS.get(unit, unit)}".strip())
    chips = [row for number, row in found if number < _FIRST_RESERVATION]
    for row in chips:
        _complete(row)
    return chips


def _complete(row: Row) -> None:
    """Used memory; the chip's own power and limit, or, where the release does not tell, the board's. Nothing
    runs on 0 W: a release that does not know writes that.
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
    missing={"gpu": "qaic-util tells which cores are given away, not how busy they are"},
)


def probe(scope: Scope) -> Smi:
    return watch(scope, QUALCOMM)
