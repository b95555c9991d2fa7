"""MetaX: the table that mx-smi prints."""

from __future__ import annotations

from runvitals.collectors.vendors.adapter import LIMIT, POWER, TOTAL, USED, Reading, Smi, Vendor, watch
from runvitals.collectors.vendors.formats import table, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Scope
    from runvitals.collectors.vendors.formats import Row


def rows(output: bytes) -> list[Row]:
    return table(text_of(output))


METAX = Vendor(
    name="metax",
    title="MetaX GPU",
    programs=("mx-smi",),
    folders=("/opt/mxdriver/bin", "/opt/maca/bin"),
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
    return watch(scope, METAX)
