"""Vendors are detected with one scan of PCI, and the indices of several vendors do not collide."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.plumbing import pci
from runvitals.monitoring.collectors.sources import LINUX, probe_all
from runvitals.monitoring.collectors.vendors.probes import ORDER, amd, first_index, gaudi, intel
from tests.isolated import printed
from tests.monitoring.collectors.trees import BARE_VM, plant
from tests.monitoring.collectors.vendors.machines import pci as device
from tests.monitoring.collectors.vendors.machines import tool, values

NAMES = {door.name for door in ORDER} - {"nvidia", "amd"}
MIXED = (
    device("0000:01:00.0", "10de", "03")
    | device("0000:01:00.1", "10de", "04")  # its audio function
    | device("0000:02:00.0", "10de", "03")
    | device("0000:03:00.0", "1a03", "03")  # onboard graphics
    | device("0000:04:00.0", "1002", "12")
    | device("0000:9a:00.0", "1da3")
    | device("0000:19:00.0", "1da3")
    | device("0000:00:02.0", "8086", "03")
    | device("0000:00:1f.0", "8086", "06")
)
HL_SMI = (
    "0, UUID-0, HL-325L, 1.2, 1000 MiB, 100 MiB, 900 MiB, 200 W, 800 W, 30 C, 5 %\n"
    "1, UUID-1, HL-325L, 1.2, 1000 MiB, 500 MiB, 500 MiB, 300 W, 800 W, 40 C, 95 %\n"
)


def test_every_vendor_is_a_source() -> None:
    assert set(LINUX) >= NAMES


def test_a_machine_without_accelerators_has_a_reason_for_each(tmp_path: Path) -> None:
    collectors = probe_all(plant(tmp_path, BARE_VM), names=NAMES)
    assert collectors.collectors == []
    assert collectors.reasons.keys() == NAMES
    assert collectors.reasons["gaudi"] == "no Intel Gaudi here: no PCI device of vendor 1da3, no /dev/hl0"


def test_a_vendors_module_is_not_imported_without_its_device() -> None:
    script = """
from runvitals.monitoring.collectors.base import Scope
from runvitals.monitoring.collectors.sources import probe_all
probe_all(Scope(host_root=sys.argv[1]), names=sys.argv[2].split(","))
print(*(name for name in sys.modules if "vendors." in name))
"""
    assert printed(script, "/nowhere", ",".join(NAMES)).split() == [
        "runvitals.monitoring.collectors.vendors.probes"
    ]


def test_cards_are_found_by_vendor_and_class(tmp_path: Path) -> None:
    scope = plant(tmp_path, MIXED)
    assert [card.address for card in gaudi.cards(scope)] == ["0000:19:00.0", "0000:9a:00.0"]
    assert [card.address for card in intel.cards(scope)] == ["0000:00:02.0"]
    assert len(amd.cards(scope)) == 1


def test_one_scan_serves_all_probes_of_a_round(tmp_path: Path) -> None:
    scope = plant(tmp_path, MIXED)
    assert pci.cards(scope) is pci.cards(scope)
    again = Scope(host_root=str(tmp_path))
    assert pci.cards(again) is not pci.cards(scope)


def test_indices_of_several_vendors_do_not_collide(tmp_path: Path) -> None:
    scope = plant(tmp_path, MIXED)
    assert [first_index(scope, name) for name in ("nvidia", "amd", "gaudi", "intel")] == [0, 2, 3, 5]
    assert first_index(scope, "somebody else's") == 6


def test_a_second_vendors_devices_follow_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, monkeypatch, "hl-smi", HL_SMI)
    collectors = probe_all(plant(tmp_path / "root", MIXED), names={"gaudi"})
    (smi,) = collectors.collectors
    read = values(smi)
    assert {key.split(".")[1] for key in read} == {"3", "4"}
    assert read["gpu.4.temp"] == 40.0


def test_a_device_file_suffices_without_pci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, monkeypatch, "hl-smi", HL_SMI)
    collectors = probe_all(plant(tmp_path / "root", {"dev/hl0": ""}), names={"gaudi"})
    assert values(collectors.collectors[0])["gpu.0.temp"] == 30.0


def test_a_card_without_its_tool_is_absent_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Absent, match="Intel Gaudi found, but hl-smi is neither on PATH nor in "):
        gaudi(plant(tmp_path, MIXED))


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("00000000:9D:00.0", "0000:9d:00.0"),
        ("0000:3B:00.0 ", "0000:3b:00.0"),
        ("3b:00.0", "0000:3b:00.0"),
        ("0000:xx:00.0", ""),
        ("N/A", ""),
        ("", ""),
    ],
)
def test_addresses_are_normalized(written: str, address: str) -> None:
    assert pci.normal(written) == address
