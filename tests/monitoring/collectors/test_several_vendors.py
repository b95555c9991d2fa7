"""One host with accelerators of several vendors: each device has its own index, across all sources."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from runvitals.monitoring.collectors.amd.probe import probe as probe_amd
from runvitals.monitoring.collectors.nvidia.collector import Nvidia
from runvitals.monitoring.collectors.sources import probe_all
from runvitals.monitoring.collectors.vendors.probes import first_index
from runvitals.monitoring.monitor.sampler import Sampler
from tests.monitoring.collectors.amd.cards import card
from tests.monitoring.collectors.nvidia.fake import FakeGpu, FakeNvml
from tests.monitoring.collectors.trees import BARE_VM, Tree, plant
from tests.monitoring.collectors.vendors.machines import pci, tool
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from runvitals.monitoring.collectors.base import Collector

HL_SMI = (
    "0, UUID-0, HL-325L, 1.2, 1000 MiB, 100 MiB, 900 MiB, 200 W, 800 W, 30 C, 5 %\n"
    "1, UUID-1, HL-325L, 1.2, 1000 MiB, 500 MiB, 500 MiB, 300 W, 800 W, 40 C, 95 %\n"
)
NVIDIA = {
    **pci("0000:18:00.0", "10de", "03"),
    **pci("0000:19:00.0", "10de", "03"),
    "proc/driver/nvidia/gpus/0000:18:00.0/": "",
    "proc/driver/nvidia/gpus/0000:19:00.0/": "",
}
INSTINCT = pci("0000:43:00.0", "1002") | card(2, "0000:43:00.0", unique_id="00000000000000aa")
# Its partitions: cards of a separate driver, not on PCI.
PARTS: Tree = {}
for number in (3, 4, 5):
    PARTS |= card(number, "", driver="-> ../../../../bus/platform/drivers/amdgpu_xcp_drv",
                  uevent="DRIVER=amdgpu_xcp_drv", unique_id="00000000000000aa")  # fmt: skip
DEVICES = ("gpu_nvidia", "gpu_amd", "accelerator_gaudi")
GAUDI = pci("0000:9a:00.0", "1da3") | pci("0000:9b:00.0", "1da3")


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runvitals.monitoring.collectors.amd.collector.PATIENCE_S", 10.0)


def indices(values: dict[str, float], reading: str) -> list[int]:
    """The indices of the devices with this reading."""
    parts = [key.split(".") for key in values]
    return sorted(int(part[1]) for part in parts if part[0] == "gpu" and part[2:] == [reading])


@pytest.mark.parametrize("parts", [0, 3], ids=["whole", "in partitions"])
def test_indices_of_three_vendors_on_one_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    tool(tmp_path, monkeypatch, "hl-smi", HL_SMI)
    tree = BARE_VM | NVIDIA | INSTINCT | (PARTS if parts else {}) | GAUDI
    scope = plant(tmp_path / "host", tree)
    reports: list[object] = []
    collectors: list[Collector] = [
        Nvidia(
            scope, FakeNvml([FakeGpu(0), FakeGpu(1)]), patience_s=PATIENCE_S, proc=f"{tmp_path}/host/proc"
        ),
        probe_amd(scope),
        *probe_all(scope, {"gaudi"}).collectors,
    ]
    sampler = Sampler(collectors, 1.0, lambda name, error: reports.append((name, error)))
    values = sampler.sample(100.0)
    until_s = time.monotonic() + PATIENCE_S
    while len(indices(values, "powerWatts")) < 5 + parts:
        assert time.monotonic() < until_s, values
        values |= sampler.sample(101.0)
    assert indices(values, "gpu") == list(range(5 + parts))
    assert [values[f"gpu.{index}.powerWatts"] for index in range(2)] == [512.25, 512.25]
    assert values["gpu.2.powerWatts"] == 210.0
    assert [values[f"gpu.{3 + parts + position}.powerWatts"] for position in range(2)] == [200.0, 300.0]
    facts: dict[str, Any] = sampler.news()["machine"]
    indices_by_fact = {name: [each["index"] for each in facts[name]] for name in facts if name in DEVICES}
    assert indices_by_fact == {
        "gpu_nvidia": [0, 1],
        "gpu_amd": [2, *range(3, 3 + parts)],
        "accelerator_gaudi": [3 + parts, 4 + parts],
    }
    assert reports == []
    sampler.close()


def test_the_setting_gpu_ids_uses_these_indices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, monkeypatch, "hl-smi", HL_SMI)
    scope = plant(tmp_path / "host", BARE_VM | NVIDIA | GAUDI)
    collectors = probe_all(scope, {"gaudi"}).collectors
    sampler = Sampler(collectors, 1.0, lambda name, error: None, gpu_ids=[3])
    values: dict[str, float] = {}
    until_s = time.monotonic() + PATIENCE_S
    while not indices(values, "temp"):
        assert time.monotonic() < until_s
        values |= sampler.sample(100.0)
    assert (indices(values, "temp"), values["gpu.3.temp"]) == ([3], 40.0)
    sampler.close()


@pytest.mark.parametrize(
    ("tree", "vendor", "first"),
    [
        (BARE_VM, "gaudi", 0),
        (NVIDIA, "nvidia", 0),
        (INSTINCT | GAUDI, "amd", 0),
        (INSTINCT | GAUDI, "gaudi", 1),
        (INSTINCT | PARTS | GAUDI, "gaudi", 4),
        # A container without PCI: the drivers' files are used.
        ({"proc/driver/nvidia/gpus/0000:18:00.0/": ""} | card(1, "0000:43:00.0"), "amd", 1),
        (card(1, "0000:43:00.0"), "gaudi", 1),
        ({"dev/hl0": "", "dev/hl1": "", "dev/hl_controlD0": "", "dev/davinci0": ""}, "ascend", 2),
        # Two chips on a card, each of them a device.
        (pci("0000:0a:00.0", "19e5") | {f"dev/davinci{n}": "" for n in range(2)}, "intel", 2),
        # A card without a driver leaves a gap.
        (NVIDIA | pci("0000:1a:00.0", "10de", "03") | INSTINCT, "amd", 3),
        # Devices known only from the tool.
        (NVIDIA | GAUDI, "amd", 4),
        (BARE_VM, "amd", 0),
        (NVIDIA | INSTINCT | GAUDI, "a package of somebody else's", 5),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_first_index_of_a_vendor(tmp_path: Path, tree: Tree, vendor: str, first: int) -> None:
    assert first_index(plant(tmp_path, tree), vendor) == first
