"""Counts downloads of versions: all files that one account fetches within an hour are one download."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from runvitals.model.durations import HOUR_MS

if TYPE_CHECKING:
    from runvitals.server.access.requester import Requester
    from runvitals.server.metadata_store import MetadataStore

_COUNTED: Final[LRUCache[Hashable, None]] = LRUCache(10_000)
_LOCK: Final = threading.Lock()


def count_download(store: MetadataStore, requester: Requester, membership_id: int, now_ms: int) -> None:
    """Count that somebody fetches a file of a version, unless they did within the hour.

    Servers that share a database each count for themselves.
    """
    key = id(store), requester.client, membership_id, now_ms // HOUR_MS
    with _LOCK:
        if key in _COUNTED:
            return
        _COUNTED[key] = None
    store.model_versions.count_download(membership_id)
