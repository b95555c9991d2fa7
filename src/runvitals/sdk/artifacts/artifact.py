"""`runvitals.Artifact`: files under a name, in versions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import IO, Any, Final, NoReturn

from runvitals.model.artifact_names import checked_aliases, checked_description, checked_label, checked_tags
from runvitals.model.artifacts import ArtifactEntry
from runvitals.sdk.artifacts import lookup
from runvitals.sdk.artifacts.absent_names import ABSENT_NAMES
from runvitals.sdk.artifacts.artifact_file import ArtifactFile, default_root
from runvitals.sdk.artifacts.download import FileSelection, FolderDifferences, differences, download
from runvitals.sdk.artifacts.draft import ArtifactDraft
from runvitals.sdk.artifacts.lookup import ArtifactScope, ArtifactSource
from runvitals.sdk.artifacts.time_to_live import ArtifactTTL, seconds_of
from runvitals.sdk.media.base import is_media
from runvitals.sdk.media.values import to_media

_WAIT_S: Final = 60.0
_SHOWN: Final = 10


class ArtifactNotLogged(RuntimeError):
    """The artifact has no version yet: it was not logged, or has not arrived."""


class Artifact:
    """Files under a name in a project, kept in versions: data sets, models, results.

    A new one is filled with `add_file` and so on, and logged with `run.log_artifact`. One that was logged is
    found with `run.use_artifact` or `Client.artifact`.

    Args:
        name: letters, digits and signs except `/` and `:`.
        type: such as `dataset` or `model`; all versions of a name have the same.
        description: free text.
        metadata: a mapping that can be written as JSON.
        others: further arguments of W&B's class; `incremental` is not supported.

    Raises:
        ValueError: an invalid name or type.
        TypeError: an unknown argument.

    Example:
        >>> artifact = runvitals.Artifact("mnist", "dataset", metadata={"rows": 60000})
        >>> artifact.add_dir("data/mnist")
        >>> run.log_artifact(artifact, aliases=["best"])
    """

    def __init__(
        self,
        name: str,
        type: str,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> None:
        if others.pop("incremental", False):
            raise TypeError("Artifact(): incremental is not supported; add all files of the version")
        if unknown := others.keys() - {"use_as", "storage_region", "digest_algorithm"}:
            raise TypeError(f"Artifact() got an unexpected keyword argument {min(unknown)!r}")
        self._name = checked_label("name of an artifact", name)
        self._type = checked_label("type of artifacts", type)
        self.description = checked_description(description or "")
        self.metadata: dict[str, Any] = dict(metadata or {})
        self._draft: ArtifactDraft | None = ArtifactDraft()
        self._source: ArtifactSource | None = None
        self._scope: ArtifactScope | None = None
        self._digest: str | None = None
        self._new_aliases: tuple[str, ...] = ()
        self._ttl: timedelta | ArtifactTTL | None = ArtifactTTL.INHERIT

    @classmethod
    def from_source(cls, source: ArtifactSource) -> Artifact:
        """Return an artifact that was logged."""
        version = source.version
        artifact = cls(version.name, version.type, version.description, version.metadata)
        artifact._draft, artifact._source = None, source
        return artifact

    # What it is

    @property
    def name(self) -> str:
        """The name; with its version, `mnist:v3`, once it has one."""
        return self._name if self._source is None else f"{self._name}:{self.version}"

    @property
    def source_name(self) -> str:
        """The same as `name`."""
        return self.name

    @property
    def collection_name(self) -> str:
        """The name without a version."""
        return self._name

    @property
    def type(self) -> str:
        """Such as `dataset` or `model`."""
        return self._type

    @property
    def qualified_name(self) -> str:
        """`entity/project/name:version`, as `use_artifact` takes it."""
        version = self._require_source().version
        return "/".join([*([version.entity] if version.entity else []), version.project, self.name])

    @property
    def version(self) -> str:
        """The version: `v0`, `v1` and so on.

        Raises:
            ArtifactNotLogged: it has none yet.
        """
        return f"v{self._require_source().version.version}"

    @property
    def aliases(self) -> list[str]:
        """The aliases; of an artifact that has no version yet, those that it will get."""
        return list(self._new_aliases if self._source is None else self._source.version.aliases)

    @property
    def is_logged(self) -> bool:
        """Whether it was logged. Its version may still have to arrive at the server."""
        return self._draft is None

    @property
    def digest(self) -> str:
        """Identifies the files: versions with the same files have the same.

        Raises:
            ArtifactNotLogged: it was not logged.
        """
        if self._digest is None:
            self._digest = self._require_source().version.digest
        return self._digest

    @property
    def size(self) -> int:
        """Bytes of all files and references whose size is known."""
        if self._draft is not None:
            return sum(entry.bytes or 0 for entry in self._draft.entries.values())
        return self._require_source().version.bytes

    @property
    def file_count(self) -> int:
        """How many files and references it has."""
        return len(self._draft.entries) if self._draft is not None else self._require_source().version.files

    @property
    def created_ms(self) -> int:
        """When the version was logged, ms UTC."""
        return self._require_source().version.created_ms

    @property
    def ttl(self) -> timedelta | ArtifactTTL | None:
        """After how long a version that is to be logged is deleted; None: never; default: as its collection.

        Raises:
            AttributeError: it was logged. `Client.set_artifact_ttl` changes that of the collection.
        """
        return self._ttl if self._draft is not None else self.__getattr__("ttl")

    @ttl.setter
    def ttl(self, ttl: timedelta | ArtifactTTL | None) -> None:
        if self._draft is None:
            self.__getattr__("ttl")
        seconds_of(ttl)
        self._ttl = ttl

    # Filling

    def add_file(
        self, local_path: str | os.PathLike[str], name: str | None = None, **others: Any
    ) -> ArtifactEntry:
        """Add a file. It is read when the artifact is logged.

        Args:
            name: its path in the artifact; default: the last part of `local_path`.
            others: W&B's further arguments, which have no effect.

        Raises:
            ValueError: it is not a file, or the name is invalid.
        """
        return self._open_draft().add_file(os.fspath(local_path), name)

    def add_dir(self, local_path: str | os.PathLike[str], name: str | None = None, **others: Any) -> None:
        """Add all files of a folder, also of the folders in it; links to folders are not followed.

        Args:
            name: the folder in the artifact that they are put in; default: none.
        """
        self._open_draft().add_folder(os.fspath(local_path), name)

    def add_reference(
        self,
        uri: str,
        name: str | None = None,
        checksum: bool | None = None,
        max_objects: int | None = None,
        **others: Any,
    ) -> Sequence[ArtifactEntry]:
        """Add the address of a content that is kept elsewhere, or of all contents below a prefix.

        It is not read, except `file://…`, of which the MD5 is computed. Its size and ETag are asked for with
        `checksum`, and of `https://` if that answers within 5 s, so that `download` can check the content;
        else the address identifies it.

        Args:
            uri: such as `s3://bucket/key`; a folder as `file:///data` adds all its files, and with
                `checksum` a prefix as `s3://bucket/folder` all objects below it.
            name: its path in the artifact, or the folder for what is below; default: from the address.
            checksum: for `https://`, `s3://`, `gs://` and `az://`; buckets need `runvitals[bucket]`, and
                credentials in the environment. Default: for what ends with `/`, such as `s3://bucket/folder/`,
                and for `https://`.
            max_objects: an error if a folder or prefix has more; default: 250,000, the most of an artifact.

        Raises:
            ValueError: an invalid address or name, an unknown kind of address, or too many contents below.
            OSError: the content cannot be read, or there is none.
        """
        return self._open_draft().add_reference(str(uri), name, checksum, max_objects)

    @contextmanager
    def new_file(
        self, name: str, mode: str = "w", encoding: str | None = None, policy: str = "mutable"
    ) -> Iterator[IO[Any]]:
        """Write a new file of the artifact; `policy` is ignored.

        Example:
            >>> with artifact.new_file("labels.json") as file:
            ...     json.dump(labels, file)
        """
        draft = self._open_draft()
        path = draft.new_file(name)
        if "b" not in mode and encoding is None:
            encoding = "utf-8"
        with open(path, mode, encoding=encoding) as file:
            yield file
        draft.add_file(path, name)

    def add(self, obj: Any, name: str, **others: Any) -> ArtifactEntry:
        """Add an image, a table, audio, a video, HTML or a figure as a file.

        Args:
            obj: what `log` takes.
            name: its path; the extension of its type is added if it is missing.

        Raises:
            TypeError: another type.
        """
        if not is_media(obj) or isinstance(obj, (list, tuple)):
            raise TypeError(f"add(): expected an image, table or other media, not {type(obj).__name__}")
        return self._open_draft().add_media(to_media(obj), name)

    def remove(self, item: str | ArtifactEntry) -> None:
        """Remove a file, or a folder with all in it.

        Raises:
            FileNotFoundError: there is none.
        """
        self._open_draft().remove(item.path if isinstance(item, ArtifactEntry) else str(item))

    # Reading

    def files(
        self, names: Sequence[str] | None = None, per_page: int = 50, start: str | None = None
    ) -> list[ArtifactFile]:
        """Return all files and references, by path.

        Args:
            names: only those with these paths.
            per_page, start: ignored; W&B's function has them.
        """
        source = self._require_source()
        entries = source.entries()
        return [ArtifactFile(entry, source) for entry in entries if names is None or entry.path in names]

    def get_entry(self, name: str) -> ArtifactFile:
        """Return a file or reference by its path.

        Raises:
            KeyError: there is none.
        """
        for file in self.files([name]):
            return file
        raise KeyError(f"the artifact {self.name} has no file {name!r}")

    get_path = get_entry
    """W&B's former name of `get_entry`."""

    def download(
        self,
        root: str | os.PathLike[str] | None = None,
        path_prefix: str | None = None,
        include: str | Sequence[str] = (),
        allow_missing_references: bool = False,
        **others: Any,
    ) -> str:
        """Write all files below a folder, several at a time; return the folder.

        Files that are there with the right content are not fetched again. References are fetched and checked
        if they were logged with a checksum. Without one, those of `https://` are fetched and a message says
        so, and others are left out.

        Args:
            root: default: `artifacts/NAME:vN` in the working directory.
            path_prefix: only files whose path begins so.
            include: a glob, or several, as `"train/*.parquet"`: only files whose path matches one. `*` also
                matches `/`.
            allow_missing_references: leave out references that cannot be read, or have changed.
            others: W&B's further arguments, which have no effect.

        Raises:
            ArtifactNotLogged: it was not logged.
            ReferenceChanged: the content of a reference is not the one that was logged (an OSError).
            ValueError: a link in the folder leads out of it, two files would be one, as `a` and `A` are on
                disks that do not distinguish them, or a glob matches no file.

        Example:
            >>> artifact.download("data", include="train/*.parquet")
            'data'
        """
        source = self._require_source()
        folder = os.fspath(root) if root is not None else default_root(source)
        globs = (include,) if isinstance(include, str) else tuple(include)
        download(source, folder, FileSelection(globs, path_prefix or "", allow_missing_references))
        return folder

    def default_root(self) -> str:
        """Return the folder of a download without `root`: `artifacts/NAME:vN` in the working directory."""
        return default_root(self._require_source())

    def differences(self, root: str | os.PathLike[str] | None = None) -> FolderDifferences:
        """Return which files of a folder are missing, changed, or none of the version.

        A reference may be there or not; of `file://` the content is compared, of others the size.

        Args:
            root: default: `artifacts/NAME:vN` in the working directory.

        Raises:
            ArtifactNotLogged: it was not logged.
        """
        folder = self.default_root() if root is None else os.fspath(root)
        source = self._require_source()
        try:
            return differences(source.entries(), folder)
        finally:
            source.end()

    def verify(self, root: str | os.PathLike[str] | None = None) -> None:
        """Check that a folder has the files of the version and no others; see `differences`.

        Raises:
            ArtifactNotLogged: it was not logged.
            ValueError: a file is missing, was changed, or is none of the version.
        """
        lines = self.differences(root).lines()
        if lines:
            more = f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
            folder = self.default_root() if root is None else os.fspath(root)
            raise ValueError(f"{folder} is not {self.name}: {'; '.join(lines[:_SHOWN])}{more}")

    def file(self, root: str | None = None) -> str:
        """Download the only file of the artifact; return its path.

        Raises:
            ValueError: it has several.
        """
        files = self.files()
        if len(files) != 1:
            raise ValueError(f"the artifact {self.name} has {len(files)} files; use download()")
        return files[0].download(root)

    def logged_by(self) -> Any:
        """Return the run that logged it; None if there is none any more."""
        source = self._require_source()
        return None if source.version.run is None else source.run(source.version.run)

    def used_by(self) -> list[Any]:
        """Return the runs that used it."""
        source = self._require_source()
        source.refresh()
        return [source.run(run_id) for run_id in source.version.used_by]

    def wait(self, timeout: float | None = None) -> Artifact:
        """Wait until a logged artifact has its version, and return the artifact.

        Without a server it has one at once: its number among the versions on this machine.

        Args:
            timeout: seconds; default: a minute.

        Raises:
            ArtifactNotLogged: it was not logged, or has not arrived in time.
        """
        if self._source is None and not self._look(_WAIT_S if timeout is None else timeout):
            raise ArtifactNotLogged(f"the artifact {self._name!r} has not arrived at the server yet")
        return self

    # Logging

    def mark_logged(self, scope: ArtifactScope, digest: str) -> None:
        """Note the scope in which it was logged, and the digest that identifies its version there."""
        self._draft, self._scope, self._digest = None, scope, digest

    def draft(self, aliases: Sequence[str], tags: Sequence[str]) -> tuple[ArtifactDraft, dict[str, Any]]:
        """Return the files to log, and the type, description, metadata, aliases and tags to record.

        Raises:
            ValueError: an invalid alias or tag, or it was logged already.
        """
        self._new_aliases = tuple(checked_aliases(list(aliases)))
        about = {
            "artifact_type": self._type,
            "description": checked_description(self.description or ""),
            "metadata": self.metadata,
            "aliases": list(self._new_aliases),
            "tags": checked_tags(list(tags)),
        }
        ttl_s = seconds_of(self._ttl)
        return self._open_draft(), about if ttl_s is None else {**about, "ttl_s": ttl_s}

    def _open_draft(self) -> ArtifactDraft:
        if self._draft is None:
            raise ValueError(f"the artifact {self._name!r} was logged: make a new one for another version")
        return self._draft

    def _require_source(self) -> ArtifactSource:
        if self._source is None:
            self._look()
        if self._source is None:
            raise ArtifactNotLogged(f"the artifact {self._name!r} has not arrived yet: call wait()")
        return self._source

    def _look(self, timeout_s: float = 0.0) -> bool:
        """Look for the version of a logged artifact until there is one; return whether it exists.

        Raises:
            ArtifactNotLogged: it was not logged.
        """
        if self._scope is None or self._digest is None:
            raise ArtifactNotLogged(f"the artifact {self._name!r} was not logged")
        self._source = lookup.find_content(self._scope, self._name, self._digest, timeout_s)
        return self._source is not None

    def save(self, project: str | None = None, settings: Any = None) -> None:
        """Log the artifact in the open run; without one, in a run of its own.

        One that was logged stays as it is.

        Args:
            project: of the run of its own.
            settings: ignored; W&B's function has it.
        """
        if self._draft is None:
            return
        with _open_run(project) as run:
            run.log_artifact(self)

    def link(self, target_path: str, aliases: Sequence[str] | None = None) -> Artifact:
        """Link the version to a collection, in the open run or a run of its own; see `Run.link_artifact`."""
        with _open_run() as run:
            linked: Artifact = run.link_artifact(self, target_path, aliases)
        return linked

    def __getattr__(self, name: str) -> NoReturn:
        if name in ABSENT_NAMES:
            raise AttributeError(f"runvitals does not have Artifact.{name}; instead: {ABSENT_NAMES[name]}")
        raise AttributeError(f"'Artifact' object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<Artifact {self._name} of the type {self._type}>"


@contextmanager
def _open_run(project: str | None = None) -> Iterator[Any]:
    """Give the open run, or one of its own for this block."""
    package = import_module("runvitals")  # it imports this module
    if package.run is not None:
        yield package.run
    else:
        with package.init(project=project, job_type="auto") as run:
            yield run
