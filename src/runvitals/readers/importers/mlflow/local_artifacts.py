"""The artifacts of a run that are on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from urllib.parse import unquote, urlsplit

from runvitals.readers.importers.mlflow.run import MlflowArtifact


def local_artifacts(uri: str, base: str, roots: Sequence[str]) -> Iterator[MlflowArtifact]:
    """Yield the files below an artifact URI, without symbolic links.

    Args:
        uri: `artifact_uri` of the run: a path, or `file:…`.
        base: folder of the store: relative paths, and paths of a store that was moved, are looked up there.
        roots: only files below these folders are read, since a store that somebody else wrote may name any
            folder of this machine.

    Raises:
        ValueError: it is not on this machine, or not below `roots`.
    """
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        raise ValueError(f"artifacts in {parts.scheme}: are not on this machine")
    path = unquote(parts.path) if parts.scheme else uri
    root = os.path.join(base, path)
    if not path or not os.path.isdir(root):
        return
    real = os.path.realpath(root)
    if not any(_is_below(real, os.path.realpath(allowed)) for allowed in roots):
        allowed = " and ".join(roots)
        raise ValueError(f"they are not below {allowed}; name a folder they are in with --artifacts")
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            full = os.path.join(folder, name)
            if not os.path.islink(full) and os.path.isfile(full):
                relative = os.path.relpath(full, root).replace(os.sep, "/")
                yield MlflowArtifact(relative, lambda full=full: full)  # type: ignore[misc]


def _is_below(path: str, folder: str) -> bool:
    return os.path.commonpath((path, folder)) == folder
