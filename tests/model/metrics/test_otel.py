"""Names of OpenTelemetry: those of our own destination come back, and other senders' are understood."""

from __future__ import annotations

import pytest

from runvitals.model.metrics import DEFINITIONS
from runvitals.model.metrics.metric import Metric, placeholders
from runvitals.model.metrics.otel import find
from runvitals.relay.destinations.otel.naming import name_metric

_VALUES = {"i": "3", "core": "2", "port": "1", "n": "4", "gi": "5", "ci": "6", "path": "/data", "nic": "eth0"}


@pytest.mark.parametrize("metric", [m for m in DEFINITIONS.metrics if m.name], ids=lambda metric: metric.key)
def test_every_name_of_ours_leads_back_to_its_key(metric: Metric) -> None:
    key = metric.key.format(**{name: _VALUES.get(name, "x0") for name in placeholders(metric.key)})
    match = DEFINITIONS.find(key)
    assert match is not None
    family, attributes, factor = name_metric(key)
    found = find(family.name, dict(attributes), family.unit, family.kind == "counter")
    assert found is not None, (family, attributes)
    assert found.key == match.key
    assert found.factor * factor == pytest.approx(1.0)
    assert found.is_counter == (match.metric.kind == "counter")


@pytest.mark.parametrize(
    ("name", "attributes", "unit", "is_counter", "key", "factor"),
    [
        ("system.memory.usage", {"state": "used"}, "By", False, "memory.usedMB", 2.0**-20),
        ("system.memory.utilization", {"system.memory.state": "used"}, "1", False, "memory_percent", 100),
        ("system.memory.utilization", {"state": "used"}, "%", False, "memory_percent", 1),
        ("system.network.io", {"device": "eth0", "direction": "receive"}, "By", True, "network.eth0.recv", 1),
        ("system.disk.io", {"device": "sda", "direction": "read"}, "By", True, "disk.sda.in", 2.0**-20),
        ("system.cpu.load_average.1m", {}, "{thread}", False, "system.load1", 1),
        (
            "system.filesystem.usage",
            {"device": "/dev/sda1", "mode": "rw", "mountpoint": "/", "type": "ext4", "state": "used"},
            "By",
            False,
            "disk./.usageGB",
            2.0**-30,
        ),
        ("hw.gpu.utilization", {"hw.id": "1", "hw.name": "H100"}, "1", False, "gpu.1.gpu", 100),
        ("hw.gpu.memory.usage", {"hw.id": "1"}, "MiBy", False, "gpu.1.memoryAllocatedBytes", 2.0**20),
        (
            "hw.power",
            {"hw.id": "0", "hw.type": "gpu", "hw.vendor": "x"},
            "mW",
            False,
            "gpu.0.powerWatts",
            1e-3,
        ),
        ("hw.temperature", {"hw.id": "0", "hw.type": "gpu"}, "Cel", False, "gpu.0.temp", 1),
        ("hw.energy", {"hw.id": "0", "hw.type": "gpu"}, "J", True, "gpu.0.energyJoules", 1),
        ("process.memory.usage", {}, "By", False, "proc.memory.rssMB", 2.0**-20),
        ("process.threads", {}, "{threads}", False, "proc.cpu.threads", 1),
        ("k8s.container.memory_limit_utilization", {}, "1", False, "memory_percent", 100),
    ],
)
def test_names_of_other_senders(
    name: str, attributes: dict[str, str], unit: str, is_counter: bool, key: str, factor: float
) -> None:
    match = find(name, attributes, unit, is_counter)
    assert match is not None
    assert (match.key, match.factor) == (key, pytest.approx(factor))


@pytest.mark.parametrize(
    ("name", "attributes", "unit", "is_counter"),
    [
        ("system.cpu.utilization", {"cpu": "cpu0", "state": "user"}, "1", False),  # of one core
        ("system.memory.usage", {"state": "slab_reclaimable"}, "By", False),
        ("system.memory.usage", {"state": "used"}, "s", False),
        ("system.memory.usage", {"state": "used"}, "By", True),
        (
            "system.network.errors",
            {"device": "eth0", "direction": "receive"},
            "{errors}",
            True,
        ),  # one direction
        ("hw.gpu.utilization", {"hw.id": "0000:3b:00.0"}, "1", False),
        ("http.server.request.duration", {}, "s", False),
    ],
)
def test_what_has_another_meaning_has_no_key(
    name: str, attributes: dict[str, str], unit: str, is_counter: bool
) -> None:
    assert find(name, attributes, unit, is_counter) is None
