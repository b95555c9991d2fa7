"""A file of a version of an artifact, and the folder that its downloads are put in."""

from __future__ import annotations

from dataclasses import dataclass

from runvitals.model.artifact_names import checked_path
from runvitals.model.artifacts import ArtifactEntry
from runvitals.sdk.artifacts.download import copy, has_content
from runvitals.sdk.artifacts.local_paths import folder_of, local_path
from runvitals.sdk.artifacts.lookup import ArtifactSource
from runvitals.sdk.artifacts.references import is_readable


@dataclass(frozen=True, slots=True)
class ArtifactFile:
    """A file or reference of a version, as `Artifact.get_entry` returns it."""

    entry: ArtifactEntry
    source: ArtifactSource

    @property
    def path(self) -> str:
        """Its path in the artifact."""
        return self.entry.path

    @property
    def size(self) -> int | None:
        """Bytes; None if a reference's size is not known."""
        return self.entry.bytes

    @property
    def digest(self) -> str:
        """The MD5 of a file as base64; what identifies the content of a reference."""
        return self.entry.digest

    @property
    def ref(self) -> str | None:
        """The address of a reference; None for a file."""
        return self.entry.reference

    def ref_target(self) -> str:
        """Return the address of a reference.

        Raises:
            ValueError: it is a file.
        """
        if self.entry.reference is None:
            raise ValueError(f"{self.path!r} is a file, not a reference")
        return self.entry.reference

    def download(self, root: str | None = None) -> str:
        """Write the file, or the content of a reference, below a folder; return its path.

        A file that is there with this content is left as it is.

        Args:
            root: default: `artifacts/NAME:vN` in the working directory.

        Raises:
            ValueError: it is a reference without a checksum, whose content is kept elsewhere; or a link leads
                out of the folder.
            ReferenceChanged: the content of the reference is not the one that was logged.
        """
        if self.entry.reference is not None and not is_readable(self.entry):
            raise ValueError(f"{self.path!r} is a reference: its content is at {self.entry.reference}")
        name = checked_path(self.path)  # it comes from a server, and must not lead out of the folder
        path = local_path(root or default_root(self.source), name)
        if not has_content(self.entry, path):
            try:
                copy(self.source, self.entry, path)
            finally:
                self.source.end()
        return path


def default_root(source: ArtifactSource) -> str:
    """Return the folder of a download for which none is named."""
    return folder_of(source.version.name, source.version.version)
