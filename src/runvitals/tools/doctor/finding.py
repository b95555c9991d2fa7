"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["PASS", "PARTIAL", "ABSENT", "FAIL"]
STATES: tuple[State, ...] = ("PASS", "PARTIAL", "ABSENT", "FAIL")


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check.

    Args:
        section: `sources`, `system`, `storage`, `monitor`, `delivery` or `terminal`.
        name: the checked source, package or destination.
        state: PASS; PARTIAL: works with restrictions; ABSENT: not present, which is not an error; FAIL:
            should work but does not.
        text: description of the result. May contain untrusted text: escape it before printing it.
        remedy: instructions for the user, or "".
    """

    section: str
    name: str
    state: State
    text: str
    remedy: str = ""
