"""Reading runs.

What a run is, its series, its statistics. Works on the journals of the data folder, live or ended.
"""

from runvitals.model.run import Event, Host, Rank, Run
from runvitals.query.run_handle import OpenRun, open_run
from runvitals.query.runs import RunList
from runvitals.query.series import Columns, Series

__all__ = ["Columns", "Event", "Host", "OpenRun", "Rank", "Run", "RunList", "Series", "open_run"]
