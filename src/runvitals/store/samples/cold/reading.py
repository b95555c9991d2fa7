"""Reads the values of cold chunks."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple, Protocol

from runvitals.store.samples.interface import StoreUnavailable


class ColdUnavailable(StoreUnavailable):
    """Values in cold storage cannot be read at present. They are not damaged: try again later.

    Args:
        sha256: the object that would have to be fetched first; None: it could not be.
    """

    def __init__(self, text: str, sha256: str | None = None) -> None:
        super().__init__(text)
        self.sha256 = sha256


class ColdLost(ColdUnavailable):
    """Values are lost unless their object is put back: it is missing, or has another content."""


class ColdLocation(NamedTuple):
    """The location of a chunk's values: in the object with this SHA-256, `size` bytes from `offset`."""

    sha256: str
    offset: int
    size: int


class ColdReader(Protocol):
    """Reads from objects of cold storage."""

    def read(self, location: ColdLocation) -> bytes:
        """Return the bytes of an object that are at a place.

        Raises:
            ColdLost: the object is missing or damaged.
            ColdUnavailable: it cannot be read at present.
        """

    def forget(self, location: ColdLocation) -> None:
        """Fetch the object of this place again when it is read next: what was read from it is damaged."""


def location_of(connection: sqlite3.Connection, cold_id: int) -> ColdLocation | None:
    """Return the place of a row of the table `cold`; None if there is none."""
    row = connection.execute(
        """SELECT object.sha256, cold.offset, cold.bytes FROM cold JOIN object ON object.id = cold.object
        WHERE cold.id=?""",
        (cold_id,),
    ).fetchone()
    return None if row is None else ColdLocation(*row)
