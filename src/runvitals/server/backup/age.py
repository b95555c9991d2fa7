"""Whether a backup is one to go back to, before something is changed."""

from __future__ import annotations

import time
from typing import Final

from runvitals.server.backup.manifest import read_manifest
from runvitals.server.database.database import Database
from runvitals.server.database.issued_ids import IssuedIds
from runvitals.server.database.migration import present

_RECENT_HOURS: Final = 24.0


def check_age(path: str, database: Database) -> tuple[bool, str]:
    """Return whether a backup is one of today of a metadata store and its samples, and a sentence about it.

    Raises:
        StoreError: it is no complete backup.
    """
    manifest, pairing = read_manifest(path), IssuedIds(database).pairing()
    if pairing is None or manifest.store_id != pairing[0]:
        return False, f"{path} is a backup of another server: of {manifest.samples} and {manifest.metadata}"
    if manifest.revision != (revision := present(database)):
        return False, f"{path} has tables of revision {manifest.revision}, not {revision}: make a new backup"
    hours = (time.time() * 1000 - manifest.begun_ms) / 3_600_000
    if hours > _RECENT_HOURS:
        return False, f"{path} is {hours:,.0f} hours old, more than {_RECENT_HOURS:.0f}: make a new backup"
    return True, f"{path} is {hours:.1f} hours old; `runvitals restore --check` reads it"
