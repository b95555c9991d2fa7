"""How sources stand, by readings made by hand and by trees of files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from runvitals.doctor import sources
from runvitals.doctor.finding import Finding
from runvitals.doctor.remedies import remedy
from runvitals.sdk.probe import MachineReading
from runvitals.sdk.settings import resolve
from tests.collectors.trees import plant


def examined(
    root: Path, states: dict[str, dict[str, str]], counts: dict[str, int] | None = None, **settings: Any
) -> dict[str, Finding]:
    values = {**resolve({}, {"HOME": str(root)}, "/"), "host_root": str(root), **settings}
    reading = MachineReading(states=states, counts=counts or {})
    return {one.name: one for one in sources.findings(reading, values) if not one.name.startswith("/dev/")}


def test_what_works_passes_and_what_lacks_a_part_is_partial(tmp_path: Path) -> None:
    states = {"cpu": {"state": "on"}, "thermal": {"state": "on", "reason": "cpu.avg_temp: no sensor"}}
    found = examined(tmp_path, states, {"cpu": 5, "thermal": 1})
    assert (found["cpu"].state, found["cpu"].text) == ("PASS", "5 values in 0.0 ms")
    assert (found["thermal"].state, found["thermal"].text[-9:]) == ("PARTIAL", "no sensor")


def test_a_source_that_is_on_and_gives_nothing_is_no_success(tmp_path: Path) -> None:
    assert examined(tmp_path, {"disk": {"state": "on"}})["disk"].state == "PARTIAL"


def test_what_is_not_here_is_no_fault_but_what_breaks_is(tmp_path: Path) -> None:
    states = {
        "amd": {"state": "absent", "reason": "no AMD GPU"},
        "fridge": {"state": "absent", "reason": "the probe failed: KeyError: 'door'"},
        "nvidia": {"state": "failing", "reason": "NvmlError: the driver does not answer"},
    }
    found = examined(tmp_path, states)
    assert {name: one.state for name, one in found.items()} == {
        "amd": "ABSENT",
        "fridge": "FAIL",
        "nvidia": "FAIL",
    }
    assert "--bundle" in found["fridge"].remedy


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("nvidia", {"collectors": ["cpu", "nvidia"]}),
        ("openmetrics", {"openmetrics_endpoints": {"vllm": "http://localhost:8000/metrics"}}),
    ],
)
def test_what_a_person_asked_for_must_be_there(tmp_path: Path, name: str, settings: dict[str, Any]) -> None:
    found = examined(tmp_path, {name: {"state": "absent", "reason": "not here"}}, **settings)
    assert found[name].state == "FAIL"


def test_hidden_processes_come_with_their_remedy(tmp_path: Path) -> None:
    reason = "gpu.process: the driver names processes by the host's numbers, which this PID namespace hides"
    found = examined(tmp_path, {"nvidia": {"state": "on", "reason": reason}}, {"nvidia": 40})
    assert found["nvidia"].state == "PARTIAL"
    assert "--pid=host" in found["nvidia"].remedy


def test_a_card_without_its_source_is_told(tmp_path: Path) -> None:
    card = "sys/bus/pci/devices/0000:3b:00.0"
    plant(
        tmp_path,
        {f"{card}/class": "0x030200\n", f"{card}/vendor": "0x10de\n", f"{card}/device": "0x2330\n"},
    )
    absent = {
        "nvidia": {"state": "absent", "reason": "the NVIDIA driver is loaded, but /dev/nvidiactl is not"}
    }
    found = examined(tmp_path, absent)["NVIDIA cards"]
    assert found.state == "PARTIAL"
    assert "0000:3b:00.0 (no driver)" in found.text
    assert "--gpus all" in found.remedy
    assert "NVIDIA cards" not in examined(tmp_path, {"nvidia": {"state": "on"}}, {"nvidia": 9})


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no users here")
def test_reasons_that_nothing_is_known_against_have_no_remedy() -> None:
    assert remedy("no network interface is driven by ena") == ""
    assert "chmod" in remedy("only root may read /sys/class/powercap/intel-rapl:0/energy_uj")
