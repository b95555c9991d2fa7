"""Media that a run logged, and files that it saved, as readers return them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LoggedMedia:
    """The media logged under one name at one step.

    Attributes:
        key: the name; of a saved file its path.
        kind: `image`, `table`, `histogram` … as in docs/concepts/journal.md.
        step: as logged; None if the record has none.
        time_ms: UTC.
        rank, host: of the process.
        items: the images of a gallery, and so on: each with the `sha256`, `bytes` and `type` of its file, or
            with its `value`; or with the `error` because of which it was not stored.
    """

    key: str
    kind: str
    step: float | None
    time_ms: int
    rank: int | None
    host: str
    items: list[dict[str, Any]]

    @property
    def order(self) -> tuple[float, int]:
        """By step, then by time."""
        return (-1.0 if self.step is None else float(self.step), self.time_ms)


@dataclass(frozen=True, slots=True)
class MediaKey:
    """A name under which media were logged, with how many records, from which step to which."""

    key: str
    kind: str
    count: int
    first_step: float | None
    last_step: float | None
    last_ms: int


@dataclass(frozen=True, slots=True)
class LoggedValue:
    """A text, a list, an object, null or a boolean that was logged under a name at a step: any JSON value."""

    host: str
    rank: int | None
    key: str
    step: float
    time_ms: int
    value: Any


@dataclass(frozen=True, slots=True)
class ValueSelection:
    """Which logged values that are not numbers are requested: of these keys (of all without one).

    From one step to another, both included.
    """

    keys: tuple[str, ...] = ()
    first_step: float | None = None
    last_step: float | None = None


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file that was saved with `Run.save`, as it was last saved.

    Attributes:
        name: relative to the base, with `/`.
        bytes: its size.
        type: media type, from its content.
        sha256: of its content.
        time_ms: when it was saved, UTC.
        path: of the copy in the run's folder, if it is there.
    """

    name: str
    bytes: int
    type: str
    sha256: str
    time_ms: int
    path: str | None = None
