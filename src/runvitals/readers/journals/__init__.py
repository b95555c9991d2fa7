"""Reads runs, their series and their statistics from the journals in the data folder, running or ended."""

from runvitals.model.host import Host
from runvitals.model.run import Event, Rank, Run
from runvitals.readers.journals.run_handle import OpenRun, open_run
from runvitals.readers.journals.runs import RunList
from runvitals.readers.journals.series import Columns, Series

__all__ = ["Columns", "Event", "Host", "OpenRun", "Rank", "Run", "RunList", "Series", "open_run"]
