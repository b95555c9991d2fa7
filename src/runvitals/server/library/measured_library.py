"""The storage that projects and runs take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from runvitals.server.files.storage.storage_places import StoredRunPlace

KINDS: Final = ("samples", "console", "media", "files", "artifacts", "reports")


@dataclass(slots=True)
class ProjectStorage:
    """Bytes of a project. `trash`: those of runs and reports in the trash, which the others include."""

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

    place: StoredRunPlace
    samples: int

    @property
    def by_kind(self) -> dict[str, int]:
        """Samples, output, media and files."""
        place = self.place
        return {
            "samples": self.samples,
            "console": place.console_bytes,
            "media": place.media,
            "files": place.files,
        }

    @property
    def bytes(self) -> int:
        """All of it together."""
        return sum(self.by_kind.values())


class MeasuredLibrary(Protocol):
    """A library that knows what it takes: that of a shared server."""

    async def storage(self, entity_id: int) -> list[ProjectStorage]:
        """Return what the projects of a team or user take, the largest first."""

    async def run_storage(self, entity_id: int, project_id: int) -> list[RunStorage]:
        """Return what the runs of a project take, the largest first."""
