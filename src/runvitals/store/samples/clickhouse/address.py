"""The address of a ClickHouse database: `clickhouse://user@host:8123/database`, `clickhouses://` with TLS.

`?cluster=NAME` at the end: its tables are replicated, and spread over the nodes of that cluster.

The password is not part of it, because other users of the machine see the arguments of processes. It is in
the environment: `CLICKHOUSE_PASSWORD`, or `CLICKHOUSE_PASSWORD_FILE` with the path of a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

_PORTS = {"clickhouse": 8123, "clickhouses": 8443}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_CLUSTER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class ClickHouseAddress:
    """The parts of the address, and the password."""

    host: str
    port: int
    database: str = "default"
    user: str = "default"
    password: str = field(default="", repr=False)
    tls: bool = False
    cluster: str | None = None

    def __str__(self) -> str:
        """The address without the password."""
        scheme = "clickhouses" if self.tls else "clickhouse"
        host = f"[{self.host}]" if ":" in self.host else self.host
        cluster = f"?cluster={self.cluster}" if self.cluster else ""
        return f"{scheme}://{self.user}@{host}:{self.port}/{self.database}{cluster}"


def parse_address(address: str, environment: Mapping[str, str] = os.environ) -> ClickHouseAddress:
    """Read the address of a ClickHouse server.

    Args:
        environment: contains the password, if there is one.

    Raises:
        ValueError: what is wrong, and what is expected; never with the password.
        OSError: the file of the password cannot be read.
    """
    parts = urlsplit(address)
    if parts.scheme not in _PORTS:
        raise ValueError("a ClickHouse address must begin with clickhouse:// or clickhouses://")
    if parts.password is not None:
        raise ValueError(
            "the address of ClickHouse must not contain a password, which other users of this machine could "
            "see: put it into CLICKHOUSE_PASSWORD, or into a file named by CLICKHOUSE_PASSWORD_FILE"
        )
    try:
        port = parts.port or _PORTS[parts.scheme]
    except ValueError:
        raise ValueError(f"invalid port in the address of ClickHouse {parts.hostname}") from None
    if not parts.hostname:
        raise ValueError("the address of ClickHouse names no host: clickhouse://user@host:8123/database")
    database = unquote(parts.path.strip("/")) or "default"
    if not _NAME.fullmatch(database):
        raise ValueError(f"invalid database {database!r}: expected letters, digits and underscores")
    return ClickHouseAddress(
        parts.hostname,
        port,
        database,
        unquote(parts.username or "default"),
        _password(environment),
        parts.scheme == "clickhouses",
        _cluster(parts.query),
    )


def _cluster(query: str) -> str | None:
    """Return the cluster that the part after the question mark names."""
    cluster = None
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name != "cluster":
            raise ValueError(f"the address of ClickHouse has one option, cluster: {name!r} is unknown")
        if not _CLUSTER.fullmatch(value):
            raise ValueError(
                f"invalid cluster {value!r}: expected letters, digits, underscores, dots and hyphens"
            )
        cluster = value
    return cluster


def _password(environment: Mapping[str, str]) -> str:
    path = environment.get("CLICKHOUSE_PASSWORD_FILE")
    if path is None:
        return environment.get("CLICKHOUSE_PASSWORD", "")
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().rstrip("\r\n")
    except OSError as error:
        raise OSError(f"could not read the password of ClickHouse from {path}: {error.strerror}") from None
