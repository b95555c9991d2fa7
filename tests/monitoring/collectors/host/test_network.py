"""Traffic of the network interfaces, each byte counted once."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.host.network import probe, retransmitted_segments
from tests.monitoring.collectors import trees
from tests.monitoring.collectors.trees import BARE_VM, net_dev, plant, put, sample, without


def interfaces(readings: dict[str, float]) -> set[str]:
    """The interfaces with their own keys."""
    return {key.split(".")[1] for key in readings if key.count(".") == 2}


def test_one_card(tmp_path: Path) -> None:
    assert sample(probe(plant(tmp_path, BARE_VM)), 1.0) == {
        "network.recv": 1000.0,
        "network.sent": 300.0,
        "network.eth0.recv": 1000.0,
        "network.eth0.sent": 300.0,
        "network.eth0.errors": 1.0 + 3.0,
        "network.eth0.drops": 2.0 + 4.0,
        "network.tcpRetransmits": 17.0,
    }


@pytest.mark.parametrize(
    ("tree", "received", "shown"),
    [
        pytest.param(
            trees.BOND, 3000 + 40, {"bond0", "eth0", "eth1", "eth2"}, id="a bond counts, its members do not"
        ),
        pytest.param(trees.DOCKER, 1000, {"eth0"}, id="containers' traffic passes the card"),
        pytest.param(trees.CONTAINER, 1000, {"eth0"}, id="in a container the veth is all there is"),
    ],
)
def test_every_byte_is_counted_once(
    tmp_path: Path, tree: trees.Tree, received: float, shown: set[str]
) -> None:
    readings = sample(probe(plant(tmp_path, tree)), 1.0)
    assert readings["network.recv"] == received
    assert interfaces(readings) == shown


def test_a_card_and_its_virtual_function_are_counted_once(tmp_path: Path) -> None:
    # Azure: the accelerated path is a separate card, a member of the synthetic one, which counts the same
    # traffic.
    tree = BARE_VM | {
        "proc/net/dev": net_dev(lo=(1, 1), eth0=(1000, 100), enP1s1=(900, 90)),
        "sys/class/net/enP1s1/device/": "",
        "sys/class/net/enP1s1/master": "-> ../eth0",
    }
    assert sample(probe(plant(tmp_path, tree)), 1.0)["network.recv"] == 1000.0


def test_a_vlan_is_counted_with_its_card(tmp_path: Path) -> None:
    tree = BARE_VM | {"proc/net/dev": net_dev(eth0=(1000, 100), vlan7=(600, 60)), "sys/class/net/vlan7/": ""}
    readings = sample(probe(plant(tmp_path, tree)), 1.0)
    assert (readings["network.recv"], interfaces(readings)) == (1000.0, {"eth0"})


def test_docker_in_a_container_without_a_card(tmp_path: Path) -> None:
    tree = trees.CONTAINER | {
        "proc/net/dev": net_dev(eth0=(1000, 100), docker0=(70, 7), veth1=(70, 7)),
        "sys/class/net/docker0/bridge/": "",
        "sys/class/net/veth1/master": "-> ../docker0",
    }
    assert sample(probe(plant(tmp_path, tree)), 1.0)["network.recv"] == 1000.0


def test_interfaces_are_recognized_by_name_without_sysfs(tmp_path: Path) -> None:
    tree = {"proc/net/dev": net_dev(lo=(1, 1), eth0=(1000, 100), docker0=(70, 7), veth9=(70, 7))}
    assert sample(probe(plant(tmp_path, tree)), 1.0)["network.recv"] == 1000.0


def test_names_may_contain_colons_and_any_bytes(tmp_path: Path) -> None:
    scope = plant(tmp_path, {"proc/net/dev": ""})
    table = net_dev(lo=(1, 1), eth0=(1000, 100), venet0=(70, 7)).encode()
    table += b"eth0:1:     40 9 0 0 0 0 0 0        4 9 0 0 0 0 0 0\n"
    table += b"w\xff0:18446744073709551615 9 0 0 0 0 0 0        6 9 0 0 0 0 0 0\n"
    table += b"venet0:0:  70 9 0 0 0 0 0 0        7 9 0 0 0 0 0 0\n"
    (tmp_path / "proc/net/dev").write_bytes(table)
    readings = sample(probe(scope), 1.0)
    assert readings["network.sent"] == 100.0 + 7.0 + 6.0, "an alias is counted with its interface"
    assert readings["network.w\ufffd0.recv"] == float(2**64 - 1)


def test_an_interface_added_later_does_not_make_the_sum_jump(tmp_path: Path) -> None:
    network = probe(plant(tmp_path, BARE_VM))
    assert sample(network, 0.0)["network.recv"] == 1000.0
    put(tmp_path, "sys/class/net/eth1/device/", "")
    put(tmp_path, "proc/net/dev", net_dev(eth0=(1100, 310), eth1=(50_000, 60_000)))
    readings = sample(network, 1.0)
    assert readings["network.eth1.recv"] == 50_000.0
    assert (readings["network.recv"], readings["network.sent"]) == (1100.0, 310.0)
    put(tmp_path, "proc/net/dev", net_dev(eth0=(1100, 310), eth1=(50_007, 60_009)))
    readings = sample(network, 2.0)
    assert (readings["network.recv"], readings["network.sent"]) == (1107.0, 319.0)


def test_a_removed_interface_leaves_its_traffic_in_the_sum(tmp_path: Path) -> None:
    network = probe(plant(tmp_path, trees.BOND))
    assert sample(network, 0.0)["network.recv"] == 3040.0
    put(tmp_path, "proc/net/dev", net_dev(lo=(9, 9), eth0=(1000, 100), eth1=(2000, 200), bond0=(3010, 300)))
    readings = sample(network, 1.0)
    assert readings["network.recv"] == 3050.0
    assert interfaces(readings) == {"bond0", "eth0", "eth1"}


def test_a_replaced_interface_is_noticed(tmp_path: Path) -> None:
    network = probe(plant(tmp_path, BARE_VM))
    sample(network, 0.0)
    put(tmp_path, "sys/class/net/eth7/device/", "")
    put(tmp_path, "proc/net/dev", net_dev(lo=(500, 500), eth7=(5, 5)))
    readings = sample(network, 1.0)
    assert (interfaces(readings), readings["network.recv"]) == ({"eth7"}, 1000.0)


def test_another_root_has_the_network_of_its_first_process(tmp_path: Path) -> None:
    # /host/proc/net is a link into the reader's own namespace, so it would show the container's.
    tree = BARE_VM | {"proc/1/net/dev": net_dev(eth0=(77, 7)), "proc/1/net/snmp": trees.SNMP}
    assert sample(probe(plant(tmp_path, tree)), 1.0)["network.recv"] == 77.0


def test_retransmissions_are_read_every_few_seconds(tmp_path: Path) -> None:
    network = probe(plant(tmp_path, BARE_VM))
    seen = ["network.tcpRetransmits" in sample(network, float(second)) for second in range(7)]
    assert seen == [True, False, False, False, False, True, False]


def test_retransmitted_segments() -> None:
    assert retransmitted_segments(trees.SNMP.encode()) == 17
    assert retransmitted_segments(b"Ip: Forwarding\nIp: 1\n") is None
    assert retransmitted_segments(b"Ip: 1\nTcp: RtoMin\nTcp: 1\n") is None


def test_without_snmp_there_are_no_retransmissions(tmp_path: Path) -> None:
    readings = sample(probe(plant(tmp_path, without(BARE_VM, ["proc/net/snmp"]))), 1.0)
    assert "network.tcpRetransmits" not in readings
    assert readings["network.recv"] == 1000.0


def test_absent(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="net/dev cannot be read"):
        probe(plant(tmp_path, {}))


def test_this_machine() -> None:
    readings = sample(probe(Scope()), 1.0)
    assert readings["network.recv"] >= 0.0
    assert "network.lo.recv" not in readings


def test_without_tcp_counters_there_is_a_reason(tmp_path: Path) -> None:
    network = probe(plant(tmp_path, without(BARE_VM, ["proc/net/snmp"])))
    assert "network.tcpRetransmits" not in sample(network, 1.0)
    assert set(network.absent) == {"network.tcpRetransmits"}


def test_an_interface_that_is_gone_has_a_reason(tmp_path: Path) -> None:
    both = {"proc/net/dev": net_dev(eth0=(1000, 300), eth1=(5, 5)), "sys/class/net/eth1/device/": ""}
    network = probe(plant(tmp_path, BARE_VM | both))
    assert "network.eth1.sent" in sample(network, 1.0)
    put(tmp_path, "proc/net/dev", net_dev(eth0=(1000, 300)))
    assert "network.eth1.sent" not in sample(network, 2.0)
    assert network.absent == {"network.eth1": "the interface is gone"}
    put(tmp_path, "proc/net/dev", net_dev(eth0=(1000, 300), eth1=(5, 5)))
    sample(network, 3.0)
    assert network.absent == {}
