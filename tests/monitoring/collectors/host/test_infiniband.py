"""InfiniBand, RoCE and EFA counters."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.host.infiniband import probe, usable_devices
from tests.monitoring.collectors.trees import BARE_VM, INFINIBAND, plant, ports, put, sample


def test_data_counters_are_in_units_of_four_bytes(tmp_path: Path) -> None:
    readings = sample(probe(plant(tmp_path, INFINIBAND)), 1.0)
    assert {key: value for key, value in readings.items() if "mlx5_0" in key} == {
        "network.ib.mlx5_0.1.xmitBytes": 2880761508848.0 * 4,
        "network.ib.mlx5_0.1.recvBytes": 18126345378.0 * 4,
        "network.ib.mlx5_0.1.xmitWait": 4846.0,
        "network.ib.mlx5_0.1.errors": 3.0 + 2.0,
    }


def test_64_bit_counters_are_preferred_and_saturated_ones_left_out(tmp_path: Path) -> None:
    readings = sample(probe(plant(tmp_path, INFINIBAND)), 1.0)
    assert {key: value for key, value in readings.items() if "mlx4_0" in key or "mthca0" in key} == {
        "network.ib.mlx4_0.1.xmitBytes": 5000000000.0 * 4,
        "network.ib.mlx4_0.1.recvBytes": 4631917.0 * 4,
        "network.ib.mthca0.1.recvBytes": 4000.0,
    }


def test_a_64_bit_counter_may_exceed_32_bits(tmp_path: Path) -> None:
    tree = BARE_VM | ports("mlx5_0", 1, counters={"port_rcv_data": "4294967296"})
    infiniband = probe(plant(tmp_path, tree))
    assert sample(infiniband, 1.0) == {"network.ib.mlx5_0.1.recvBytes": 4.0 * 2**32}


def test_efa_counters_are_bytes(tmp_path: Path) -> None:
    readings = sample(probe(plant(tmp_path, INFINIBAND)), 1.0)
    prefix = "network.efa.rdmap16s27.1"
    assert {key: value for key, value in readings.items() if "rdmap" in key} == {
        f"{prefix}.sent": 1000.0,
        f"{prefix}.recv": 2000.0,
        f"{prefix}.rdmaRead": 3000.0,
        f"{prefix}.rdmaWrite": 4000.0,
        f"{prefix}.retransBytes": 50.0,
        f"{prefix}.drops": 6.0,
    }


def test_efa_is_recognized_by_its_driver(tmp_path: Path) -> None:
    tree = BARE_VM | ports("my_card", 1, hw_counters={"tx_bytes": "5"})
    tree["sys/bus/pci/drivers/efa/"] = ""
    tree["sys/class/infiniband/my_card/device/driver"] = "-> ../../../../bus/pci/drivers/efa"
    assert sample(probe(plant(tmp_path, tree)), 1.0) == {"network.efa.my_card.1.sent": 5.0}


def test_a_port_without_counters_is_absent_with_a_reason(tmp_path: Path) -> None:
    infiniband = probe(plant(tmp_path, INFINIBAND))
    assert infiniband.absent == {"network.ib.i40iw0.1": "no counters"}
    assert not [key for key in sample(infiniband, 1.0) if "i40iw0" in key]


def test_errors_are_read_rarely(tmp_path: Path) -> None:
    infiniband = probe(plant(tmp_path, INFINIBAND))
    with_errors = ["network.ib.mlx5_0.1.errors" in sample(infiniband, float(second)) for second in range(12)]
    assert with_errors == [second in (0, 10) for second in range(12)]
    assert sample(infiniband, 11.5) == {}  # traffic: at most once a second


def test_a_port_that_is_being_reset_has_no_readings(tmp_path: Path) -> None:
    infiniband = probe(plant(tmp_path, INFINIBAND))
    put(tmp_path, "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "N/A\n")
    readings = sample(infiniband, 1.0)
    assert "network.ib.mlx5_0.1.recvBytes" not in readings
    assert "network.ib.mlx5_0.1.xmitBytes" in readings


def test_a_container_uses_only_its_devices(tmp_path: Path) -> None:
    tree = INFINIBAND | {
        "sys/class/infiniband_verbs/uverbs0/ibdev": "mlx5_0\n",
        "sys/class/infiniband_verbs/uverbs1/ibdev": "mlx4_0\n",
        "dev/infiniband/uverbs0": "",
    }
    scope = plant(tmp_path, tree)
    assert usable_devices(scope) == {"mlx5_0"}
    infiniband = probe(scope)
    assert "has no access to its device file" in infiniband.absent["network.ib.mlx4_0"]
    assert {key.split(".")[2] for key in sample(infiniband, 1.0)} == {"mlx5_0"}


def test_all_devices_are_used_without_dev(tmp_path: Path) -> None:
    tree = INFINIBAND | {"sys/class/infiniband_verbs/uverbs0/ibdev": "mlx5_0\n"}
    assert usable_devices(plant(tmp_path, tree)) is None


def test_a_device_that_vanishes_while_being_listed_does_not_affect_the_others(tmp_path: Path) -> None:
    tree = INFINIBAND | {
        "sys/class/infiniband/mlx5_9": "-> ../../devices/gone",
        "sys/class/infiniband_verbs/uverbs0/ibdev": "mlx5_0\n",
        "sys/class/infiniband_verbs/uverbs9": "-> ../../devices/gone",
        "dev/infiniband/uverbs0": "",
        "dev/infiniband/uverbs9": "",
    }
    scope = plant(tmp_path, tree)
    assert usable_devices(scope) == {"mlx5_0"}
    assert "network.ib.mlx5_0.1.recvBytes" in sample(probe(scope), 1.0)
    # Without device files all devices are looked at.
    shutil.rmtree(tmp_path / "dev")
    infiniband = probe(scope)
    assert infiniband.absent["network.ib.mlx5_9"] == "its ports cannot be listed: No such file or directory"
    assert "network.ib.mlx5_0.1.recvBytes" in sample(infiniband, 1.0)


@pytest.mark.skipif(not os.path.exists("/proc/self/oom_score"), reason="only Linux has /proc")
def test_a_device_whose_driver_was_loaded_anew_is_read_again(tmp_path: Path) -> None:
    # The files of a removed device return an error for ever, as those of an ended process do.
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    counters = {
        "port_xmit_data": "7",
        "port_rcv_data": f"-> /proc/{child.pid}/oom_score",
    }
    tree = {f"sys/class/infiniband/mlx5_0/ports/1/counters/{name}": text for name, text in counters.items()}
    infiniband = probe(plant(tmp_path, BARE_VM | tree))
    assert len(sample(infiniband, 1.0)) == 2
    child.communicate(b"\n")
    assert sample(infiniband, 2.0) == {"network.ib.mlx5_0.1.xmitBytes": 28.0}
    port = "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data"
    (tmp_path / port).unlink()
    put(tmp_path, port, "5\n")
    assert sample(infiniband, 3.0)["network.ib.mlx5_0.1.recvBytes"] == 20.0


def test_absent(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="cannot be listed"):
        probe(plant(tmp_path / "none", BARE_VM))
    with pytest.raises(Absent, match="lists no device"):
        probe(plant(tmp_path / "empty", BARE_VM | {"sys/class/infiniband/": ""}))


def test_this_machine() -> None:
    try:
        infiniband = probe(Scope())
    except Absent as absent:
        assert "infiniband" in str(absent)  # noqa: PT017 -- most machines have none
        return
    assert all(value >= 0.0 for value in sample(infiniband, 1.0).values())
