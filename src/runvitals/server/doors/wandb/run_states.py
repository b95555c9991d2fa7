"""The states of runs, as wandb's clients know them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

THEIRS: Final[Mapping[str, str]] = {
    "running": "running",
    "finished": "finished",
    "failed": "failed",
    "crashed": "crashed",
    "stopped": "killed",
    "lost": "crashed",
}
"""By our state."""
STATES: Final[Mapping[str, tuple[str, ...]]] = {
    theirs: tuple(ours for ours, name in THEIRS.items() if name == theirs) for theirs in THEIRS.values()
}
"""Our states, by theirs."""
