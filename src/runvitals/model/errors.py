"""Errors that journal readers, the metadata store, the server and its clients share."""

from __future__ import annotations


class UnknownRun(LookupError):
    """There is no such run. The message says where it was looked up, and names similar runs if any."""


class AmbiguousName(LookupError):
    """Several teams or users have a run or project of this name. The message names those that the principal
    may read."""


class UnknownProject(LookupError):
    """There is no project with this id or name."""
