"""Intel Gaudi (Habana): hl-smi queries, or its table if a release does not support one of the columns."""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import LIMIT, POWER, TOTAL, USED
from runvitals.monitoring.collectors.vendors.formats import csv, text_of
from runvitals.monitoring.collectors.vendors.text_tables import grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.vendors.formats import Row

COLUMNS = (
    "index", "uuid", "name", "driver_version", "memory.total", "memory.used", "memory.free", "power.draw",
    "power.max", "temperature.aip", "utilization.aip",
)  # fmt: skip


def rows(output: bytes) -> list[Row]:
    """Parse the output: a row for each device."""
    text = text_of(output)
    return grid(text, ("aip", "hpu")) or csv(text, COLUMNS)


GAUDI = Vendor(
    name="gaudi",
    title="Intel Gaudi",
    programs=("hl-smi",),
    folders=("/opt/habanalabs/bin",),
    commands=(("-Q", ",".join(COLUMNS), "--format", "csv,noheader"), ()),
    rows=rows,
    readings=(
        Reading("gpu", "%", "utilization.aip", "utilization"),
        Reading(USED, "bytes", "memory.used", bare="MiB"),
        Reading(TOTAL, "bytes", "memory.total", bare="MiB"),
        Reading("temp", "°C", "temperature.aip", "temp"),
        Reading(POWER, "W", "power.draw", "power"),
        Reading(LIMIT, "W", "power.max", "limit"),
    ),
)


def probe(scope: Scope) -> Smi:
    """Watch the devices of this vendor."""
    return watch(scope, GAUDI)
