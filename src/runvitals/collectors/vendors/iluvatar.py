"""Iluvatar CoreX: ixsmi, by query or, where it does not know a name we ask for, by its table."""

from __future__ import annotations

from runvitals.collectors.vendors.adapter import LIMIT, POWER, TOTAL, USED, Reading, Smi, Vendor, watch
from runvitals.collectors.vendors.formats import csv, table, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Scope
    from runvitals.collectors.vendors.formats import Row

_COMMON = "index,uuid,name,utilization.gpu,memory.used,memory.total,temperature.gpu"


def rows(output: bytes) -> list[Row]:
    text = text_of(output)
    return table(text) if "|===" in text else csv(text, key="index")


ILUVATAR = Vendor(
    name="iluvatar",
    title="Iluvatar GPU",
    programs=("ixsmi",),
    folders=("/usr/local/corex/bin",),
    # The power's name changed with releases: CoreX 4, 3, and one more that documents show.
    commands=(
        (f"--query-gpu={_COMMON},gpu.power.draw,gpu.power.limit", "--format=csv"),
        (f"--query-gpu={_COMMON},power.draw,power.limit", "--format=csv"),
        (f"--query-gpu={_COMMON},board.power.draw", "--format=csv"),
        (),
    ),
    rows=rows,
    readings=(
        Reading("gpu", "%", "utilization.gpu", "utilization"),
        Reading(USED, "bytes", "memory.used", bare="MiB"),
        Reading(TOTAL, "bytes", "memory.total", bare="MiB"),
        Reading("temp", "°C", "temperature.gpu", "temp"),
        Reading(POWER, "W", "gpu.power.draw", "power.draw", "board.power.draw", "power"),
        Reading(LIMIT, "W", "gpu.power.limit", "power.limit", "limit"),
    ),
)


def probe(scope: Scope) -> Smi:
    return watch(scope, ILUVATAR)
