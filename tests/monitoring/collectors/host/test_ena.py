"""AWS ENA's allowance counters, read from a fake card."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.host.ena import SIOCETHTOOL, Ena, EnaStatistics, probe
from tests.monitoring.collectors.trees import BARE_VM, plant, sample

COUNTS = {
    "tx_timeout": 1,
    "bw_in_allowance_exceeded": 20,
    "bw_out_allowance_exceeded": 30,
    "pps_allowance_exceeded": 40,
    "conntrack_allowance_exceeded": 50,
    "linklocal_allowance_exceeded": 60,
    "queue_0_tx_cnt": 2**63,
}


class Card:
    """A fake driver for the three ethtool requests, which fills the buffers as the kernel does."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts
        self.detached = False

    def __call__(self, fd: int, request: int, ifreq: bytes) -> int:
        assert request == SIOCETHTOOL
        name, address = struct.unpack("16sP16x", ifreq)
        assert name.rstrip(b"\0") == b"eth0"
        if self.detached:
            raise OSError(errno.ENODEV, "No such device")
        command, second, third = struct.unpack("=III", ctypes.string_at(address, 12))
        count = len(self.counts)
        if command == 0x03:
            ctypes.memmove(address + 180, struct.pack("=I", count), 4)  # n_stats of struct ethtool_drvinfo
        elif command == 0x1B:
            assert (second, third) == (1, count)
            names = b"".join(name.encode().ljust(32, b"\0") for name in self.counts)
            ctypes.memmove(address + 12, names, len(names))
        elif command == 0x1D:
            assert second == count
            values = struct.pack(f"={count}Q", *self.counts.values())
            ctypes.memmove(address + 8, values, len(values))
        else:
            raise AssertionError(f"unknown request {command:#x}")
        return 0


def test_allowance_counters() -> None:
    assert sample(Ena(["eth0"], Card(COUNTS)), 1.0) == {
        "network.ena.eth0.bwInExceeded": 20.0,
        "network.ena.eth0.bwOutExceeded": 30.0,
        "network.ena.eth0.ppsExceeded": 40.0,
        "network.ena.eth0.conntrackExceeded": 50.0,
        "network.ena.eth0.linklocalExceeded": 60.0,
    }


def test_a_detached_card_has_no_readings() -> None:
    card = Card(COUNTS)
    ena = Ena(["eth0"], card)
    card.detached = True
    assert sample(ena, 1.0) == {}


def test_an_old_driver_is_absent() -> None:
    ena = Ena(["eth0"], Card({"tx_timeout": 1}))
    assert ena.absent == {"network.ena.eth0": "the driver is too old to count packets above the allowance"}
    assert sample(ena, 1.0) == {}


def test_only_interfaces_with_the_driver_ena_are_read(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="no network interface uses the driver ena"):
        probe(
            plant(
                tmp_path, BARE_VM | {"sys/class/net/eth0/device/driver": "-> ../../../bus/virtio/virtio_net"}
            )
        )


def test_the_layout_of_the_requests_with_a_driver_of_this_machine() -> None:
    # Any driver with statistics proves the layout of the requests: there are as many names as values.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe_socket:
        for nic in sorted(os.listdir("/sys/class/net")):
            try:
                statistics = EnaStatistics(nic, probe_socket.fileno(), fcntl.ioctl)
            except OSError:  # no statistics
                continue
            values = statistics.read()
            if values:
                assert all(value >= 0 for value in values)
                return
    pytest.skip("this machine has no interface with statistics")


def test_this_machine() -> None:
    try:
        ena = probe(Scope())
    except Absent as absent:
        assert "ena" in str(absent)  # noqa: PT017 -- not on AWS
        return
    assert all(value >= 0.0 for value in sample(ena, 1.0).values())
