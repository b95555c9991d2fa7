"""The probe for Neuron devices: a driver or a program suffices."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.trainium.probe import probe
from tests.isolated import printed
from tests.monitoring.collectors.trainium import machines
from tests.monitoring.collectors.trees import plant


def test_no_device(tmp_path: Path, programs: Path) -> None:
    with pytest.raises(Absent, match=r"no /dev/neuron\*.*no neuron-monitor is on PATH"):
        probe(Scope(host_root=str(tmp_path)))


def test_a_device_node_suffices(tmp_path: Path, programs: Path) -> None:
    collector = probe(plant(tmp_path, {"dev/neuron0": ""}))
    assert collector.name == "trainium"
    assert not collector.pending


def test_other_device_nodes_are_ignored(tmp_path: Path, programs: Path) -> None:
    with pytest.raises(Absent):
        probe(plant(tmp_path, {"dev/neuronal": "", "dev/null": ""}))


def test_the_program_in_its_own_folder(tmp_path: Path, programs: Path) -> None:
    """Under sudo, systemd and in containers it is not on PATH."""
    machines.install(tmp_path / "opt/aws/neuron/bin", "neuron-monitor", "exec sleep 60")
    collector = probe(Scope(host_root=str(tmp_path)))
    assert collector.pending
    collector.close()


def test_without_devices_the_collector_is_not_imported(tmp_path: Path, programs: Path) -> None:
    script = (
        "from runvitals.monitoring.collectors.base import Absent, Scope\n"
        "from runvitals.monitoring.collectors.trainium import probe\n"
        f"try: probe.probe(Scope(host_root={str(tmp_path)!r}))\n"
        "except Absent: print(sorted(name for name in sys.modules if 'trainium' in name))\n"
    )
    assert printed(script).strip() == str(
        ["runvitals.monitoring.collectors.trainium" + name for name in ("", ".locations", ".probe")]
    )
