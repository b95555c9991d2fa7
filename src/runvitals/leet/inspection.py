"""`runvitals leet inspect` without a terminal: the records of a run, one per line, in JSON."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from runvitals.leet.opening import OpeningTarget
from runvitals.leet.sources.run_source import RunSource, now_ms
from runvitals.model.errors import UnknownRun


def source_of(target: OpeningTarget) -> RunSource:
    """The run to inspect: the newest one, if the target is a list.

    Raises:
        UnknownRun: the list is empty.
        OSError, ValueError: it cannot be read.
    """
    run_id = target.run_id
    if run_id is None:
        runs, _ = target.catalogue.runs(now_ms(), "")
        if not runs:
            raise UnknownRun(f"no runs in {target.catalogue.title}")
        run_id = runs[0].id
    return target.catalogue.open(run_id)


def print_records(
    source: RunSource, out: TextIO, follow: bool, pause: Callable[[float], None] = time.sleep
) -> None:
    """Print the records of a run; with `follow` also those that are written while it runs.

    Raises:
        ValueError: a run of a server, which has no records.
        OSError: they cannot be read.
    """
    reader = source.records()
    if reader is None:
        raise ValueError("a server keeps no records of the journal; inspect the run where it was recorded")
    try:
        while True:
            if follow:
                source.poll()  # before the records, so that the last ones are printed
            for record in reader.poll():
                print(record.as_json(), file=out)
            out.flush()
            if not follow or source.run is None or source.run.state != "running":
                return
            pause(1.0)
    finally:
        reader.close()
