"""Simulates machines by network namespaces: a hub, and nodes with a link to it."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import sys
import threading
from types import TracebackType

import pytest

from tests.patience import PATIENCE_S

HUB_ADDRESS = "10.83.0.1"
_CLONE_NEWNET = 0x40000000


class Network:
    """A hub with the address `HUB_ADDRESS`, and nodes; each is a network namespace.

    Args:
        nodes: their names.

    Example:
        >>> with Network("node1", "node2") as network:
        ...     listener = network.listen()
        ...     agent = subprocess.Popen(network.command("node1", "python", "train.py"))
        ...     network.link("node1", up=False)
    """

    def __init__(self, *nodes: str) -> None:
        self._nodes = nodes
        self._mark = f"rv{os.getpid()}"

    def __enter__(self) -> Network:
        if sys.platform != "linux" or not shutil.which("ip") or not shutil.which("unshare"):
            pytest.skip("network namespaces need Linux, iproute2 and util-linux")
        created = self._ip("netns", "add", self._name("hub"), check=False)
        if created.returncode:
            pytest.skip(f"this machine does not permit network namespaces: {created.stderr.strip()}")
        self._ip("-n", self._name("hub"), "addr", "add", f"{HUB_ADDRESS}/32", "dev", "lo")
        self._ip("-n", self._name("hub"), "link", "set", "lo", "up")
        for number, node in enumerate(self._nodes):
            self._add(node, number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in ("hub", *self._nodes):
            self._ip("netns", "delete", self._name(name), check=False)

    def _add(self, node: str, number: int) -> None:
        here, hub, link = self._name(node), self._name("hub"), f"to{number}"
        self._ip("netns", "add", here)
        self._ip("-n", here, "link", "add", "uplink", "type", "veth", "peer", "name", link, "netns", hub)
        self._ip("-n", hub, "addr", "add", f"10.83.{number + 1}.1/24", "dev", link)
        self._ip("-n", hub, "link", "set", link, "up")
        self._ip("-n", here, "addr", "add", f"10.83.{number + 1}.2/24", "dev", "uplink")
        for device in ("lo", "uplink"):
            self._ip("-n", here, "link", "set", device, "up")
        self._ip("-n", here, "route", "add", "default", "via", f"10.83.{number + 1}.1")

    def _name(self, machine: str) -> str:
        return f"{self._mark}-{machine}"

    def _ip(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["ip", *words], capture_output=True, text=True, timeout=PATIENCE_S, check=check)

    def link(self, node: str, up: bool) -> None:
        """Switch the link of a node on or off, at the hub."""
        number = self._nodes.index(node)
        self._ip("-n", self._name("hub"), "link", "set", f"to{number}", "up" if up else "down")

    def command(self, node: str, *words: str) -> list[str]:
        """A command that runs another command on a node, with a host name that it may change."""
        return ["ip", "netns", "exec", self._name(node), "unshare", "--uts", *words]

    def listen(self) -> socket.socket:
        """A listening socket in the hub's namespace, usable by this process."""
        listeners: list[socket.socket] = []

        def make() -> None:
            # Only this thread enters the namespace, and it ends; the rest of the process does not.
            with open(f"/run/netns/{self._name('hub')}") as namespace:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(namespace.fileno(), _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
                listeners.append(socket.create_server((HUB_ADDRESS, 0)))

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        return listeners[0]
