"""Checks of a request's fields by the code that defines them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runvitals.server.http.errors import InvalidFields


@contextmanager
def checking(field: str) -> Iterator[None]:
    """Answer a ValueError as 422 of a field. Subclasses, which are conflicts with the present state, stay.

    Raises:
        InvalidFields: a ValueError was raised.
    """
    try:
        yield
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise InvalidFields({field: str(error)}) from None
