"""`/projects/{project}/artifacts` of the page of a machine: the artifacts in its journals."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import Depends, HTTPException, Path, Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from runvitals.journal import paths
from runvitals.model.artifact_names import MAX_PATH
from runvitals.model.artifacts import ArtifactAddress, UnknownArtifact
from runvitals.readers.journals.artifacts import LocalArtifacts, LocalVersion
from runvitals.server.access.permission import needs
from runvitals.server.artifacts.routes import artifact_models as models
from runvitals.server.artifacts.routes.lineage_models import LineageSchema
from runvitals.server.artifacts.routes.lineage_response import Depth, lineage_response
from runvitals.server.http.content_response import content_response
from runvitals.server.http.immediate import immediate
from runvitals.server.http.listing import ThePage, page_in_order, page_of
from runvitals.server.http.router import Router
from runvitals.server.library.local.contents import open_content
from runvitals.server.library.local.lineage import JournalLineage
from runvitals.server.library.local.run_library import JournalLibrary
from runvitals.server.runs.routes.parameters import CheckedRunId, TheLibrary

_OWNED: Final = "/entities/{entity}/projects/{project}/artifacts"
_PLAIN: Final = "/projects/{project:path}/artifacts"
_READS: Final = [needs("artifact:read")]

router = Router(prefix="/api/v1", include_in_schema=False)  # documented as those of a shared server


@immediate
def the_journals(library: TheLibrary) -> JournalLibrary:
    """Return the runs of the data folder."""
    assert isinstance(library, JournalLibrary)
    return library


TheJournals = Annotated[JournalLibrary, Depends(the_journals)]


@immediate
def the_directory(journals: TheJournals) -> str:
    """Return the data folder."""
    return journals.directory


TheDirectory = Annotated[str, Depends(the_directory)]
Project = Annotated[str, Path(max_length=256)]
Name = Annotated[str, Path(description="The name of an artifact.", max_length=256)]


def the_version(
    directory: TheDirectory,
    project: Project,
    name: Name,
    alias: Annotated[str, Path(description="An alias, or a version such as `v3`.", max_length=256)],
) -> LocalVersion:
    """Return the version of the path, or raise 404."""
    try:
        return LocalArtifacts(directory).find(ArtifactAddress(None, project, name, alias))
    except UnknownArtifact as error:
        raise HTTPException(404, str(error)) from None


TheVersion = Annotated[LocalVersion, Depends(the_version)]


@router.get(_OWNED, *_READS, response_model=models.CollectionsPage)
@router.get(_PLAIN, *_READS, response_model=models.CollectionsPage)
def collections(directory: TheDirectory, project: Project, page: ThePage) -> Any:
    """The artifacts of a project, by name."""
    by_name: dict[str, list[LocalVersion]] = {}
    for version in LocalArtifacts(directory).versions(project):
        by_name.setdefault(version.version.name, []).append(version)
    rows = [_collection(name, versions) for name, versions in sorted(by_name.items())]
    return page_of("collections", rows, lambda row: str(row["name"]), page)


def _collection(name: str, versions: list[LocalVersion]) -> dict[str, Any]:
    newest = versions[-1].version
    return {
        "name": name,
        "type": newest.type,
        "kind": "sequence",
        "description": newest.description,
        "tags": [],
        "versions": len(versions),
        "created_ms": versions[0].version.created_ms,
        "updated_ms": newest.created_ms,
    }


@router.get(_OWNED + "/{name}", *_READS, response_model=models.ArtifactsPage)
@router.get(_PLAIN + "/{name}", *_READS, response_model=models.ArtifactsPage)
def versions(directory: TheDirectory, project: Project, name: Name, page: ThePage) -> Any:
    """The versions of an artifact, the newest first."""
    rows = [asdict(version.version) for version in LocalArtifacts(directory).versions(project, name)]
    if not rows:
        raise HTTPException(404, f"there is no artifact {name!r} in the project {project!r}")
    return page_in_order("artifacts", rows[::-1], page)


@router.get(_OWNED + "/{name}/{alias}", *_READS, response_model=models.ArtifactSchema)
@router.get(_PLAIN + "/{name}/{alias}", *_READS, response_model=models.ArtifactSchema)
def version(version: TheVersion) -> Any:
    """A version by alias or number, with the runs that used it."""
    return asdict(version.version)


@router.get(_OWNED + "/{name}/{alias}/files", *_READS, response_model=models.EntriesPage)
@router.get(_PLAIN + "/{name}/{alias}/files", *_READS, response_model=models.EntriesPage)
def files(version: TheVersion, page: ThePage) -> Any:
    """The files and references of a version, by path."""
    return page_of(
        "files", [asdict(entry) for entry in version.entries()], lambda row: str(row["path"]), page
    )


@router.get(_OWNED + "/{name}/{alias}/content", *_READS, response_class=Response)
@router.get(_PLAIN + "/{name}/{alias}/content", *_READS, response_class=Response)
def content(
    request: Request,
    version: TheVersion,
    directory: TheDirectory,
    path: Annotated[str, Query(description="The path of a file of the version.", max_length=MAX_PATH)],
    download: Annotated[
        str | None, Query(description="The name under which to save it.", max_length=1000)
    ] = None,
) -> Response:
    """A file of a version."""
    entry = next((entry for entry in version.entries() if entry.path == path), None)
    if entry is None or entry.sha256 is None or version.version.run is None:
        raise HTTPException(404, f"the artifact has no file {path!r}")
    folder = paths.run_dir(version.version.run, directory)
    opened = open_content(folder, entry.sha256)
    if opened is None:
        raise HTTPException(404, f"the content of {path!r} was deleted from {folder}")
    return content_response(request, opened, entry.sha256, download)


async def the_lineage(journals: TheJournals) -> JournalLineage:
    """Return what all runs used and made."""
    runs = await journals.runs()
    versions = await run_in_threadpool(LocalArtifacts(journals.directory).versions)
    return JournalLineage([version.version for version in versions], runs)


TheLineage = Annotated[JournalLineage, Depends(the_lineage)]


@router.get(_OWNED + "/{name}/{alias}/lineage", *_READS, response_model=LineageSchema)
@router.get(_PLAIN + "/{name}/{alias}/lineage", *_READS, response_model=LineageSchema)
def version_lineage(version: TheVersion, lineage: TheLineage, depth: Depth = 4) -> Any:
    """Show what a version was made from, and what was made from it."""
    start = lineage.version(version.version)
    if start is None:  # deleted a moment ago
        raise HTTPException(404, f"there is no artifact {version.version.name!r}")
    return lineage_response(lineage, lineage, start, depth)


@router.get("/runs/{run}/lineage", needs("run:read"), response_model=LineageSchema)
def run_lineage(run: CheckedRunId, lineage: TheLineage, depth: Depth = 4) -> Any:
    """Show what a run was made from, and what was made from it."""
    start = lineage.run(run)
    if not lineage.readable_of([start]):
        raise HTTPException(404, f"there is no run {run!r}")
    return lineage_response(lineage, lineage, start, depth)
