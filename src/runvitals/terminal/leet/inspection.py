"""`runvitals leet inspect` without a terminal: the summary of a run, or a line of JSON for each record."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TextIO

from runvitals.model.errors import UnknownRun
from runvitals.model.run_json import finite, run_as_dict
from runvitals.terminal.leet.console_lines import console_lines
from runvitals.terminal.leet.opening import OpeningTarget
from runvitals.terminal.leet.overview import overview
from runvitals.terminal.leet.record_log import RecordReader
from runvitals.terminal.leet.sources.run_source import RunSource, now_ms

_PRINTED_LINES = 20
"""Last lines of the output in a summary."""


def source_of(target: OpeningTarget) -> RunSource:
    """Return the run to inspect: the newest one, if the target is a list.

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


def reader_of(source: RunSource) -> RecordReader:
    """Return a reader of a run's records, or raise ValueError for a run of a server, which has none."""
    reader = source.records()
    if reader is None:
        raise ValueError("a server keeps no records of the journal; inspect the run where it was recorded")
    return reader


def print_summary(source: RunSource, out: TextIO, as_json: bool) -> None:
    """Print the facts of a run, its newest values, its configuration and the end of its output.

    Raises:
        UnknownRun, OSError, ValueError: it cannot be read.
    """
    source.poll()
    while source.progress() < 1.0:
        source.poll()
    assert source.run is not None
    printed = [line.text for line in console_lines(source.console())[-_PRINTED_LINES:]]
    if as_json:
        record = {**run_as_dict(source.run), "console": printed}
        print(json.dumps(finite(record), allow_nan=False), file=out)
        return
    for row in overview(source.run, source.console()):
        print("".join(text for text, _ in row), file=out)
    if printed:
        print("\nConsole", *printed, sep="\n", file=out)


def print_records(
    source: RunSource, out: TextIO, follow: bool, pause: Callable[[float], None] = time.sleep
) -> None:
    """Print the records of a run; with `follow` also those that are written while it runs.

    Raises:
        ValueError: a run of a server, which has no records.
        OSError: they cannot be read.
    """
    reader = reader_of(source)
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
