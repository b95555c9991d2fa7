"""Artifacts for tests, in a line each."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from runvitals.server.artifacts.storage.rows import Entry, NewVersion, Version
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.projects.storage.projects import ProjectOwner

T0 = 1_760_000_000_000


def new_project(store: MetadataStore, name: str = "digits") -> int:
    return store.projects.ensure(name, ProjectOwner(), T0)


def md5(content: bytes) -> str:
    """The digest of a content, as wandb's clients write it."""
    return base64.b64encode(hashlib.md5(content).digest()).decode()


def keep(store: MetadataStore, project_id: int, content: bytes, now_ms: int = T0) -> str:
    """Note a content as uploaded; returns its digest."""
    place = store.stored_files.place_of_project(project_id)
    file = StoredFile(hashlib.sha256(content).hexdigest(), len(content), "application/octet-stream", place)
    store.artifacts.contents.add(project_id, md5(content), file, now_ms)
    return md5(content)


def manifest_digest(entries: dict[str, str]) -> str:
    """The digest of a manifest, written from wandb's description of it."""
    text = "wandb-artifact-manifest-v1\n" + "".join(f"{path}:{entries[path]}\n" for path in sorted(entries))
    return hashlib.md5(text.encode()).hexdigest()


def draft(
    store: MetadataStore, project_id: int, files: dict[str, bytes], name: str = "mnist", **more: Any
) -> Version:
    """A draft with files, which were uploaded."""
    digests = {path: keep(store, project_id, content) for path, content in files.items()}
    values: dict[str, Any] = {"aliases": ("latest",), "type": "dataset", **more}
    new = NewVersion(project_id, name=name, digest=manifest_digest(digests), **values)
    version = store.artifacts.versions.begin(new, T0)
    if version.state == "draft":
        entries = [Entry(path, digests[path], len(content)) for path, content in files.items()]
        store.artifacts.entries.put(version.id, entries)
    return version


def logged(
    store: MetadataStore, project_id: int, files: dict[str, bytes], name: str = "mnist", **more: Any
) -> Version:
    """A committed version with files."""
    return store.artifacts.versions.commit(draft(store, project_id, files, name, **more).id, T0)
