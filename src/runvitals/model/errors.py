"""Errors that journal readers, the metadata store, the server and its clients share."""

from __future__ import annotations

from collections.abc import Sequence


class UnknownRun(LookupError):
    """There is no such run. The message says where it was looked up, and names similar runs if any."""


class CannotWrite(Exception):
    """A change cannot be recorded. The message names the path, and what is allowed."""


class AmbiguousName(LookupError):
    """Several teams or users have a run or project of this name.

    Args:
        entities: the names of those that the principal may read.
    """

    def __init__(self, text: str, entities: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.entities = list(entities)


class UnknownProject(LookupError):
    """There is no project with this id or name."""
