"""Kunlunxin XPU: `xpu-smi -q`, or the table of older releases. Intel's tool has the same name."""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import LIMIT, POWER, TOTAL, USED
from runvitals.monitoring.collectors.vendors.formats import text_of, tree
from runvitals.monitoring.collectors.vendors.text_tables import grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.vendors.formats import Row


def rows(output: bytes) -> list[Row]:
    """Parse the output: a row for each device."""
    text = text_of(output)
    if "XPU-RT Version" not in text:
        raise ValueError(f"this xpu-smi is not Kunlunxin's: it printed {' '.join(text.split())[:80]!r}")
    return grid(text, ("xpu",)) or tree(text, "XPU ")


KUNLUNXIN = Vendor(
    name="kunlunxin",
    title="Kunlunxin XPU",
    programs=("xpu-smi", "xpu_smi"),
    folders=("/usr/local/xpu/bin", "/usr/local/xpu/tools"),
    commands=(("-q",), ()),
    rows=rows,
    readings=(
        Reading("gpu", "%", "Utilization.Xpu", "Utilization.XPU", "Utilization.Gpu", "utilization"),
        Reading(USED, "bytes", "Memory Usage.Used", "FB Memory Usage.Used", "memory.used", bare="MiB"),
        Reading(TOTAL, "bytes", "Memory Usage.Total", "FB Memory Usage.Total", "memory.total", bare="MiB"),
        Reading("temp", "°C", "Temperature.XPU Current Temp", "Temperature.GPU Current Temp", "temp"),
        Reading(POWER, "W", "Power Readings.Power Draw", "power"),
        Reading(LIMIT, "W", "Power Readings.Enforced Power Limit", "Power Readings.Power Limit", "limit"),
        Reading("graphicsClock", "MHz", "Clocks.Cluster"),
        Reading("correctedMemoryErrors", "1", "ECC Errors.Volatile.DRAM Correctable", counter=True),
        Reading("unCorrectedMemoryErrors", "1", "ECC Errors.Volatile.DRAM Uncorrectable", counter=True),
    ),
    identity={
        "index": ("index", "Minor Number"),
        "name": ("Product Name", "name"),
        "uuid": ("XPU UUID",),
        "pci": ("PCI.Bus Id", "", "pci"),
        "serial": ("Serial Number",),
    },
)


def probe(scope: Scope) -> Smi:
    """Watch the devices of this vendor."""
    return watch(scope, KUNLUNXIN)
