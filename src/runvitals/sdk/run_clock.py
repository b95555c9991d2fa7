"""The clock that all processes of a run on this machine share."""

from __future__ import annotations

import os

from runvitals.base.json_codec import loads
from runvitals.journal import frames, paths
from runvitals.journal.clock import RunClock, writer_clock
from runvitals.journal.sealing import whole_records

_HEAD_BYTES = 4096
_MAX_FILES = 16


def clock_of_run(folder: str, this_boot: str) -> RunClock:
    """Return the clock recorded in the run's journal since the last boot, or a new one.

    Args:
        folder: the run's folder.
        this_boot: see `journal.clock.boot_id`.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(paths.SUFFIX))
    except OSError:
        return RunClock()  # a new run
    for name in names[:_MAX_FILES]:
        try:
            head = paths.read_range(os.path.join(folder, name), 0, _HEAD_BYTES)
        except OSError:
            continue  # sealed and renamed since the listing
        for record in whole_records(head):
            if record.type == frames.START and (clock := _clock_in(record.payload, this_boot)) is not None:
                return clock
    return RunClock()


def _clock_in(payload: bytes, this_boot: str) -> RunClock | None:
    try:
        start = loads(payload)
    except ValueError:
        return None  # damaged; readers report it
    return writer_clock(start, this_boot) if isinstance(start, dict) else None
