"""`ArtifactStore`: the tables of artifacts together."""

from __future__ import annotations

from runvitals.server.artifacts.storage.collections import CollectionTable
from runvitals.server.artifacts.storage.dependents import DependentTable
from runvitals.server.artifacts.storage.entries import ContentTable, EntryTable
from runvitals.server.artifacts.storage.lineage import LineageTable
from runvitals.server.artifacts.storage.lineage_graph import LineageGraphTable
from runvitals.server.artifacts.storage.links import LinkTable
from runvitals.server.artifacts.storage.logged_items import LoggedItemTable
from runvitals.server.artifacts.storage.versions import VersionTable
from runvitals.server.database.database import Database

_KEPT_MS = 7 * 86_400_000
"""Drafts that nobody completes, and contents that no version has, are removed after this time."""


class ArtifactStore:
    """Versions of files that runs make and use: `MetadataStore.artifacts`. Thread-safe.

    Attributes:
        collections, versions, entries, contents, lineage, lineage_graph, logged_items, dependents, links: the
            tables.
    """

    def __init__(self, database: Database) -> None:
        self.collections = CollectionTable(database)
        self.versions = VersionTable(database)
        self.entries = EntryTable(database)
        self.contents = ContentTable(database)
        self.lineage = LineageTable(database)
        self.lineage_graph = LineageGraphTable(database)
        self.logged_items = LoggedItemTable(database)
        self.dependents = DependentTable(database)
        self.links = LinkTable(database)

    def remove_expired(self, now_ms: int) -> int:
        """Delete expired versions, abandoned drafts and unused contents; return the number of versions."""
        removed = self.versions.delete_expired(now_ms, now_ms - _KEPT_MS)
        self.contents.forget_unused(now_ms - _KEPT_MS)
        return removed
