"""Everything that the start of a server imports and builds once in a process; see `tests/forked_command.py`.

The process that imports this is forked, so no thread may be left.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import uvicorn.protocols.http.httptools_impl  # noqa: F401
import uvloop  # noqa: F401

from runvitals.server.build import build_server
from runvitals.server.metadata_store import open_metadata_store
from runvitals.store.samples.sqlite import SqliteChunks

with (
    tempfile.TemporaryDirectory() as _folder,
    SqliteChunks(str(Path(_folder, "store"))) as _store,
    open_metadata_store(str(Path(_folder, "catalogue.db"))) as _metadata_store,
):
    build_server(_store, _metadata_store).close()
