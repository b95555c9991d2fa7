"""Iluvatar CoreX: ixsmi queries, or its table if a release does not support one of the names."""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import LIMIT, POWER, TOTAL, USED
from runvitals.monitoring.collectors.vendors.formats import csv, text_of
from runvitals.monitoring.collectors.vendors.text_tables import grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.vendors.formats import Row

_COMMON = "index,uuid,name,utilization.gpu,memory.used,memory.total,temperature.gpu"
_CLOCKS = "clocks.sm,clocks.mem,fan.speed"
_POWER = ("gpu.power.draw,gpu.power.limit", "power.draw,power.limit", "board.power.draw")


def rows(output: bytes) -> list[Row]:
    """Parse the output: a row for each device."""
    text = text_of(output)
    return grid(text, ("gpu",)) or csv(text, key="index")


ILUVATAR = Vendor(
    name="iluvatar",
    title="Iluvatar GPU",
    programs=("ixsmi",),
    folders=("/usr/local/corex/bin",),
    # Names of the power fields: of CoreX 4, of CoreX 3, and one found only in documentation.
    commands=(
        *((f"--query-gpu={_COMMON},{power},{_CLOCKS}", "--format=csv") for power in _POWER),
        (),
        *((f"--query-gpu={_COMMON},{power}", "--format=csv") for power in _POWER),
    ),
    rows=rows,
    readings=(
        Reading("gpu", "%", "utilization.gpu", "utilization"),
        Reading(USED, "bytes", "memory.used", bare="MiB"),
        Reading(TOTAL, "bytes", "memory.total", bare="MiB"),
        Reading("temp", "°C", "temperature.gpu", "temp"),
        Reading(POWER, "W", "gpu.power.draw", "power.draw", "board.power.draw", "power"),
        Reading(LIMIT, "W", "gpu.power.limit", "power.limit", "limit"),
        Reading("smClock", "MHz", "clocks.sm", "clocks.current.sm", "clock.sm"),
        Reading("memoryClock", "MHz", "clocks.mem", "clocks.current.memory", "clock.memory"),
        Reading("fanSpeed", "%", "fan.speed", "fan"),
    ),
)


def probe(scope: Scope) -> Smi:
    """Watch the devices of this vendor."""
    return watch(scope, ILUVATAR)
