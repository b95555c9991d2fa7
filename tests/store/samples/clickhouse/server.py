"""A private ClickHouse server: Debian's package, or chDB (the engine of a current version) behind HTTP.

Debian's is of 2018: it tests the protocol, and that nothing newer is needed. Installing it takes 9 s; chDB
takes 37 s, 22 s of CPU and 0.6 GB (measured on two cores), so that only `scripts/test-chdb` uses it. The
store uses no client library: clickhouse-connect cannot talk to Debian's version, because it asks for a column
that the old `system.settings` lacks.
"""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

from runvitals.store.samples.clickhouse import ClickHouseAddress, ClickHouseSettings, ClickHouseStore
from runvitals.store.samples.clickhouse.connection import ClickHouse
from tests.patience import eventually

DEBIAN = "/usr/sbin/clickhouse-server"
CHDB = str(Path(__file__).with_name("chdb_server.py"))
PROMPT = ClickHouseSettings(gather_s=0.0, retry_s=0.05)
"""For tests that append one batch after the other."""
_CONFIG = """<yandex>
<logger><level>warning</level><console>1</console></logger>
<http_port>{port}</http_port><tcp_port>{tcp_port}</tcp_port><listen_host>127.0.0.1</listen_host>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><mark_cache_size>8388608</mark_cache_size>
<users_config>{folder}/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
{more}</yandex>"""
_USERS = """<yandex>
<users><default><password>{password}</password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users>
<profiles><default/></profiles><quotas><default/></quotas>
</yandex>"""


def installed(kind: str) -> bool:
    """Whether a kind of server, "debian" or "chdb", is installed."""
    if kind == "debian":
        return os.path.exists(DEBIAN)
    return subprocess.run([chdb_python(), "-c", "import chdb"], capture_output=True).returncode == 0


def chdb_python() -> str:
    """The interpreter that has chDB: that of this process, or `RUNVITALS_CHDB_PYTHON`."""
    return os.environ.get("RUNVITALS_CHDB_PYTHON", sys.executable)


class ClickHouseServer:
    """A server in a folder. It can be killed and started again on the same port.

    Args:
        ports: for HTTP and the native protocol; None: any that are free.
        more: further elements of its configuration.
    """

    def __init__(
        self,
        folder: Path,
        kind: str = "debian",
        password: str = "",
        ports: tuple[int, int] | None = None,
        more: str = "",
    ) -> None:
        self.folder = folder
        self.kind = kind
        self.password = password
        self.port, tcp_port = ports or free_ports(2)
        (folder / "data").mkdir(parents=True)
        fields = {"port": self.port, "tcp_port": tcp_port, "folder": folder, "password": password}
        (folder / "config.xml").write_text(_CONFIG.format(more=more, **fields))
        (folder / "users.xml").write_text(_USERS.format(**fields))
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        command = [DEBIAN, f"--config-file={self.folder}/config.xml"]
        if self.kind == "chdb":
            command = [chdb_python(), CHDB, str(self.port), f"{self.folder}/data"]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        eventually(self._answers)

    def start_if_ended(self) -> None:
        """A server that has ended by itself, as once beside other work, fails the test that used it: it is
        started again for the others, and its last words are shown.
        """
        if self.process is not None and self.process.poll() is not None:
            print((self.folder / "log").read_text()[-2000:])
            self.start()

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=4)
        try:
            connection.request("GET", "/ping")
            return connection.getresponse().read() == b"Ok.\n"
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def kill(self) -> None:
        """End it as a power failure would, apart from what the kernel has."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGKILL if self.kind == "debian" else signal.SIGTERM)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, number: int) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait()
            self.process = None

    def address(self, database: str = "default") -> ClickHouseAddress:
        return ClickHouseAddress("127.0.0.1", self.port, database, password=self.password)

    def new_database(self, name: str) -> ClickHouseAddress:
        """The address of a new, empty database."""
        self.start_if_ended()
        clickhouse = ClickHouse(self.address())
        clickhouse.command(f"CREATE DATABASE {name}")
        clickhouse.close()
        return self.address(name)


def open_store(
    address: ClickHouseAddress, folder: Path, settings: ClickHouseSettings = PROMPT
) -> ClickHouseStore:
    return ClickHouseStore(address, str(folder), settings)


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
