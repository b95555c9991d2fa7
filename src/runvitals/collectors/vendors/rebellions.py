"""Rebellions: `rbln-stat --json` (rbln-smi in newer SDKs)."""

from __future__ import annotations

from runvitals.collectors import loosejson
from runvitals.collectors.vendors.adapter import POWER, TOTAL, USED, Reading, Smi, Vendor, watch
from runvitals.collectors.vendors.formats import objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Scope
    from runvitals.collectors.vendors.formats import Row


def rows(output: bytes) -> list[Row]:
    answer = loosejson.find(output)
    return objects(answer.get("devices", []) if isinstance(answer, dict) else answer)


REBELLIONS = Vendor(
    name="rebellions",
    title="Rebellions NPU",
    programs=("rbln-smi", "rbln-stat"),
    commands=(("--json",), ("-j",)),
    rows=rows,
    readings=(
        Reading("gpu", "%", "util"),
        Reading(USED, "bytes", "memory.used"),
        Reading(TOTAL, "bytes", "memory.total"),
        Reading("temp", "°C", "temperature"),
        Reading(POWER, "W", "card_power"),
    ),
    identity={
        "index": ("npu",),
        "name": ("name",),
        "uuid": ("uuid",),
        "pci": ("pci.bus_id",),
        "serial": ("sid",),
    },
    missing={"powerPercent": "the tool tells no power limit"},
)


def probe(scope: Scope) -> Smi:
    return watch(scope, REBELLIONS)
