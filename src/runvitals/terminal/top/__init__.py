"""`runvitals top`: a live view of this machine in the terminal, without a run.

`vitals` derives what to show from samples, `view` lays it out in lines, `screen` controls the terminal, and
`live` runs the loop.
"""

from runvitals.terminal.top.live import live, snapshot

__all__ = ["live", "snapshot"]
