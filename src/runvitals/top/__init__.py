"""`runvitals top`: a live view of this machine in the terminal, without a run.

`vitals` makes readings into what a person looks at, `view` lays that out in lines, `screen` is the terminal,
`live` keeps them going.
"""

from runvitals.top.live import live, snapshot

__all__ = ["live", "snapshot"]
