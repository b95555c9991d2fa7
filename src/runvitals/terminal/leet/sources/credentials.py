"""Adds the remedy to an error of a server that rejects the credentials.

Apart, because the catalogue uses it without loading NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runvitals.readers.servers.connection import ServerError


@contextmanager
def with_remedy(remedy: str) -> Iterator[None]:
    """Add what the user can do to the error of a server that rejects the credentials."""
    try:
        yield
    except ServerError as error:
        if error.status != 401 or not remedy:
            raise
        raise ServerError(f"no valid key; {remedy}", 401) from None
