"""Finds the runs of a data folder that are not completely delivered."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Collection

from runvitals.journal import paths
from runvitals.relay.engine.cursor import Cursor, find_cursors
from runvitals.relay.engine.delivery_lag import has_new_edits
from runvitals.relay.engine.destination_spec import DestinationSpec

# A cursor of another host is taken over if its lock is free and it was not written for this long.
FOREIGN_AGE_S = 900.0


def own_host() -> str:
    """Return this host's name as it appears in writer names."""
    return paths.safe_name(socket.gethostname() or "localhost")


def find_undelivered(
    directory: str, host: str, specs: Collection[DestinationSpec]
) -> dict[str, list[Cursor]]:
    """Return the cursors of runs that are not completely delivered, by destination.

    Includes the runs of this host, and of other hosts whose relay has not written for `FOREIGN_AGE_S`, but
    not those that only `runvitals sync` has tried to deliver.

    Args:
        directory: the data folder.
        host: this host's name.
        specs: destinations whose full text is known. A destination with a secret in its address is left out
            unless it is among them. So is any other one if the data folder is one that may come with a
            repository: its cursors could name any server, or any file to write.
    """
    cursors: dict[str, list[Cursor]] = {}
    names = {spec.text for spec in specs}
    is_own = os.path.basename(os.path.abspath(directory)) != paths.FOLDER_HERE
    try:
        runs = sorted(os.listdir(paths.runs_dir(directory)))
    except FileNotFoundError:
        return cursors
    for run_id in runs:
        for cursor in find_cursors(os.path.join(paths.runs_dir(directory), run_id), specs):
            is_wanted = cursor.spec.is_whole and not cursor.by_hand and (is_own or cursor.spec.text in names)
            if is_wanted and not is_complete(cursor) and (cursor.host == host or _is_old(cursor.path)):
                cursors.setdefault(cursor.spec.text, []).append(cursor)
    return cursors


def is_complete(cursor: Cursor) -> bool:
    """Return whether a delivery has come to its end, and users have changed nothing since."""
    return bool(cursor.closed) and not has_new_edits(cursor)


def _is_old(path: str) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime > FOREIGN_AGE_S
    except FileNotFoundError:
        return False
