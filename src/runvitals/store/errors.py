"""The errors of the metadata store. Loads no database library, so that every server can handle them."""

from __future__ import annotations


class MetadataStoreError(Exception):
    """The metadata store cannot be used; the text names the database and what to do."""


class QueryFailed(MetadataStoreError):
    """A read or write failed; the text is the database's."""


class MetadataStoreUnavailable(QueryFailed):
    """A read or write failed for a reason that may pass: a full disk, a locked file, a lost connection."""
