"""Reading runs.

What a run is, its series, its statistics. Works on the journals of the data folder, live or ended.
"""

from runvitals.query.columns import Columns, Series
from runvitals.query.model import Event, Host, Rank, Run
from runvitals.query.opened import OpenRun, open_run
from runvitals.query.runs import RunList

__all__ = ["Columns", "Event", "Host", "OpenRun", "Rank", "Run", "RunList", "Series", "open_run"]
