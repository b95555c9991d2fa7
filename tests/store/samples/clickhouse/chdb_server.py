"""chDB behind the part of ClickHouse's HTTP interface that the store uses: PORT FOLDER.

It runs one statement at a time. Data of an INSERT is passed in a file.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from chdb.session import Session  # type: ignore[import-not-found]

session: Session
lock = threading.Lock()
_INSERT = re.compile(r"INSERT INTO (\w+) \((.*)\) FORMAT RowBinary$")
_OWN = {"database", "query", "wait_end_of_query"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(200, b"Ok.\n")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        parameters = dict(parse_qsl(urlsplit(self.path).query))
        try:
            with lock:
                data = run(parameters, body)
        except RuntimeError as error:
            self._answer(500, str(error).encode())
        else:
            self._answer(200, data)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *parts: object) -> None:
        pass


def run(parameters: dict[str, str], body: bytes) -> bytes:
    session.query(f"USE {parameters['database']}")
    settings = ", ".join(f"{name} = {value}" for name, value in parameters.items() if name not in _OWN)
    insert = _INSERT.match(parameters.get("query", ""))
    if insert is None:
        sql = parameters.get("query") or body.decode()
        output = "RowBinary" if sql.endswith("FORMAT RowBinary") else "TabSeparated"
        sql = sql.removesuffix(" FORMAT RowBinary")
        if sql.startswith("SELECT") and settings:
            sql += f" SETTINGS {settings}"
        return bytes(session.query(sql, output).bytes())
    table, names = insert.groups()
    with tempfile.NamedTemporaryFile(dir=sys.argv[2]) as file:
        file.write(body)
        file.flush()
        types = {
            line.split("\t")[0]: line.split("\t")[1]
            for line in str(session.query(f"DESCRIBE {table}", "TabSeparated")).splitlines()
        }
        columns = ", ".join(f"{name} {types[name]}" for name in names.split(", "))
        session.query(
            f"INSERT INTO {table} ({names}) SELECT * FROM file('{file.name}', 'RowBinary', '{columns}') "
            f"SETTINGS {settings}, max_block_size = 100000000, min_insert_block_size_rows = 100000000"
        )
    return b""


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    session = Session(sys.argv[2])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
