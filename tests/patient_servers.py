"""Servers of this process, and those forked from it, give requests as long as a busy machine needs.

Import it before modules of the server that copy the limit.
"""

from __future__ import annotations

from runvitals.server.http import workers
from tests.patience import PATIENCE_S

workers.DEADLINE_S = PATIENCE_S
workers.Workers.__init__.__defaults__ = (PATIENCE_S,)
