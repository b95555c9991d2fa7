"""The sort order of a list of runs."""

from __future__ import annotations

from dataclasses import dataclass

from runvitals.model.filter import is_field

SORTED_COLUMNS = (
    "id",
    "name",
    "group",
    "job_type",
    "state",
    "project",
    "started_ms",
    "last_ms",
    "duration_ms",
)


@dataclass(frozen=True, slots=True)
class RunSort:
    """The sort order of a list: by one of `SORTED_COLUMNS`, or by `config.…` or `summary.…`.

    In both directions, numbers come before texts, and runs without a value last.

    Raises:
        ValueError: unknown column or field.
    """

    by: str = "started_ms"
    descending: bool = True

    def __post_init__(self) -> None:
        if self.by not in SORTED_COLUMNS and not is_field(self.by):
            raise ValueError(
                f"cannot sort runs by {self.by!r}; expected one of "
                f"{', '.join(SORTED_COLUMNS)}, config.… or summary.…"
            )
