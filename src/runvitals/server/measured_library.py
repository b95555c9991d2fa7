"""What projects take in a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(slots=True)
class ProjectStorage:
    """Bytes of a project. `trash`: those of runs in the trash, which the others include."""

    project_id: int
    project: str
    runs: int = 0
    samples: int = 0
    console: int = 0
    files: int = 0
    trash: int = 0

    @property
    def bytes(self) -> int:
        """Samples, output and files together."""
        return self.samples + self.console + self.files


class MeasuredLibrary(Protocol):
    """A library that knows what it takes: that of a shared server."""

    async def storage(self, entity_id: int) -> list[ProjectStorage]:
        """What the projects of a team or user take, the largest first."""
