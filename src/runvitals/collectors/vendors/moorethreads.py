"""Moore Threads: `mthreads-gmi -q --json`."""

from __future__ import annotations

from runvitals.collectors import loosejson
from runvitals.collectors.vendors.adapter import LIMIT, POWER, TOTAL, USED, Reading, Smi, Vendor, watch
from runvitals.collectors.vendors.formats import objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Scope
    from runvitals.collectors.vendors.formats import Row


def rows(output: bytes) -> list[Row]:
    answer = loosejson.find(output)
    return objects(answer.get("GPU", []) if isinstance(answer, dict) else answer)


MOORE_THREADS = Vendor(
    name="moorethreads",
    title="Moore Threads GPU",
    programs=("mthreads-gmi",),
    commands=(("-q", "--json"),),
    rows=rows,
    readings=(
        Reading("gpu", "%", "Utilization.Gpu"),
        Reading("memory", "%", "Utilization.Memory"),
        Reading(USED, "bytes", "FB Memory Usage.Used", bare="MiB"),
        Reading(TOTAL, "bytes", "FB Memory Usage.Total", bare="MiB"),
        Reading("temp", "°C", "Temperature.GPU Current Temp"),
        Reading(POWER, "W", "Power Readings.Power Draw"),
        # "Max Power Limit" is what could be set, not what is.
        Reading(LIMIT, "W", "Power Readings.Current Power Limit"),
    ),
    identity={
        "index": ("Index",),
        "name": ("Product Name",),
        "uuid": ("GPU UUID",),
        "pci": ("PCI.Bus ID",),
        "serial": ("Serial Number",),
    },
)


def probe(scope: Scope) -> Smi:
    return watch(scope, MOORE_THREADS)
