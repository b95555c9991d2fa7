"""Reads the runs of this machine: the public name of `runvitals.readers.journals`."""

from runvitals.readers.journals import (
    Columns,
    Event,
    Host,
    OpenRun,
    Rank,
    Run,
    RunList,
    Series,
    open_run,
)

__all__ = ["Columns", "Event", "Host", "OpenRun", "Rank", "Run", "RunList", "Series", "open_run"]
