"""`/projects/{project}/artifacts`: the artifacts of a project, their versions and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import Depends, HTTPException, Path, Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from runvitals.model.artifact_names import MAX_PATH
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.artifacts.routes import artifact_models as models
from runvitals.server.artifacts.routes.small_contents import SMALL_CONTENTS, Paths, small_contents_response
from runvitals.server.artifacts.storage.rows import Collection, CollectionVersion, Entry
from runvitals.server.files.routes.bucket_redirect import bucket_redirect
from runvitals.server.http.content_response import content_response
from runvitals.server.http.listing import PageRequest, ThePage, stored_page
from runvitals.server.http.router import Router
from runvitals.server.runs.routes.parameters import ProjectNumber
from runvitals.server.service_parameters import TheAccess, received_files
from runvitals.server.services import shared_services_of

OWNED: Final = "/entities/{entity}/projects/{project}/artifacts"
PLAIN: Final = "/projects/{project:path}/artifacts"
_MAX_USERS: Final = 1000
READS: Final = [needs("artifact:read")]
DOWNLOADS: Final = [needs("artifact:download")]

router = Router()


async def the_project_number(
    project: Annotated[str, Path(max_length=256)], number: ProjectNumber, access: TheAccess
) -> int:
    """The number of the project of the path.

    Raises:
        HTTPException: 404 if there is none.
    """
    if number is None:  # on a server without accounts, where no right is checked
        projects = await run_in_threadpool(access.metadata_store.projects.named, project)
        number = projects[0][1] if projects else None
    if number is None:
        raise HTTPException(404, f"there is no project {project!r}")
    return number


TheProjectNumber = Annotated[int, Depends(the_project_number)]
Name = Annotated[str, Path(description="The name of an artifact.", max_length=256)]
Alias = Annotated[str, Path(description="An alias, or a version such as `v3`.", max_length=256)]


def the_version(project: TheProjectNumber, name: Name, alias: Alias, access: TheAccess) -> CollectionVersion:
    """The version of the path.

    Raises:
        HTTPException: 404 if there is none.
    """
    collections = access.metadata_store.artifacts.collections
    collection = collections.named(project, name)
    member = None if collection is None else collections.member_of(collection.id, alias)
    if member is None:
        raise _no_version(name, alias)
    return member


TheVersion = Annotated[CollectionVersion, Depends(the_version)]


def the_version_id(project: TheProjectNumber, name: Name, alias: Alias, access: TheAccess) -> int:
    """The id of the version of the path, for its files.

    Raises:
        HTTPException: 404 if there is none.
    """
    version_id = access.metadata_store.artifacts.collections.version_id(project, name, alias)
    if version_id is None:
        raise _no_version(name, alias)
    return version_id


def _no_version(name: str, alias: str) -> HTTPException:
    return HTTPException(404, f"there is no artifact {f'{name}:{alias}'!r} in the project")


TheVersionId = Annotated[int, Depends(the_version_id)]


@router.get(OWNED, *READS, response_model=models.CollectionsPage)
@router.get(PLAIN, *READS, response_model=models.CollectionsPage)
def collections(
    project: TheProjectNumber,
    page: ThePage,
    access: TheAccess,
    type: Annotated[str | None, Query(description="Only artifacts of this type.", max_length=256)] = None,
) -> Any:
    """The artifacts of a project, by name."""
    table = access.metadata_store.artifacts.collections
    rows, total = table.of_project(project, type, page.after_id, page.limit)
    return stored_page("collections", [_collection(row) for row in rows], total, page)


@router.get(OWNED + "/{name}", *READS, response_model=models.ArtifactsPage)
@router.get(PLAIN + "/{name}", *READS, response_model=models.ArtifactsPage)
def versions(
    request: Request,
    project: TheProjectNumber,
    name: Name,
    page: ThePage,
    access: TheAccess,
    digest: Annotated[
        str | None, Query(description="Only the version with these files.", max_length=256)
    ] = None,
) -> Any:
    """The versions of an artifact, the newest first."""
    table = access.metadata_store.artifacts.collections
    collection = table.named(project, name)
    if collection is None:
        raise HTTPException(404, f"there is no artifact {name!r} in the project")
    if digest is not None:
        rows = table.with_digest(collection.id, digest)
        return {"artifacts": [_to_response(request, row) for row in rows], "total": len(rows), "next": None}
    rows = table.members(collection.id, page.after_id, page.limit, oldest_first=False)
    expiries = access.metadata_store.artifacts.versions.expiries(row.version.id for row in rows)
    responses = [_to_response(request, row, expires_ms=expiries.get(row.version.id)) for row in rows]
    return {**stored_page("artifacts", responses, collection.versions, page), "ttl_s": collection.ttl_s}


@router.get(OWNED + "/{name}/{alias}", *READS, response_model=models.ArtifactSchema)
@router.get(PLAIN + "/{name}/{alias}", *READS, response_model=models.ArtifactSchema)
def version(request: Request, version: TheVersion, access: TheAccess) -> Any:
    """A version by alias or number, with the runs that used it."""
    number = version.version.id
    users = access.metadata_store.artifacts.lineage.users(number, _MAX_USERS)
    expiries = access.metadata_store.artifacts.versions.expiries([number])
    return _to_response(request, version, users, expiries.get(number))


@router.get(OWNED + "/{name}/{alias}/files", *READS, response_model=models.EntriesPage)
@router.get(PLAIN + "/{name}/{alias}/files", *READS, response_model=models.EntriesPage)
def files(version: TheVersion, page: ThePage, access: TheAccess) -> Any:
    """The files and references of a version, by path."""
    return files_of(access, version, page)


@router.get(OWNED + "/{name}/{alias}/content", *DOWNLOADS, response_class=Response)
@router.get(PLAIN + "/{name}/{alias}/content", *DOWNLOADS, response_class=Response)
def content(
    request: Request,
    version_id: TheVersionId,
    access: TheAccess,
    path: Annotated[str, Query(description="The path of a file of the version.", max_length=MAX_PATH)],
    download: Annotated[
        str | None, Query(description="The name under which to save it.", max_length=1000)
    ] = None,
    redirect: Annotated[
        bool, Query(description="To a signed address in the bucket of the team, if it has one.")
    ] = False,
) -> Response:
    """A file of a version."""
    entry = access.metadata_store.artifacts.entries.get(version_id, path)
    if entry is None or entry.stored is None:
        raise HTTPException(404, f"the artifact has no file {path!r}")
    access.metadata_store.read_days.note_version(version_id, access.clock())
    if redirect and (elsewhere := bucket_redirect(received_files(request), entry.stored)) is not None:
        return elsewhere
    opened = received_files(request).open_file(entry.stored)
    if opened is None:
        raise HTTPException(404, f"the content of {path!r} is lost")
    return content_response(request, opened, entry.stored.sha256, download)


@router.get(OWNED + "/{name}/{alias}/contents", *DOWNLOADS, response_class=Response, responses=SMALL_CONTENTS)
@router.get(PLAIN + "/{name}/{alias}/contents", *DOWNLOADS, response_class=Response, responses=SMALL_CONTENTS)
def small_contents(request: Request, version_id: TheVersionId, access: TheAccess, paths: Paths) -> Response:
    """Small files of a version together, at most 1 MiB: those that are left out are fetched one by one."""
    return small_contents_response(request, access, version_id, paths)


def _collection(row: Collection) -> dict[str, Any]:
    return {name: getattr(row, name) for name in models.CollectionSchema.model_fields}


def files_of(access: AccessControl, version: CollectionVersion, page: PageRequest) -> dict[str, Any]:
    """Return a page of the files and references of a version, by path."""
    after = page.after or ""
    entries = access.metadata_store.artifacts.entries.page(version.version.id, after, page.limit + 1)
    page_entries = entries[: page.limit]
    return {
        "files": [_entry(entry) for entry in page_entries],
        "total": version.version.files,
        "next": page_entries[-1].path if len(entries) > page.limit else None,
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in models.EntrySchema.model_fields}


def _to_response(
    request: Request, row: CollectionVersion, users: Sequence[int] = (), expires_ms: int | None = None
) -> dict[str, Any]:
    """A version without the runs that the requester may not read."""
    access = shared_services_of(request).access
    number = row.version.run_id
    run_ids = [*users, *([] if number is None else [number])]
    readable = access.readable_runs(request)
    runs = {run_id: access.metadata_store.runs.place(run_id) for run_id in run_ids}
    uids = {
        run_id: run.uid
        for run_id, run in runs.items()
        if run is not None and not run.deleted and (readable is None or readable.has(run))
    }
    used_by = tuple(uids[run_id] for run_id in users if run_id in uids)
    fields = asdict(row.as_read(None if number is None else uids.get(number), used_by))
    return {**fields, "expires_ms": expires_ms}
