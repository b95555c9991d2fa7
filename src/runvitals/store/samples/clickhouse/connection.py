"""Requests to ClickHouse by its HTTP interface: SQL in, rows in the format RowBinary out.

Rows are structured arrays of NumPy, whose bytes are the rows of RowBinary, so that nothing is converted. No
client library is used: this is all that the store needs of one, and it works with servers from 18.16 on.
"""

from __future__ import annotations

import http.client
import re
import ssl
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import numpy as np
from numpy.typing import DTypeLike, NDArray

from runvitals.base import deadline
from runvitals.store.samples.clickhouse.address import ClickHouseAddress
from runvitals.store.samples.clickhouse.layout import Layout
from runvitals.store.samples.interface import StoreError, StoreUnavailable

CONNECT_S = 10.0
PROMPT_S = 5.0
"""Timeout of requests that take a moment unless ClickHouse hangs."""
_IDLE_CONNECTIONS = 16
_SQL_BYTES = 256 << 20
"""Longest text of a query: thousands of ids of runs may be listed."""
_MESSAGE_CHARACTERS = 400
_CODE = re.compile(r"Code: (\d+)")
_TIMEOUT_EXCEEDED = 159
# Unknown table, column, setting or function, syntax, access: another attempt fails as well.
_PERMANENT = {10, 16, 46, 47, 60, 62, 81, 115, 164, 192, 193, 194, 497, 516}

Rows = NDArray[Any]


class ClickHouse:
    """Connections to a database, for any number of threads.

    Args:
        timeout_s: how long to wait for the response to a request, unless the thread has a deadline.

    Raises:
        StoreUnavailable: from all methods: the server cannot be reached, or cannot do it at present.
        StoreError: from all methods: it rejects the request.

    Example:
        >>> clickhouse = ClickHouse(parse_address("clickhouse://127.0.0.1:8123"))
        >>> clickhouse.select("SELECT number AS n FROM system.numbers LIMIT 2", [("n", "<u8")])["n"].tolist()
        [0, 1]
    """

    def __init__(self, address: ClickHouseAddress, timeout_s: float = 60.0) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._tls = ssl.create_default_context() if address.tls else None
        self._idle: list[http.client.HTTPConnection] = []
        self._closed = False
        self._lock = threading.Lock()
        self.layout = Layout(address.database, address.cluster)
        self.settings: dict[str, str] = {}
        """Settings of every SELECT: those of `schema.Features`."""
        self.withheld: str | None = None
        """Why no request is sent at present: it is not known yet whether the tables may be used."""

    def select(self, sql: str, dtype: DTypeLike, timeout_s: float | None = None) -> Rows:
        """Return the rows of a query, whose columns must have the types of `dtype`.

        Args:
            timeout_s: how long to wait; None: as long as for any other request.
        """
        # The response begins when the query has succeeded: otherwise an error would be among the rows.
        settings = {"wait_end_of_query": "1", "max_query_size": str(_SQL_BYTES), **self.settings}
        left_s = deadline.left_s()
        if left_s is not None:
            settings["max_execution_time"] = str(int(left_s) + 1)
        data = self._request(settings, f"{sql} FORMAT RowBinary".encode(), timeout_s or left_s)
        return np.frombuffer(data, np.dtype(dtype))

    def command(
        self, sql: str, settings: Mapping[str, str] | None = None, timeout_s: float | None = None
    ) -> str:
        """Run a statement that returns nothing, or a text."""
        settings = {"max_query_size": str(_SQL_BYTES), **(settings or {})}
        data = self._request(settings, sql.encode(), timeout_s or deadline.left_s())
        return data.decode("utf-8", "replace").rstrip("\n")

    def insert(
        self,
        table: str,
        rows: Rows,
        settings: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Insert rows. When this returns they are stored; rows of one partition all, or none of them."""
        names = ", ".join(rows.dtype.names or ())
        sql = f"INSERT INTO {table} ({names}) FORMAT RowBinary"
        # One block: blocks are inserted one after the other, and the server may end between two of them.
        block = {"max_insert_block_size": str(max(len(rows), 1 << 20))}
        self._request({"query": sql, **block, **(settings or {})}, rows.tobytes(), timeout_s)

    def close(self) -> None:
        """Close idle connections now, and the others when their requests have been answered."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _request(self, parameters: Mapping[str, str], body: bytes, left_s: float | None) -> bytes:
        if self.withheld is not None:
            raise StoreUnavailable(self.withheld)
        path = "/?" + urlencode({"database": self.address.database, **self.layout.settings, **parameters})
        headers = {"X-ClickHouse-User": self.address.user, "X-ClickHouse-Key": self.address.password}
        try:
            status, data = self._exchange(path, body, headers, left_s or self._timeout_s)
        except (OSError, http.client.HTTPException) as error:
            deadline.check()
            reason = str(error) or type(error).__name__
            raise StoreUnavailable(f"ClickHouse at {self.address} cannot be reached: {reason}") from error
        if status == 200:
            return data
        raise self._error(status, data.decode("utf-8", "replace"))

    def _exchange(
        self, path: str, body: bytes, headers: dict[str, str], timeout_s: float
    ) -> tuple[int, bytes]:
        connection = self._take()
        if connection is not None:
            try:
                return self._send(connection, path, body, headers, timeout_s)
            except (http.client.RemoteDisconnected, ConnectionError):
                pass  # closed by the server while it was idle
        return self._send(self._connect(min(timeout_s, CONNECT_S)), path, body, headers, timeout_s)

    def _send(
        self,
        connection: http.client.HTTPConnection,
        path: str,
        body: bytes,
        headers: dict[str, str],
        timeout_s: float,
    ) -> tuple[int, bytes]:
        try:
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(timeout_s)
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            status, data = response.status, response.read()
        except BaseException:
            connection.close()
            raise
        self._keep(connection)
        return status, data

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        address = self.address
        if self._tls is not None:
            return http.client.HTTPSConnection(
                address.host, address.port, timeout=timeout_s, context=self._tls
            )
        return http.client.HTTPConnection(address.host, address.port, timeout=timeout_s)

    def _take(self) -> http.client.HTTPConnection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def _error(self, status: int, text: str) -> StoreError:
        match = _CODE.search(text)
        code = int(match.group(1)) if match else 0
        if code == _TIMEOUT_EXCEEDED:
            deadline.check()
        message = text.split(", e.what()")[0].strip()[:_MESSAGE_CHARACTERS] or f"status {status}"
        kind = StoreError if code in _PERMANENT else StoreUnavailable
        return kind(f"ClickHouse at {self.address}: {message}")
