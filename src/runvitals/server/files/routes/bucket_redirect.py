"""Redirects to signed addresses in the bucket of a team, for clients that follow them."""

from __future__ import annotations

from typing import Final

from fastapi.responses import RedirectResponse

from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.files.storage.stored_files import StoredFile

_SIGNED_S: Final = 300
"""How long an address in a bucket can be used."""


def bucket_redirect(files: ReceivedFiles, file: StoredFile | None) -> RedirectResponse | None:
    """Return a redirect to a file in a bucket. Decide before whether the requester may read it.

    None: it is not in a bucket, or this one has no addresses that clients reach.

    Raises:
        BucketAway: it cannot be used now.
    """
    address = None if file is None else files.signed_address(file, "GET", _SIGNED_S)
    if address is None:
        return None
    return RedirectResponse(address, 307, {"cache-control": "no-store"})
