"""Hygon DCU: `hy-smi … --json`, or the table of a release that cannot."""

from __future__ import annotations

from runvitals.collectors import loosejson
from runvitals.collectors.vendors.adapter import LIMIT, POWER, SHARE, TOTAL, USED, Reading, Smi, Vendor, watch
from runvitals.collectors.vendors.formats import flat, text_of
from runvitals.collectors.vendors.grids import columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Scope
    from runvitals.collectors.vendors.formats import Row

_LOAD = ("--showuse", "--showmemuse", "--showtemp")


def rows(output: bytes) -> list[Row]:
    """One for each "card{N}"; the object's order says nothing."""
    drawn = columns(text_of(output), ("hcu", "dcu"))
    if drawn:
        return drawn
    answer = loosejson.find(output)
    found = []
    for name, card in answer.items() if isinstance(answer, dict) else ():
        number = name.strip().lower().removeprefix("card")
        if number.isdigit() and isinstance(card, dict):
            found.append({**flat(card), "index": number})
    return found


HYGON = Vendor(
    name="hygon",
    title="Hygon DCU",
    programs=("hy-smi",),
    folders=("/opt/hyhal/bin", "/opt/dtk/bin"),
    # Some releases refuse some of the options together.
    commands=(
        (*_LOAD, "--showpower", "--showmeminfo", "vram", "--showbus", "--json"),
        (*_LOAD, "--showpower", "--json"),
        (*_LOAD, "--json"),
        (),
    ),
    rows=rows,
    readings=(
        Reading("gpu", "%", "HCU use (%)", "DCU use (%)", "HCU utilization (%)", "HCU%", "DCU%"),
        Reading(SHARE, "%", "HCU memory use (%)", "DCU memory use (%)", "VRAM%"),
        Reading(USED, "bytes", "vram Total Used Memory (MiB)", bare="MiB"),
        Reading(TOTAL, "bytes", "vram Total Memory (MiB)", "Available memory size (MiB)", bare="MiB"),
        Reading(
            "temp",
            "°C",
            "Temperature (Sensor junction) (C)",
            "Temperature (Sensor edge) (C)",
            "Temperature (Sensor core) (C)",
            "Temp",
        ),
        Reading("memoryTemp", "°C", "Temperature (Sensor mem) (C)"),
        Reading(
            POWER,
            "W",
            "Average Graphics Package Power (W)",
            "Current Socket Graphics Package Power (W)",
            "AvgPwr",
            "Power",
        ),
        Reading(LIMIT, "W", "Max Graphics Package Power (W)", "PwrCap"),
        Reading("fanSpeed", "%", "Fan speed (%)", "Fan"),
    ),
    identity={
        "index": ("index",),
        "name": ("Card Series", "Card series"),
        "uuid": ("Unique ID",),
        "pci": ("PCI Bus",),
        "serial": ("Serial Number",),
    },
)


def probe(scope: Scope) -> Smi:
    return watch(scope, HYGON)
