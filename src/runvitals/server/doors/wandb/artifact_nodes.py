"""Artifacts as wandb's clients see them: the objects behind the types of `schema/artifacts.graphql`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from fastapi import HTTPException

from runvitals.server.access.actions import Action
from runvitals.server.access.principals import Operator
from runvitals.server.access.resources import ProjectItem
from runvitals.server.artifacts.storage.artifact_store import ArtifactStore
from runvitals.server.artifacts.storage.rows import Collection, CollectionVersion, Entry, Version
from runvitals.server.doors.signed_paths import DOWNLOAD_MS, signed_address
from runvitals.server.doors.wandb.context import WITHOUT_ACCOUNTS, EntityNode, GraphQLContext, node_id
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.run_nodes import ProjectNode, iso_time

_STATES: Final = {"draft": "PENDING", "committed": "COMMITTED", "deleted": "DELETED"}
_KEPT: Final = -2
"""`ttlDurationSeconds` of a version that is not deleted after some time."""
MAX_PAGE: Final = 10_000


class FileOfVersion(msgspec.Struct):
    """Permission to read a file of a version, which a signed address carries."""

    version_id: int
    path: str


class ManifestOfVersion(msgspec.Struct):
    """Permission to read the manifest of a version, which a signed address carries."""

    version_id: int


class ListPart(NamedTuple):
    """The part of a list that a request asks for."""

    skip: int
    limit: int


def page_of(after: str | None, first: int | None, usual: int = 50) -> ListPart:
    """Return the part of a list that begins after a cursor, or raise InvalidArgument."""
    if after and not (after.isascii() and after.isdigit() and len(after) < 10):
        raise InvalidArgument(f"invalid cursor {after[:100]!r}")
    return ListPart(int(after or 0), max(1, min(usual if first is None else first, MAX_PAGE)))


def connection(nodes: Sequence[Any], page: ListPart, total: int, **more: Sequence[Any]) -> dict[str, Any]:
    """Return a part of a list as clients expect it.

    Args:
        more: further fields of the edges.
    """
    edges = [
        {"node": node, "cursor": str(page.skip + number + 1), **{name: more[name][number] for name in more}}
        for number, node in enumerate(nodes)
    ]
    end = page.skip + len(nodes)
    return {"totalCount": total, "edges": edges, "pageInfo": page_info(str(end), bool(nodes) and end < total)}


def page_info(end: str | None, more: bool) -> dict[str, Any]:
    """Return where a part of a list ends."""
    return {"endCursor": end, "hasNextPage": more, "hasPreviousPage": False, "startCursor": None}


def artifacts_of(context: GraphQLContext) -> ArtifactStore:
    """Return the tables of artifacts."""
    return context.metadata_store.artifacts


class TypeNode(NamedTuple):
    """A type of artifacts in a project."""

    project: ProjectNode
    name: str
    number: int = 0
    created_ms: int = 0
    description: str | None = None

    @property
    def id(self) -> str:
        """The id of the type in GraphQL."""
        return node_id("ArtifactType", self.number)

    @property
    def created_at(self) -> str:
        """When the first collection of the type was created, in UTC."""
        return iso_time(self.created_ms)


class CollectionNode:
    """A collection of a project that the requester may read."""

    def __init__(self, project: ProjectNode, row: Collection, state: str = "READY") -> None:
        self.project = project
        self.row = row
        self.state = state
        self.id = node_id(_TYPENAMES[row.kind], row.id)
        self.name = row.name
        self.description = row.description or None  # clients read no empty one
        self.created_at = iso_time(row.created_ms)
        self.updated_at = iso_time(row.updated_ms)
        self.default_artifact_type = TypeNode(project, row.type, row.id, row.created_ms)
        self.digest_algorithm = "MANIFEST_MD5"
        self.tags = {"edges": [{"node": tag_node(tag)} for tag in row.tags]}


class SequenceNode(CollectionNode):
    """The versions that were logged under a name."""

    __typename = "ArtifactSequence"


class PortfolioNode(CollectionNode):
    """Versions that were linked."""

    __typename = "ArtifactPortfolio"


_TYPENAMES: Final = {"sequence": "ArtifactSequence", "portfolio": "ArtifactPortfolio"}


def collection_node(context: GraphQLContext, row: Collection, state: str = "READY") -> CollectionNode:
    """Return a collection, whose project the requester may read."""
    return (SequenceNode if row.kind == "sequence" else PortfolioNode)(project_of(context, row), row, state)


def tag_node(tag: str) -> dict[str, Any]:
    """Return a tag. Its id is made of its name: tags are nothing by themselves."""
    return {"id": f"Tag:{tag}", "name": tag, "tagCategoryName": None}


class MembershipNode:
    """A version in a collection."""

    def __init__(self, context: GraphQLContext, row: CollectionVersion, artifact: ArtifactNode) -> None:
        self.row = row
        self.artifact = artifact
        self.artifact_collection = collection_node(context, row.collection)
        self.id = node_id("ArtifactCollectionMembership", row.id)
        self.version_index = row.number
        self.created_at = iso_time(row.created_ms)
        self.aliases = alias_nodes(row, self.artifact_collection)


def alias_nodes(row: CollectionVersion, collection: CollectionNode) -> list[dict[str, Any]]:
    """Return the aliases of a version in a collection, its number too."""
    return [
        {"id": f"ArtifactAlias:{row.id}:{alias}", "alias": alias, "artifactCollection": collection}
        for alias in (f"v{row.number}", *row.aliases)
    ]


class ArtifactNode:
    """A version of an artifact.

    Args:
        reader_project: the project through which the requester reads it: its own, or that of a portfolio.
    """

    def __init__(
        self,
        context: GraphQLContext,
        row: Version,
        reader_project: ProjectNode,
        memberships: Sequence[CollectionVersion],
    ) -> None:
        self._context = context
        self.row = row
        self.reader_project = reader_project
        self.memberships = memberships
        self.artifact_sequence = collection_node(context, row.collection)
        self.id = node_id("Artifact", row.id)
        self.artifact_type = self.artifact_sequence.default_artifact_type
        self.version_index = row.version
        self.state = _STATES[row.state]
        self.digest = row.digest
        self.digest_algorithm = "MANIFEST_MD5"
        self.description = row.description or None
        ttl_s = row.collection.ttl_s if row.ttl_s is None else row.ttl_s
        self.ttl_duration_seconds = _KEPT if ttl_s is None or ttl_s <= 0 else ttl_s
        self.ttl_is_inherited = row.ttl_s is None
        self.tags = [tag_node(tag) for tag in row.tags]
        self.history_step = row.history_step
        self.size = self.storage_bytes = row.bytes
        self.file_count = row.files
        self.commit_hash = row.digest
        self.created_at = iso_time(row.created_ms)
        self.updated_at = iso_time(row.updated_ms)

    @property
    def metadata(self) -> str:
        """The metadata as JSON in a text."""
        return json.dumps(self.row.metadata)

    @property
    def aliases(self) -> list[dict[str, Any]]:
        """The aliases in all collections that the requester may read."""
        names = []
        for membership in self.memberships:
            if may_read(self._context, project_of(self._context, membership.collection)):
                names += alias_nodes(membership, collection_node(self._context, membership.collection))
        return names

    @property
    def current_manifest(self) -> dict[str, Any] | None:
        """The manifest; None of a draft."""
        if self.row.state == "draft":
            return None
        return manifest_node(self._context, self.row)


def artifact_nodes(
    context: GraphQLContext, versions: Sequence[Version], project: ProjectNode | None = None
) -> list[ArtifactNode]:
    """Return versions, with their aliases.

    Args:
        project: the project through which the requester reads them; None: their own.
    """
    context.count_rows(len(versions))
    memberships = artifacts_of(context).collections.memberships(version.id for version in versions)
    return [
        ArtifactNode(context, row, project or project_of(context, row.collection), memberships[row.id])
        for row in versions
    ]


def membership_node(context: GraphQLContext, row: CollectionVersion) -> MembershipNode:
    """Return a version in a collection whose project the requester may read."""
    (artifact,) = artifact_nodes(context, [row.version], project_of(context, row.collection))
    return MembershipNode(context, row, artifact)


class FileNode:
    """A file of a version. Its address can be asked for by who may download it."""

    def __init__(self, artifact: ArtifactNode, entry: Entry, context: GraphQLContext) -> None:
        self._context = context
        self._entry = entry
        self._artifact = artifact
        self.name = self.display_name = self.storage_path = entry.path
        self.size_bytes = entry.bytes or 0
        self.digest = self.md5 = entry.digest
        self.artifact = artifact
        self.mimetype = None
        self.updated_at = artifact.updated_at

    @property
    def id(self) -> str:
        """The id of the file in GraphQL."""
        return f"{self._artifact.id}:{self._entry.path}"

    @property
    def url(self) -> str:
        """The same as `direct_url`."""
        return self.direct_url

    @property
    def direct_url(self) -> str:
        """A signed address of the content, or the address that the file refers to."""
        if self._entry.reference is not None:
            return self._entry.reference
        require(self._context, Action.ARTIFACT_DOWNLOAD, self._artifact.reader_project, self._artifact.row.id)
        allowed = FileOfVersion(self._artifact.row.id, self._entry.path)
        name = self._entry.path.rpartition("/")[2]
        return signed_address(self._context.request, "artifact-file", name, allowed, DOWNLOAD_MS)


def manifest_node(context: GraphQLContext, row: Version, upload_url: str | None = None) -> dict[str, Any]:
    """Return the manifest of a version, and where to send it."""
    request, number = context.request, node_id("ArtifactManifest", row.id)
    name = "wandb_manifest.json"
    address = signed_address(request, "artifact-manifest", name, ManifestOfVersion(row.id), DOWNLOAD_MS)
    file: dict[str, Any] = {
        "id": number,
        "name": name,
        "displayName": name,
        "directUrl": address,
        "url": address,
    }
    file |= {"uploadUrl": upload_url, "uploadHeaders": [], "sizeBytes": 0}
    return {"id": number, "digest": row.digest, "file": file}


# Rights


def project_of(context: GraphQLContext, row: Collection) -> ProjectNode:
    """Return the project of a collection."""
    return project_with(context, row.project_id, row.project, row.entity)


def project_with(context: GraphQLContext, number: int, name: str, entity: str | None) -> ProjectNode:
    """Return a project whose number and names are known. What the requester may do in it is not checked."""
    if isinstance(context.requester.principal, Operator):
        return ProjectNode(number, name, EntityNode(None, WITHOUT_ACCOUNTS), None)
    resource = context.access.directory.project(number)
    owner = EntityNode(resource.entity.id, entity or "", resource.entity.owner_id is None)
    return ProjectNode(number, name, owner, resource)


def may_read(context: GraphQLContext, project: ProjectNode) -> bool:
    """Return whether the requester may see the artifacts of a project."""
    return may(context, Action.ARTIFACT_READ, project)


def may(context: GraphQLContext, action: Action, project: ProjectNode) -> bool:
    """Return whether the requester may do this with the artifacts of a project."""
    if project.resource is None:
        return True
    return context.access.may(context.requester, action, ProjectItem("artifact", 0, project.resource))


def require(
    context: GraphQLContext, action: Action, project: ProjectNode, number: int = 0, what: str | None = None
) -> None:
    """Raise 401, 403 or 404 unless the requester may do this with an artifact of a project, or a new one.

    Args:
        what: as the request named it; None: the artifact with the number, or the project by its name.
    """
    if project.resource is not None:
        default_name = f"artifact {node_id('Artifact', number)!r}" if number else f"project {project.name!r}"
        what = what or default_name
        item = ProjectItem("artifact", number, project.resource)
        context.access.require(context.requester, action, item, what)


def place_of(context: GraphQLContext, row: Version, action: Action = Action.ARTIFACT_READ) -> ProjectNode:
    """Return the project through which the requester may read or download a version.

    Its own, or that of a portfolio which has it; its own if none allows it.
    """
    own = project_of(context, row.collection)
    if may(context, action, own):
        return own
    memberships = artifacts_of(context).collections.memberships([row.id])[row.id]
    others = (project_of(context, membership.collection) for membership in memberships)
    return next((project for project in others if may(context, action, project)), own)


def readable(context: GraphQLContext, rows: Iterable[Version]) -> list[Version]:
    """Return those of some versions that the requester may see."""
    return [row for row in rows if may_read(context, project_of(context, row.collection))]


def not_found(what: str) -> HTTPException:
    """404: there is none, or the requester may not know of it."""
    return HTTPException(404, f"there is no {what}")
