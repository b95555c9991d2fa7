"""Taking in what monitors and other clients send: `POST /api/v1/ingest`. See docs/reference/ingest.md.

unpacking, envelope, columns, notes   from bytes to what they mean; nothing is written
prepare                               is everything about an envelope as it should be?
members, presence                     who writes, and who is still alive
recorder, together, commits           into the catalogue and the store, many requests in one commit
bodies, admission, endpoint           HTTP, and no more of it at once than there is room for
"""

from runvitals.server.ingest.endpoint import PATH, Ingest
from runvitals.server.ingest.limits import Limits
from runvitals.server.ingest.recorder import Recorder

__all__ = ["PATH", "Ingest", "Limits", "Recorder"]
