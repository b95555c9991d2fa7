"""Features under development, which users switch on for themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class BetaFeature:
    """A feature. `text`: what it does; `since`: the version that has it first; `retiring`: it will go."""

    name: str
    text: str
    since: str
    stage: Literal["beta", "retiring"] = "beta"


BETA_FEATURES: Final[tuple[BetaFeature, ...]] = ()
"""None at present."""
