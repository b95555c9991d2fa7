"""The interface of a logged artifact, on a server or in the journals of this machine."""

from __future__ import annotations

from typing import Any, Protocol

from runvitals.model.artifacts import ArtifactEntry, ArtifactVersion


class ArtifactSource(Protocol):
    """One version of an artifact."""

    @property
    def version(self) -> ArtifactVersion:
        """The version, as it was when it was last read."""

    def refresh(self) -> None:
        """Read the version again: its aliases may have changed.

        Raises:
            UnknownArtifact: it was deleted.
        """

    def entries(self) -> list[ArtifactEntry]:
        """Return its files and references, by path."""

    def copy(self, entry: ArtifactEntry, path: str) -> None:
        """Write the content of a file to a path.

        Raises:
            FileNotFoundError: the content is gone.
        """

    def run(self, run_id: str) -> Any:
        """Return a run that logged or used it."""
