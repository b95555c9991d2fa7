"""Who made a run or an event: users and service accounts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunAuthor:
    """The user whose run it is, or who caused an event. A deleted user keeps the id, but has no name.

    `picture`: the digest of the user's picture, which is part of its address; None: there is none.
    """

    id: int
    name: str | None
    display_name: str
    picture: str | None = None


@dataclass(frozen=True, slots=True)
class RunServiceAccount:
    """The service account whose key sent the run, or caused an event."""

    id: int
    name: str
    deleted: bool
