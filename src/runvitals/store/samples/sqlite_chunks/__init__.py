"""The store that needs no server: SQLite files of compressed chunks."""

from runvitals.store.samples.sqlite_chunks.settings import Settings
from runvitals.store.samples.sqlite_chunks.store import SqliteChunks

__all__ = ["Settings", "SqliteChunks"]
