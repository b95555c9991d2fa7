"""`…/collections/{collection}/versions`: linked versions, their files, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from fastapi import HTTPException, Path, Query, Request, Response

from runvitals.model.artifact_names import MAX_PATH
from runvitals.model.errors import UnknownProject
from runvitals.server.access.actions import Action
from runvitals.server.access.resources import ProjectItem
from runvitals.server.artifacts.routes.artifact_models import EntriesPage
from runvitals.server.artifacts.routes.artifacts import files_of
from runvitals.server.artifacts.routes.portfolios import source_of
from runvitals.server.artifacts.routes.small_contents import SMALL_CONTENTS, Paths, small_contents_response
from runvitals.server.artifacts.storage.rows import (
    ArtifactConflict,
    CollectionVersion,
    UnknownArtifact,
)
from runvitals.server.files.routes.bucket_redirect import bucket_redirect
from runvitals.server.http.content_response import content_response
from runvitals.server.http.errors import checking
from runvitals.server.http.listing import ThePage, stored_page
from runvitals.server.http.router import Router
from runvitals.server.outside_services import OutsideServices
from runvitals.server.registry.downloads import count_download
from runvitals.server.registry.rights import check_source
from runvitals.server.registry.routes import registry_models as models
from runvitals.server.registry.routes.collections import ArtifactConflictError
from runvitals.server.registry.routes.parameters import (
    COLLECTION,
    VERSION,
    NamedRegistry,
    TheCollection,
    TheLinkedVersion,
    TheRegistryOfPath,
    requires,
)
from runvitals.server.service_parameters import TheOutsideServices, received_files
from runvitals.server.user_content.markdown import MAX_CHARACTERS, html_of
from runvitals.store.errors import NotFound

_MAX_USERS: Final = 1000
_CARDS: Final = ("README.md", "readme.md", "MODEL_CARD.md", "model_card.md")

VersionSort = Literal["-version", "version", "-bytes", "bytes", "-downloads", "downloads"]
router = Router()


@router.get(f"{COLLECTION}/versions", *requires("registry:read"), response_model=models.LinkedVersionsPage)
def versions(
    registry: TheRegistryOfPath,
    collection: TheCollection,
    page: ThePage,
    field: Annotated[
        list[Annotated[str, Query(max_length=256)]] | None,
        Query(
            description="Fields of the runs that made the versions, such as `summary.loss`.", max_length=50
        ),
    ] = None,
    sort: VersionSort = "-version",
    tag: models.Tag = None,
    author: Annotated[str | None, Query(description="Who linked it.", max_length=64)] = None,
) -> dict[str, Any]:
    """The versions of a collection, the newest first."""
    table = registry.access.metadata_store.registry_collections
    rows, total = table.versions(collection.id, sort, page.after_id, page.limit, tag=tag, author=author)
    return stored_page("versions", shown_versions(registry, rows, field or []), total, page)


def shown_versions(
    registry: NamedRegistry, rows: Sequence[CollectionVersion], fields: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return versions as responses show them, without runs and projects that the requester may not read."""
    store = registry.access.metadata_store
    said = store.model_versions.of_memberships([row.id for row in rows])
    runs = _runs(registry, [row.version.run_id for row in rows if row.version.run_id is not None])
    values = store.registry_collections.field_values(list(runs), fields) if fields else {}
    sources = _sources(registry, rows)
    versions = []
    for row in rows:
        version, more = row.version, said[row.id]
        names = [tag for tag, value in more.tags.items() if not value]
        versions.append(
            {
                "collection": row.collection.name,
                "version": row.number,
                "aliases": list(row.aliases),
                "tags": names,
                "properties": {tag: value for tag, value in more.tags.items() if value},
                "stage": more.stage,
                "description": more.description or "",
                "author": more.author,
                "created_ms": row.created_ms,
                "downloads": more.downloads,
                "digest": version.digest,
                "bytes": version.bytes,
                "files": version.files,
                "metadata": version.metadata,
                **runs.get(version.run_id or 0, _NO_RUN),
                "source": sources.get(row.id),
                "fields": values.get(version.run_id or 0, {}),
            }
        )
    return versions


