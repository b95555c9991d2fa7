"""One thing that was looked at, and how it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["PASS", "PARTIAL", "ABSENT", "FAIL"]
STATES: tuple[State, ...] = ("PASS", "PARTIAL", "ABSENT", "FAIL")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Args:
        section: `sources`, `system`, `storage`, `monitor`, `delivery` or `terminal`.
        name: of the thing: a source, a package, a destination.
        state: PASS; PARTIAL: works, and something of it is missing or in doubt; ABSENT: not here, which is no
            fault; FAIL: should work, and does not.
        text: what was found, in words. May hold text from elsewhere: make it inert before a terminal sees it.
        remedy: what a person can do about it, "" where nothing is to be done.
    """

    section: str
    name: str
    state: State
    text: str
    remedy: str = ""
