"""Logs, uses, changes and deletes artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from runvitals.model.artifact_names import (
    checked_digest,
    checked_label,
    checked_metadata,
    checked_path,
)
from runvitals.server.access.actions import Action
from runvitals.server.artifacts.storage.rows import NewVersion, Version
from runvitals.server.doors.signed_paths import UPLOAD_MS, signed_address
from runvitals.server.doors.wandb.artifact_nodes import (
    TypeNode,
    artifact_nodes,
    artifacts_of,
    manifest_node,
    not_found,
    page_info,
    require,
)
from runvitals.server.doors.wandb.artifact_requests import (
    Input,
    checked_int64,
    draft_to_complete,
    project_named,
    tag_names,
    valid,
    version_for,
)
from runvitals.server.doors.wandb.context import GraphQLContext, number_of
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_nodes import find_run

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

ARTIFACT_WRITES: Final = Resolvers("artifact_writes")
_MAX_FILES: Final = 20_000
"""The most files in one request for addresses to send them to."""


class FileToSend(msgspec.Struct):
    """Permission to send a file of a project's artifacts, which a signed address carries."""

    project_id: int
    digest: str


class ManifestToSend(msgspec.Struct):
    """Permission to send the manifest of a draft, which a signed address carries."""

    version_id: int
    digest: str | None


# Logging


