"""The time to live of a version, as W&B's `artifact.ttl` says it."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Any, Final

NEVER: Final = 0
"""The seconds of a version that is never deleted by its age."""


class ArtifactTTL(Enum):
    """What `Artifact.ttl` may be besides a duration: that of the artifact's collection."""

    INHERIT = 0


def seconds_of(ttl: Any) -> int | None:
    """Return a time to live in seconds; `NEVER` for None, None for that of the collection.

    Raises:
        TypeError: it is neither a timedelta, None nor `ArtifactTTL.INHERIT`.
        ValueError: it is not positive.

    Example:
        >>> seconds_of(timedelta(days=1)), seconds_of(None), seconds_of(ArtifactTTL.INHERIT)
        (86400, 0, None)
    """
    if ttl is None or ttl is ArtifactTTL.INHERIT:
        return None if ttl is ArtifactTTL.INHERIT else NEVER
    if not isinstance(ttl, timedelta):
        raise TypeError(f"ttl: expected a timedelta, None or ArtifactTTL.INHERIT, not {type(ttl).__name__}")
    seconds = int(ttl.total_seconds())
    if seconds <= 0:
        raise ValueError(f"ttl: expected at least a second, not {ttl}")
    return seconds
