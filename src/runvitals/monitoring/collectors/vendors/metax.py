"""MetaX: the table printed by mx-smi, or by its variant ht-smi."""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import LIMIT, POWER, TOTAL, USED
from runvitals.monitoring.collectors.vendors.formats import text_of
from runvitals.monitoring.collectors.vendors.text_tables import grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.vendors.formats import Row


def rows(output: bytes) -> list[Row]:
    """Parse the output: a row for each device."""
    text = text_of(output)
    return grid(text, ("gpu",)) or grid(text, ("board", "card"))


METAX = Vendor(
    name="metax",
    title="MetaX GPU",
    programs=("mx-smi", "ht-smi"),
    folders=("/opt/mxdriver/bin", "/opt/maca/bin", "/opt/hpcc/bin"),
    commands=((),),
    rows=rows,
    readings=(
        Reading("gpu", "%", "utilization"),
        Reading(USED, "bytes", "memory.used", bare="MiB"),
        Reading(TOTAL, "bytes", "memory.total", bare="MiB"),
        Reading("temp", "°C", "temp"),
        Reading(POWER, "W", "power"),
        Reading(LIMIT, "W", "limit"),
    ),
)


def probe(scope: Scope) -> Smi:
    """Watch the devices of this vendor."""
    return watch(scope, METAX)
