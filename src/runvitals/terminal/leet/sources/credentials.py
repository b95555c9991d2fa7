"""What a server says about credentials that it does not accept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runvitals.readers.servers.connection import ServerError


@contextmanager
def with_remedy(remedy: str) -> Iterator[None]:
    """Say what the user can do if the server rejects the credentials."""
    try:
        yield
    except ServerError as error:
        if error.status != 401 or not remedy:
            raise
        raise ServerError(f"no valid key; {remedy}", 401) from None