@ARTIFACT_WRITES.field("Mutation", "createArtifactType")
def create_artifact_type(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Return a type of artifacts. Types exist as soon as a collection has them: nothing is stored."""
    context: GraphQLContext = info.context
    project = project_named(context, input["project_name"], input["entity_name"])
    require(context, Action.ARTIFACT_CREATE, project)
    name = valid(checked_label, "type of artifacts", input["name"])
    return {"artifactType": TypeNode(project, name, created_ms=context.now_ms())}


@ARTIFACT_WRITES.field("Mutation", "createArtifact")
def create_artifact(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Return a draft for a content, or the version that has it."""
    context: GraphQLContext = info.context
    project = project_named(context, input["project_name"], input["entity_name"])
    require(context, Action.ARTIFACT_CREATE, project)
    names = input.get("artifact_collection_names") or [input.get("artifact_collection_name") or ""]
    if len(names) != 1:
        raise InvalidArgument("an artifact is logged under one name: link it to further ones")
    run = find_run(context, project, input["run_name"]) if input.get("run_name") else None
    aliases = [entry["alias"] for entry in input.get("aliases") or ()]
    new = NewVersion(
        project.number,
        input["artifact_type_name"],
        names[0],
        input["digest"],
        tuple(alias for alias in aliases if alias),
        tuple(tag_names(input.get("tags"))),
        input.get("description") or "",
        valid(checked_metadata, input.get("metadata")),
        checked_int64("ttlDurationSeconds", input.get("ttl_duration_seconds")),
        checked_int64("historyStep", input.get("history_step")),
        None if run is None else run.id,
        context.requester.user_id,
        input.get("client_id"),
        input.get("distributed_id"),
    )
    row = valid(artifacts_of(context).versions.begin, new, context.now_ms())
    return {"artifact": artifact_nodes(context, [row])[0]}


@ARTIFACT_WRITES.field("Mutation", "createArtifactManifest")
def create_artifact_manifest(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Return where to send the manifest of a draft."""
    context: GraphQLContext = info.context
    row = draft_to_complete(context, number_of("Artifact", input["artifact_id"]))
    kind = (input.get("type") or "FULL").lower()
    _begin_manifest(context, row, kind, input.get("base_artifact_id"))
    return _manifest_to_send(context, row, input["digest"])


@ARTIFACT_WRITES.field("Mutation", "updateArtifactManifest")
def update_artifact_manifest(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Return where to send a manifest that adds to another one."""
    context: GraphQLContext = info.context
    row = draft_to_complete(context, number_of("ArtifactManifest", input["artifact_manifest_id"]))
    if input.get("base_artifact_id"):
        _begin_manifest(context, row, row.manifest_kind, input["base_artifact_id"])
    return _manifest_to_send(context, row, input.get("digest"))


def _begin_manifest(context: GraphQLContext, row: Version, kind: str, base: str | None) -> None:
    base_id = None if base is None else number_of("Artifact", base)
    if kind == "full":
        base_id = None  # it has all entries
    valid(artifacts_of(context).entries.begin, row.id, kind, base_id, context.now_ms())


def _manifest_to_send(context: GraphQLContext, row: Version, digest: str | None) -> dict[str, Any]:
    address = signed_address(
        context.request,
        "artifact-manifest",
        "wandb_manifest.json",
        ManifestToSend(row.id, digest or None),
        UPLOAD_MS,
    )
    return {"artifactManifest": manifest_node(context, row, address)}


@ARTIFACT_WRITES.field("Mutation", "createArtifactFiles")
def create_artifact_files(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Return where to send files of drafts. There is no address for what the project has already."""
    context: GraphQLContext = info.context
    files: Sequence[Input] = input["artifact_files"]
    if len(files) > _MAX_FILES:
        raise InvalidArgument(f"{len(files)} files in a request; expected at most {_MAX_FILES}")
    ids = {file["artifact_id"] for file in files}
    drafts = {id: draft_to_complete(context, number_of("Artifact", id)) for id in ids}
    projects = {row.collection.project_id for row in drafts.values()}
    if len(projects) > 1:
        raise InvalidArgument("the files of a request belong to artifacts of one project")
    for file in files:
        valid(checked_path, file["name"])
        valid(checked_digest, file["md5"])
    stored: set[str] = set()
    for project_id in projects:
        digests = [file["md5"] for file in files]
        stored = artifacts_of(context).contents.known(project_id, digests, context.now_ms())
    nodes = []
    for file in files:
        row, name, digest = drafts[file["artifact_id"]], file["name"], file["md5"]
        address = None
        if digest not in stored:
            allowed = FileToSend(row.collection.project_id, digest)
            short = name.rpartition("/")[2]
            address = signed_address(context.request, "artifact-file", short, allowed, UPLOAD_MS)
        nodes.append(_file_to_send(file, address))
    edges = [{"node": node, "cursor": node["name"]} for node in nodes]
    return {"files": {"totalCount": len(edges), "edges": edges, "pageInfo": page_info(None, False)}}


def _file_to_send(file: Input, address: str | None) -> dict[str, Any]:
    """Return a file that a client asked for the address of."""
    name, digest = file["name"], file["md5"]
    return {
        "id": f"{file['artifact_id']}:{name}",
        "name": name,
        "displayName": name,
        "storagePath": name,
        "uploadUrl": address,
        "uploadHeaders": [],
        "artifact": {"id": file["artifact_id"]},
        "sizeBytes": 0,
        "digest": digest,
        "md5": digest,
    }


@ARTIFACT_WRITES.field("Mutation", "completeMultipartUploadArtifact")
def complete_multipart(_: None, info: Info, input: Input) -> None:
    """Refuse: files are sent whole, and this server offers no addresses of parts."""
    raise InvalidArgument("this server takes files whole, not in parts")


@ARTIFACT_WRITES.field("Mutation", "commitArtifact")
def commit_artifact(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Complete a draft: it becomes the latest version."""
    context: GraphQLContext = info.context
    row = version_for(context, input["artifact_id"], Action.ARTIFACT_CREATE)
    row = valid(artifacts_of(context).versions.commit, row.id, context.now_ms())
    return {"artifact": artifact_nodes(context, [row])[0]}


@ARTIFACT_WRITES.field("Mutation", "useArtifact")
def use_artifact(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Note that a run uses a version."""
    context: GraphQLContext = info.context
    row = version_for(context, input["artifact_id"], Action.ARTIFACT_READ)
    project = project_named(context, input["project_name"], input["entity_name"])
    run = find_run(context, project, input["run_name"])
    if run is None:
        raise not_found(f"run {input['run_name'][:100]!r}")
    if project.resource is not None:
        context.access.require(
            context.requester, Action.RUN_CREATE, project.resource, f"project {project.name!r}"
        )
    used_as = input.get("used_as") or ""
    valid(artifacts_of(context).lineage.add, row.id, run.id, used_as, context.now_ms())
    return {"artifact": artifact_nodes(context, [row])[0]}