_NO_RUN: Final = {"run": None, "run_entity": None, "run_project": None}


def _runs(registry: NamedRegistry, ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return the runs that the requester may read, by number, in the order of these numbers."""
    runs = registry.access.metadata_store.artifacts.lineage_graph.runs(ids)
    readable = registry.access.directory.readable_runs(registry.requester.principal)
    return {
        number: {"run": run.uid, "run_entity": run.entity, "run_project": run.project}
        for number in ids
        if (run := runs.get(number)) is not None
        and not run.deleted
        and (readable is None or readable.has(run))
    }


def _sources(registry: NamedRegistry, rows: Sequence[CollectionVersion]) -> dict[int, dict[str, Any]]:
    """The artifacts behind versions, by membership, where the requester may read their projects."""
    access = registry.access
    sources = {}
    for row in rows:
        own = row.version.collection
        if own.id == row.collection.id:
            continue
        try:
            project = access.directory.project(own.project_id)
        except (NotFound, UnknownProject):  # deleted a moment ago
            continue
        if access.may(registry.requester, Action.ARTIFACT_READ, ProjectItem("artifact", 0, project)):
            sources[row.id] = {
                "entity": own.entity,
                "project": own.project,
                "name": own.name,
                "version": row.version.version or 0,
            }
    return sources


@router.post(
    f"{COLLECTION}/versions",
    *requires("registry:link"),
    response_model=models.LinkedVersionSchema,
    status_code=201,
)
def link(
    body: models.NewRegistryLink,
    registry: TheRegistryOfPath,
    collection: Annotated[str, Path(max_length=256)],
    response: Response,
) -> dict[str, Any]:
    """Link a version of an artifact; the first one makes the collection."""
    access, artifacts = registry.access, registry.access.metadata_store.artifacts
    source = source_of(access, registry.requester, body, registry.row.entity_id)
    check_source(access, registry.requester, source.version.collection, registry.row.id)
    try:
        with checking("collection"):
            member = artifacts.links.link(
                source.version.id,
                registry.row.id,
                collection,
                body.aliases,
                registry.now_ms,
                registry.changer,
            )
    except UnknownArtifact as error:
        raise HTTPException(404, str(error)) from None
    except ArtifactConflict as error:
        raise ArtifactConflictError(error) from None
    entity, name = registry.row.entity, registry.row.name
    response.headers["location"] = (
        f"/api/v1/teams/{entity}/registries/{name}/collections/{collection}/versions/{member.number}"
    )
    return shown_versions(registry, [member])[0]


@router.get(VERSION, *requires("registry:read"), response_model=models.LinkedVersionDetail)
def version(
    registry: TheRegistryOfPath, version: TheLinkedVersion, outside: TheOutsideServices, request: Request
) -> dict[str, Any]:
    """A version by number or alias, with its description and model card as HTML."""
    return _detail(registry, version, outside, request)


def _detail(
    registry: NamedRegistry, row: CollectionVersion, outside: OutsideServices, request: Request
) -> dict[str, Any]:
    store = registry.access.metadata_store
    version, images = shown_versions(registry, [row])[0], outside.image_links()
    users = _runs(registry, list(store.artifacts.lineage.users(row.version.id, _MAX_USERS)))
    model = next(iter(store.registered_models.of_collections([row.collection.id])), None)
    return {
        **version,
        "description_html": html_of(version["description"][:MAX_CHARACTERS], images),
        "card_html": html_of(_card(registry, row, request), images),
        "used_by": list(users.values()),
        "mlflow_name": row.collection.name if model is None else model.name,
    }


def _card(registry: NamedRegistry, row: CollectionVersion, request: Request) -> str:
    """Return the text of the model card of a version; empty: it has none that can be shown."""
    store = registry.access.metadata_store
    for entry in store.artifacts.entries.named(row.version.id, _CARDS):
        opened = None if entry.stored is None else received_files(request).open_file(entry.stored)
        if opened is not None:
            with opened.file as content:
                return content.read(MAX_CHARACTERS).decode("utf-8", "replace")[:MAX_CHARACTERS]
    return ""


@router.patch(VERSION, *requires("registry:link"), response_model=models.LinkedVersionDetail)
def change(
    body: models.LinkedVersionChanges,
    registry: TheRegistryOfPath,
    version: TheLinkedVersion,
    outside: TheOutsideServices,
    request: Request,
) -> dict[str, Any]:
    """Describe or tag a version in this registry."""
    store, now_ms = registry.access.metadata_store, registry.now_ms
    said = store.model_versions.of_memberships([version.id])[version.id]
    if body.description is not None:
        store.model_versions.change(said, now_ms, description=body.description)
    tags: dict[str, str | None] = {**dict.fromkeys(body.add_tags, ""), **body.properties}
    tags |= dict.fromkeys(body.remove_tags)
    if tags:
        store.model_versions.change_tags(said, tags, now_ms)
    return _detail(registry, version, outside, request)


@router.delete(VERSION, *requires("registry:link"), status_code=204)
def unlink(registry: TheRegistryOfPath, collection: TheCollection, version: TheLinkedVersion) -> None:
    """Remove a version from a collection; it stays in the project that logged it."""
    store = registry.access.metadata_store
    said = store.model_versions.of_memberships([version.id])[version.id]
    store.model_versions.delete(collection.id, said, registry.now_ms, registry.changer)


# Files


@router.get(f"{VERSION}/files", *requires("registry:read"), response_model=EntriesPage)
def files(registry: TheRegistryOfPath, version: TheLinkedVersion, page: ThePage) -> dict[str, Any]:
    """The files and references of a version, by path."""
    return files_of(registry.access, version, page)


@router.get(
    f"{VERSION}/contents", *requires("registry:download"), response_class=Response, responses=SMALL_CONTENTS
)
def small_contents(
    request: Request, registry: TheRegistryOfPath, version: TheLinkedVersion, paths: Paths
) -> Response:
    """Small files of a version together, at most 1 MiB: those that are left out are fetched one by one."""
    response = small_contents_response(request, registry.access, version.version.id, paths)
    count_download(registry.access.metadata_store, registry.requester, version.id, registry.now_ms)
    return response


@router.get(f"{VERSION}/files/{{path:path}}", *requires("registry:download"), response_class=Response)
def file(
    request: Request,
    registry: TheRegistryOfPath,
    version: TheLinkedVersion,
    path: Annotated[str, Path(description="The path of a file of the version.", max_length=MAX_PATH)],
    download: Annotated[
        str | None, Query(description="The name under which to save it.", max_length=1000)
    ] = None,
    redirect: Annotated[
        bool, Query(description="To a signed address in the bucket of the team, if it has one.")
    ] = False,
) -> Response:
    """A file of a version. Who reads the registry reads it, also where its project is restricted."""
    store = registry.access.metadata_store
    entry = store.artifacts.entries.get(version.version.id, path)
    if entry is None or entry.stored is None:
        raise HTTPException(404, f"the version has no file {path!r}")
    if redirect and (elsewhere := bucket_redirect(received_files(request), entry.stored)) is not None:
        count_download(store, registry.requester, version.id, registry.now_ms)
        return elsewhere
    opened = received_files(request).open_file(entry.stored)
    if opened is None:
        raise HTTPException(404, f"the content of {path!r} is lost")
    count_download(store, registry.requester, version.id, registry.now_ms)
    store.read_days.note_version(version.version.id, registry.now_ms)
    return content_response(request, opened, entry.stored.sha256, download)
