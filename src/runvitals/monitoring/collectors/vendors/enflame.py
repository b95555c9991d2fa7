"""Enflame GCU: the sections of `efsmi -q`; else the one-line-per-card monitor; else the table.

The table reports the size of the memory but not its use, and the monitor no power limit.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import LIMIT, POWER, SHARE, TOTAL, USED
from runvitals.monitoring.collectors.vendors.formats import healthy, text_of, tree
from runvitals.monitoring.collectors.vendors.text_tables import columns, grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.vendors.formats import Row

_NUMBERED = ("dev", "gcu")
_ADDRESS = ("PCIe Info.Domain", "PCIe Info.Bus", "PCIe Info.Dev", "PCIe Info.Func")


def rows(output: bytes) -> list[Row]:
    """Parse the output: a row for each device."""
    text = text_of(output)
    cards = tree(text, "DEV ID ")
    for row in cards:
        row["index"] = row[""]
        row["healthy"] = healthy(row.get("Device Info.Health", ""))
        if all(part in row for part in _ADDRESS):
            domain, bus, device, function = (str(row[part]) for part in _ADDRESS)
            row["pci"] = f"{domain}:{bus}:{device}.{function}"
    return cards or grid(text, _NUMBERED) or columns(text, _NUMBERED)


ENFLAME = Vendor(
    name="enflame",
    title="Enflame GCU",
    programs=("efsmi",),
    folders=("/opt/tops/bin",),
    commands=(("-q",), ("--dmon", "-c", "1"), ()),
    every_s=2.0,
    timeout_s=10.0,
    rows=rows,
    readings=(
        Reading("gpu", "%", "Device Usage Info.GCU Usage", "utilization", "DUsed"),
        Reading(
            USED,
            "bytes",
            "Device Mem Info.Used Size",
            "Device Mem Info.Mem Usage",  # of older releases
            "memory.used",
            bare="MiB",
        ),
        Reading(
            TOTAL,
            "bytes",
            "Device Mem Info.Total Size",
            "Device Mem Info.Mem Size",
            "memory.total",
            "memory",
            "Mem",
            bare="MiB",
        ),
        Reading(SHARE, "%", "MUsed"),
        Reading("temp", "°C", "Temperature Info.GCU Temp", "temp", "DTemp"),
        Reading("memoryTemp", "°C", "Temperature Info.HBM Temp", "Temperature Info.Mem Temp", "M1Temp"),
        Reading(POWER, "W", "Power Info.Cur Power", "power", "Pwr"),
        Reading(LIMIT, "W", "Power Info.Power Capa", "limit"),
        Reading("graphicsClock", "MHz", "Clock Info.GCU CLK", "Dclk"),
        Reading("memoryClock", "MHz", "Clock Info.Mem CLK", "Mclk"),
        Reading("encoderUtilization", "%", "VPU Info.Encoder Usage"),
        Reading("decoderUtilization", "%", "VPU Info.Decoder Usage"),
        Reading("healthy", "1", "healthy"),
        Reading("pcieTxBytes", "bytes/s", "PCIe Info.Tx Throughput", "TxPci", bare="MiB/s"),
        Reading("pcieRxBytes", "bytes/s", "PCIe Info.Rx Throughput", "RxPci", bare="MiB/s"),
    ),
    identity={
        "index": ("index",),
        "name": ("Device Info.Dev Name", "name"),
        "uuid": ("Device Info.Dev UUID",),
        "pci": ("pci",),
        "serial": ("Device Info.Dev SN",),
    },
)


def probe(scope: Scope) -> Smi:
    """Watch the devices of this vendor."""
    return watch(scope, ENFLAME)
