"""Findings about sources, from readings and fake file trees."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from runvitals.monitoring.settings.settings import resolve
from runvitals.sdk.probe import MachineReading, read_once
from runvitals.tools.doctor import sources
from runvitals.tools.doctor.finding import Check
from tests.monitoring.collectors.trees import BARE_VM, mount, plant
from tests.patience import PATIENCE_S


def examined(
    root: Path, states: dict[str, dict[str, str]], counts: dict[str, int] | None = None, **settings: Any
) -> dict[str, Check]:
    values = {**resolve({}, {"HOME": str(root)}, "/"), "host_root": str(root), **settings}
    reading = MachineReading(states=states, counts=counts or {})
    return {
        finding.name: finding
        for finding in sources.findings(reading, values)
        if not finding.name.startswith("/dev/")
    }


def test_working_sources_pass_and_incomplete_ones_are_partial(tmp_path: Path) -> None:
    states = {"cpu": {"state": "on"}, "thermal": {"state": "on", "reason": "cpu.avg_temp: no sensor"}}
    findings = examined(tmp_path, states, {"cpu": 5, "thermal": 1})
    assert (findings["cpu"].state, findings["cpu"].text) == ("PASS", "5 values in 0.0 ms")
    assert (findings["thermal"].state, findings["thermal"].text[-9:]) == ("PARTIAL", "no sensor")


def test_a_source_lacks_nothing_if_the_machine_has_nothing_of_the_kind(tmp_path: Path) -> None:
    reason = "swap.used: there is none: no swap; cgroup.memory.limitMB: there is none: no cgroup limits it"
    states = {
        "memory": {"state": "on", "reason": reason},
        "cgroup": {"state": "on", "reason": reason + "; x: y"},
    }
    findings = examined(tmp_path, states, {"memory": 6, "cgroup": 1})
    assert (findings["memory"].state, findings["cgroup"].state) == ("PASS", "PARTIAL")
    assert "no swap" in findings["memory"].text


def test_a_file_system_that_does_not_answer_is_partial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As statvfs on an NFS mount whose server is gone: it does not return."""
    gone, statvfs = threading.Event(), os.statvfs

    def hanging(path: str) -> os.statvfs_result:
        if path.endswith("TV Series"):
            gone.wait(PATIENCE_S)
        return statvfs(path)

    monkeypatch.setattr(os, "statvfs", hanging)
    monkeypatch.setattr("runvitals.monitoring.collectors.host.filesystem.LATE_S", 0.3)
    plant(
        tmp_path, BARE_VM | {"proc/self/mountinfo": mount("/", "ext4") + mount("/mnt/TV\\040Series", "nfs4")}
    )
    chosen = {"host_root": str(tmp_path), "disk_paths": ["/", "/mnt/TV Series"], "collectors": ["filesystem"]}
    values = {**resolve({}, {"HOME": str(tmp_path)}, "/"), **chosen}
    try:
        reading = read_once(values)
    finally:
        gone.set()
    findings = {finding.name: finding for finding in sources.findings(reading, values)}
    assert "disk./.usagePercent" in reading.metrics
    assert findings["filesystem"].state == "PARTIAL"
    assert f"disk./mnt/TV Series: {tmp_path}/mnt/TV Series: not answering" in findings["filesystem"].text


def test_source_without_values_is_partial(tmp_path: Path) -> None:
    assert examined(tmp_path, {"disk": {"state": "on"}})["disk"].state == "PARTIAL"


def test_absent_sources_are_no_failure_but_faulty_ones_are(tmp_path: Path) -> None:
    states = {
        "amd": {"state": "absent", "reason": "no AMD GPU"},
        "fridge": {"state": "absent", "reason": "the probe failed: KeyError: 'door'"},
        "nvidia": {"state": "failing", "reason": "NvmlError: the driver does not answer"},
    }
    findings = examined(tmp_path, states)
    assert {name: finding.state for name, finding in findings.items()} == {
        "amd": "ABSENT",
        "fridge": "FAIL",
        "nvidia": "FAIL",
    }
    assert "--bundle" in findings["fridge"].remedy


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("nvidia", {"collectors": ["cpu", "nvidia"]}),
        ("openmetrics", {"openmetrics_endpoints": {"vllm": "http://localhost:8000/metrics"}}),
    ],
)
def test_absence_of_a_requested_source_is_a_failure(
    tmp_path: Path, name: str, settings: dict[str, Any]
) -> None:
    findings = examined(tmp_path, {name: {"state": "absent", "reason": "not here"}}, **settings)
    assert findings[name].state == "FAIL"


def test_card_without_an_active_source_is_reported(tmp_path: Path) -> None:
    card = "sys/bus/pci/devices/0000:3b:00.0"
    plant(
        tmp_path,
        {f"{card}/class": "0x030200\n", f"{card}/vendor": "0x10de\n", f"{card}/device": "0x2330\n"},
    )
    absent = {"nvidia": {"state": "absent", "reason": "/dev/nvidiactl: Permission denied"}}
    finding = examined(tmp_path, absent)["NVIDIA cards"]
    assert finding.state == "PARTIAL"
    assert "0000:3b:00.0 (no driver)" in finding.text
    assert "read access" in finding.remedy
    assert "NVIDIA cards" not in examined(tmp_path, {"nvidia": {"state": "on"}}, {"nvidia": 9})
