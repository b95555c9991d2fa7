"""The storage that projects and runs take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeGuard

if TYPE_CHECKING:
    from runvitals.server.files.storage.storage_places import StoredRunPlace

KINDS: Final = ("samples", "console", "media", "files", "artifacts", "reports")


@dataclass(slots=True)
class ProjectStorage:
    """Bytes of a project, and how old and how used what it has is.

    Args:
        trash: those of runs and reports in the trash, which the others include.
        started_ms, last_ms: of its first and newest run or artifact; None: it has neither.
        read_day: the last day on which something of it was read; see `ReadDays`.
        trashed_ms: since when it is in the trash itself.
        trashed_runs: since when each of its runs in the trash is there.
        expiring, expiring_bytes: versions of artifacts that their time to live takes, the first of them at
            `expires_ms`.
    """

    project_id: int
    project: str
    runs: int = 0
    samples: int = 0
    console: int = 0
    media: int = 0
    files: int = 0
    artifacts: int = 0
    reports: int = 0
    trash: int = 0
    started_ms: int | None = None
    last_ms: int | None = None
    read_day: int | None = None
    trashed_ms: int | None = None
    trashed_runs: list[int] = field(default_factory=list)
    expiring: int = 0
    expiring_bytes: int = 0
    expires_ms: int | None = None

    def note_time(self, started_ms: int | None, last_ms: int | None, read_day: int | None) -> None:
        """Note the times of something that it has."""
        self.started_ms = min(filter(_is_known, (self.started_ms, started_ms)), default=None)
        self.last_ms = max(filter(_is_known, (self.last_ms, last_ms)), default=None)
        self.read_day = max(filter(_is_known, (self.read_day, read_day)), default=None)

    @property
    def bytes(self) -> int:
        """All of it together."""
        return sum(self.by_kind.values())

    @property
    def by_kind(self) -> dict[str, int]:
        """Samples, output, media, files, artifacts, and files of reports."""
        return {kind: getattr(self, kind) for kind in KINDS}


@dataclass(frozen=True, slots=True)
class RunStorage:
    """Bytes of a run, and where it is. Artifacts belong to projects, not to runs."""

    run: StoredRunPlace
    samples: int

    @property
    def by_kind(self) -> dict[str, int]:
        """Samples, output, media and files."""
        return {
            "samples": self.samples,
            "console": self.run.console_bytes,
            "media": self.run.media,
            "files": self.run.files,
        }

    @property
    def bytes(self) -> int:
        """All of it together."""
        return sum(self.by_kind.values())


def _is_known(number: int | None) -> TypeGuard[int]:
    return number is not None


class MeasuredLibrary(Protocol):
    """A library that knows what it takes: that of a shared server."""

    async def storage(self, entity_id: int) -> list[ProjectStorage]:
        """Return what the projects of a team or user take, the largest first."""

    async def run_storage(self, entity_id: int, project_id: int) -> list[RunStorage]:
        """Return what the runs of a project take, the largest first."""
