"""The functions of a run that log and use artifacts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from runvitals.sdk.recorded_run import RecordedRun

if TYPE_CHECKING:
    from runvitals.sdk.artifacts.artifact import Artifact
    from runvitals.sdk.artifacts.lookup import ArtifactScope


class RunArtifacts(RecordedRun):
    """The part of `Run` for artifacts. Few runs have any, so what it needs is imported in its functions."""

    def log_artifact(
        self,
        artifact_or_path: Artifact | str | os.PathLike[str],
        name: str | None = None,
        type: str | None = None,
        aliases: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
    ) -> Artifact:
        """Record a version of files, and copy them into the run's folder, as `save` does.

        The version exists on the server once the record has arrived there, and has the alias `latest`.

        If the files are those of the newest version, that one gets the aliases, and there is no new one.

        Args:
            artifact_or_path: an artifact; or a file, a folder or an address such as `s3://…`.
            name, type: those of an artifact given by a path; default: `run-ID-NAME`, and `unspecified`.
            aliases: further names of the version; other versions lose them.
            tags: tags of the version.

        Returns:
            The artifact; `wait()` waits until it has its version.

        Raises:
            ValueError: an invalid name, alias or tag, or an artifact that was logged already.
            RuntimeError: the run is finished.

        Example:
            >>> run.log_artifact("model.pt", name="classifier", type="model", aliases=["best"])
        """
        from runvitals.sdk.artifacts.artifact import Artifact
        from runvitals.sdk.artifacts.draft import record_items

        artifact = (
            artifact_or_path
            if isinstance(artifact_or_path, Artifact)
            else artifact_of(os.fspath(artifact_or_path), name or self._artifact_name(artifact_or_path), type)
        )
        draft, about = artifact.draft([aliases] if isinstance(aliases, str) else aliases or (), tags or ())
        if self.disabled:
            return artifact
        self._must_be_open("log_artifact")
        digests: list[str] = []

        def parts(files: Any) -> Any:
            items = list(record_items(draft.id, about, draft.store(files)))
            digests.append(items[0]["digest"])
            return items

        recorder, step = self._media_recorder(), max(self.step - 1, 0)
        if recorder.artifact(artifact.collection_name, parts, step, self._now_ms):
            artifact.mark_logged(self._artifact_scope(), digests[0])
        self._ensure_monitor()
        return artifact

    def link_artifact(
        self, artifact: Artifact | str, target_path: str, aliases: Sequence[str] | None = None
    ) -> Artifact:
        """Link a version of an artifact to a collection; wait until it has arrived there.

        Args:
            artifact: one that was logged, or is logged now; or `[[entity/]project/]name[:alias]`.
            target_path: `[[entity/]project/]collection`, of the run's own project if it names none. The
                project may be a registry, as `wandb-registry-model` or, if no project is called so, `model`.
                The first version makes the collection.
            aliases: that the version gets in the collection.

        Returns:
            The version in the collection.

        Raises:
            ValueError: an invalid target or alias, or the run is delivered to no server.
            UnknownArtifact: there is no such artifact, project or registry (a LookupError).
            ArtifactNotLogged: the artifact has not arrived on the server.
            ServerError: the server rejected the request or is unreachable.

        Example:
            >>> model = run.log_artifact("model.pt", name="weights", type="model")
            >>> run.link_artifact(model, "wandb-registry-model/classifier", aliases=["staging"])
        """
        from runvitals.sdk.artifacts import links, lookup
        from runvitals.sdk.artifacts.artifact import Artifact

        scope = self._artifact_scope()
        if self.disabled:
            return artifact if isinstance(artifact, Artifact) else Artifact("disabled", "unspecified")
        links.link_target(target_path, scope.entity, self.project)
        if not isinstance(artifact, Artifact):
            artifact = Artifact.from_source(lookup.find(scope, artifact))
        elif not artifact.is_logged:
            self.log_artifact(artifact)
        name = artifact.wait().qualified_name
        return Artifact.from_source(links.link(scope, name, target_path, aliases or ()))

    def use_artifact(
        self,
        artifact_or_name: Artifact | str,
        type: str | None = None,
        aliases: Sequence[str] | None = None,
        use_as: str | None = None,
    ) -> Artifact:
        """Record that the run uses a version of an artifact, and return it.

        Args:
            artifact_or_name: an artifact that was logged; or `[[entity/]project/]name[:alias]`, on the server
                of this run, or without one on this machine.
            type: if given, the type that it must have.
            aliases: not supported; `log_artifact` gives aliases.
            use_as: the purpose.

        Raises:
            UnknownArtifact: there is none (a LookupError).
            ValueError: it has another type, or the name is invalid.
            ServerError: the server rejected the request or is unreachable.
            RuntimeError: the run is finished.

        Example:
            >>> folder = run.use_artifact("mnist:best").download()
        """
        from runvitals.sdk.artifacts import lookup
        from runvitals.sdk.artifacts.artifact import Artifact

        if aliases:
            raise ValueError("use_artifact(): aliases are not supported; log_artifact() gives them")
        if isinstance(artifact_or_name, Artifact):
            artifact = artifact_or_name.wait()
        else:
            artifact = Artifact.from_source(lookup.find(self._artifact_scope(), artifact_or_name))
        if type is not None and artifact.type != type:
            raise ValueError(f"use_artifact(): {artifact.name} has the type {artifact.type!r}, not {type!r}")
        if self.disabled:
            return artifact
        self._must_be_open("use_artifact")
        item = {"action": "use", "artifact": artifact.qualified_name, "use_as": use_as or ""}
        step = max(self.step - 1, 0)
        self._media_recorder().artifact(artifact.collection_name, lambda _: [item], step, self._now_ms)
        self._ensure_monitor()
        return artifact

    def log_model(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        aliases: Sequence[str] | None = None,
    ) -> Artifact:
        """Record a version of a model; see `log_artifact`."""
        return self.log_artifact(path, name, "model", aliases)

    def use_model(self, name: str) -> str:
        """Record that the run uses a model, and download it.

        Returns:
            The path of its file; of its folder, if it has several.

        Raises:
            UnknownArtifact: there is none (a LookupError).
            ServerError: the server rejected the request or is unreachable.
        """
        artifact = self.use_artifact(name)
        folder = artifact.download()
        files = [os.path.join(parent, file) for parent, _, names in os.walk(folder) for file in names]
        return files[0] if len(files) == 1 else folder

    def link_model(
        self,
        path: str | os.PathLike[str],
        registered_model_name: str,
        name: str | None = None,
        aliases: Sequence[str] | None = None,
    ) -> Artifact:
        """Record a version of a model, and link it to a collection of the registry `model`.

        Raises:
            ValueError: see `link_artifact`.
            ServerError: the server rejected the request or is unreachable.
        """
        artifact = self.log_model(path, name)
        return self.link_artifact(artifact, f"model-registry/{registered_model_name}", aliases)

    def log_code(
        self,
        root: str | os.PathLike[str] = ".",
        name: str | None = None,
        include_fn: Callable[..., bool] | None = None,
        exclude_fn: Callable[..., bool] | None = None,
    ) -> Artifact | None:
        """Record the source files in a folder as an artifact of the type `code`.

        Args:
            root: the folder.
            name: of the artifact; default: `source-PROJECT`.
            include_fn, exclude_fn: called with the path of each file, or also with the root: whether it is
                code, by default if it ends in `.py`; and whether it is left out.

        Returns:
            The artifact; None if there are no files.
        """
        from runvitals.sdk.artifacts.source_files import source_files

        folder = os.path.abspath(os.fspath(root))
        return self._log_files(source_files(folder, include_fn, exclude_fn), folder, name)

    def _log_files(self, files: Sequence[str], folder: str, name: str | None) -> Artifact | None:
        from runvitals.sdk.artifacts.artifact import Artifact

        if not files:
            return None
        artifact = Artifact(
            name or f"source-{self.project}".replace("/", "-").replace(":", "-")[:128], "code"
        )
        for path in files:
            artifact.add_file(path, os.path.relpath(path, folder).replace(os.sep, "/"))
        return self.log_artifact(artifact)

    def _artifact_scope(self) -> ArtifactScope:
        from runvitals.sdk.artifacts.lookup import ArtifactScope

        about = self._about
        server = about["server"] if about["mode"] == "online" else None
        folder = None if self.disabled else os.path.dirname(os.path.dirname(self.dir))
        return ArtifactScope(server, folder, about["entity"], self.project)

    def _artifact_name(self, path: str | os.PathLike[str]) -> str:
        """Return the name of an artifact that is given by a path only."""
        last = os.path.basename(os.fspath(path).rstrip("/")) or "files"
        return f"run-{self.id}-{last}".replace("/", "-").replace(":", "-")[:128]


def artifact_of(path: str, name: str, type: str | None, checksum: bool = False) -> Artifact:
    """Return a new artifact of a file, a folder or an address; see `Artifact.add_reference`.

    Raises:
        ValueError: there is no such file, or an invalid name or type.
        OSError: an address cannot be read.
    """
    from runvitals.sdk.artifacts.artifact import Artifact

    artifact = Artifact(name, type or "unspecified")
    if "://" in path:
        artifact.add_reference(path, checksum=checksum or None)
    elif os.path.isdir(path):
        artifact.add_dir(path)
    else:
        artifact.add_file(path)
    return artifact
