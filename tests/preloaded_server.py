"""Everything that the start of a server and its first requests import and build once in a process; see
`tests/forked_command.py`.

The process that imports this is forked, so no thread may be left.
"""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import uvicorn.protocols.http.httptools_impl  # noqa: F401
import uvloop  # noqa: F401

import runvitals.cli.backup
import runvitals.cli.server
import runvitals.server.background.work  # noqa: F401
from runvitals.server.build import build_server
from runvitals.server.http.router import lazy_routes
from runvitals.server.metadata_store import open_metadata_store
from runvitals.store.samples.sqlite import SqliteChunks

_OF_RUNS = ("/api/v1/ingest", "/api/v1/runs", "/readyz", "/healthz")
"""Beginnings of the paths that nearly all tests send requests to."""

with (
    tempfile.TemporaryDirectory() as _folder,
    SqliteChunks(str(Path(_folder, "store"))) as _store,
    open_metadata_store(str(Path(_folder, "catalogue.db"))) as _metadata_store,
):
    _app = build_server(_store, _metadata_store)
    for _route in lazy_routes(_app.api.routes):
        if _route.path.startswith(_OF_RUNS):
            _ = _route.api_route
    _app.close()

gc.collect()
gc.freeze()  # forks would copy the memory of what their garbage collectors visit
