"""T-Head PPU (Alibaba): ppu-smi."""

from __future__ import annotations

from runvitals.collectors.vendors.adapter import LIMIT, POWER, TOTAL, USED, Reading, Smi, Vendor, watch
from runvitals.collectors.vendors.formats import csv, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Scope
    from runvitals.collectors.vendors.formats import Row

_COMMON = (
    "index,name,uuid,utilization.ppu,utilization.memory,memory.used,memory.total,temperature.ppu,power.draw"
)


def rows(output: bytes) -> list[Row]:
    return csv(text_of(output), key="index")


THEAD = Vendor(
    name="thead",
    title="T-Head PPU",
    programs=("ppu-smi",),
    folders=("/usr/local/PPU_SDK/bin",),
    # A release that does not know one of the names answers nothing at all.
    commands=(
        (f"--query-ppu={_COMMON},gpu_bus_id,power.limit", "--format=csv"),
        (f"--query-ppu={_COMMON}", "--format=csv"),
        ("--query-ppu=index,name,uuid,memory.used,memory.total", "--format=csv"),
    ),
    rows=rows,
    readings=(
        Reading("gpu", "%", "utilization.ppu"),
        Reading("memory", "%", "utilization.memory"),
        Reading(USED, "bytes", "memory.used", bare="MiB"),
        Reading(TOTAL, "bytes", "memory.total", bare="MiB"),
        Reading("temp", "°C", "temperature.ppu"),
        Reading(POWER, "W", "power.draw"),
        Reading(LIMIT, "W", "power.limit"),
    ),
    identity={"index": ("index",), "name": ("name",), "uuid": ("uuid",), "pci": ("gpu_bus_id",)},
)


def probe(scope: Scope) -> Smi:
    return watch(scope, THEAD)
