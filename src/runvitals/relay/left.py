"""How much of a run is not delivered: by the numbers of its records, without reading them."""

from __future__ import annotations

import os

from runvitals.journal import paths
from runvitals.journal.seal import whole_records
from runvitals.relay.cursor import Cursor

_TAIL_BYTES = 256 * 1024


def records_left(cursor: Cursor) -> int:
    """How many records of a cursor's host are in the journal and not delivered, those that are held too.

    Reads the ends of the newest files. What a writer declared without telling anything (who it is, its keys)
    counts too, so that a few may be left of a run that has nothing more to say.
    """
    left = cursor.held_records
    try:
        segments = paths.segments(cursor.folder)
    except FileNotFoundError:
        return left
    for writer, numbers in segments.items():
        if paths.role_and_host(writer)[1] == cursor.host:
            last = last_seq(paths.segment_path(cursor.folder, writer, numbers[-1]))
            known = cursor.positions.get(writer)
            left += max(0, last + 1 - (known.next_seq if known is not None else 0))
    return left


def last_seq(path: str) -> int:
    """The number of a file's last whole record; -1 where none is found in the last 256 KiB."""
    try:
        with open(path, "rb", buffering=0) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            data = file.read(_TAIL_BYTES)
    except FileNotFoundError:
        return -1  # sealed and renamed, or deleted, since the folder was listed
    return max((one.seq for one in whole_records(data)), default=-1)
