"""Names and values for a filter, for completion while a user types it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runvitals.model.run_verdict import FINDING_IDS, VERDICT_IDS
from runvitals.model.state import STATES
from runvitals.model.system_statistics import QUANTITIES

MAX_VALUES = 20
"""Values of each name that are offered."""
FieldKind = Literal["text", "number", "duration", "time"]


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """A name that a filter can compare, and the most frequent ones of its values."""

    name: str
    kind: FieldKind
    values: tuple[str | float, ...] = ()


FIXED_CHOICES = (
    FieldChoice("state", "text", STATES),
    FieldChoice("id", "text"),
    FieldChoice("note", "text"),
    FieldChoice("device", "text"),
    FieldChoice("duration", "duration", ("1m", "1h", "1d")),
    FieldChoice("started", "time"),
    FieldChoice("last", "time"),
    FieldChoice("exit_code", "number"),
    FieldChoice("signal", "number"),
    FieldChoice("finding", "text", FINDING_IDS),
    FieldChoice("verdict", "text", VERDICT_IDS),
    FieldChoice("lost_hours", "number"),
)
"""Names whose values do not depend on the runs."""


def system_choices() -> list[FieldChoice]:
    """Return the system statistics, also those that no run has yet."""
    return [FieldChoice(name, "number") for quantity in QUANTITIES for name in quantity.statistics]
