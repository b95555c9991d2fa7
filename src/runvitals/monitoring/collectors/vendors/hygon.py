"""Hygon DCU: `hy-smi … --json`, or the table of a release without JSON."""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing import lenient_json
from runvitals.monitoring.collectors.plumbing.quantity import heading
from runvitals.monitoring.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import LIMIT, POWER, SHARE, TOTAL, USED
from runvitals.monitoring.collectors.vendors.formats import flat, text_of
from runvitals.monitoring.collectors.vendors.text_tables import columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.vendors.formats import Row

_LOAD = ("--showuse", "--showmemuse", "--showtemp")


def rows(output: bytes) -> list[Row]:
    """Return a row for each "card{N}"; the order in the object does not matter."""
    drawn = columns(text_of(output), ("hcu", "dcu"))
    if drawn:
        return drawn
    report = lenient_json.find(output)
    cards = []
    for name, card in report.items() if isinstance(report, dict) else ():
        number = name.strip().lower().removeprefix("card")
        if number.isdigit() and isinstance(card, dict):
            cards.append({**_name_fields(flat(card)), "index": number})
    return cards


def _name_fields(card: Row) -> Row:
    """Uniform names: releases differ in capitals, and report memory in B or MiB."""
    row: Row = {}
    for title, value in card.items():
        name, unit = heading(title)
        row[name] = {"value": value, "unit": unit} if unit else value
    return row


HYGON = Vendor(
    name="hygon",
    title="Hygon DCU",
    programs=("hy-smi", "rocm-smi"),  # the latter before DTK 24
    folders=("/opt/hyhal/bin", "/opt/dtk/bin"),
    # Some releases reject some of these options in combination.
    commands=(
        (*_LOAD, "--showpower", "--showmeminfo", "vram", "--showbus", "--json"),
        (*_LOAD, "--showpower", "--json"),
        (*_LOAD, "--json"),
        (),
    ),
    rows=rows,
    readings=(
        Reading("gpu", "%", "hcu use", "dcu use", "hcu utilization", "dcu utilization", "HCU%", "DCU%"),
        Reading(SHARE, "%", "hcu memory use", "dcu memory use", "VRAM%"),
        Reading(USED, "bytes", "vram total used memory", bare="MiB"),
        Reading(TOTAL, "bytes", "vram total memory", "available memory size", bare="MiB"),
        Reading(
            "temp",
            "°C",
            "temperature (sensor junction)",
            "temperature (sensor edge)",
            "temperature (sensor core)",
            "Temp",
        ),
        Reading("memoryTemp", "°C", "temperature (sensor mem)", "temperature (sensor memory)"),
        Reading(
            POWER,
            "W",
            "average graphics package power",
            "current socket graphics package power",
            "AvgPwr",
            "Power",
        ),
        Reading(LIMIT, "W", "max graphics package power", "PwrCap"),
        Reading("fanSpeed", "%", "fan speed", "Fan"),
        Reading("graphicsClock", "MHz", "sclk clock speed", "SCLK"),
        Reading("memoryClock", "MHz", "mclk clock speed", "MCLK"),
    ),
    identity={
        "index": ("index",),
        "name": ("card series",),
        "uuid": ("unique id",),
        "pci": ("pci bus",),
        "serial": ("serial number",),
    },
)


def probe(scope: Scope) -> Smi:
    """Watch the devices of this vendor."""
    return watch(scope, HYGON)
