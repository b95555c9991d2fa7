"""Deletes artifacts and their versions, and answers what breaks if one does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final

from fastapi import HTTPException, Query, Request
from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester, requester_of
from runvitals.server.access.resources import ProjectItem
from runvitals.server.artifacts.lineage_walk import NodeKey
from runvitals.server.artifacts.link_refusal import link_json, readable_links, refusal
from runvitals.server.artifacts.routes.artifacts import (
    OWNED,
    PLAIN,
    READS,
    Name,
    TheProjectNumber,
    TheVersion,
    the_version,
)
from runvitals.server.artifacts.routes.lineage_models import RunNodeSchema, VersionName, VersionNodeSchema
from runvitals.server.artifacts.routes.readable_nodes import ReadableNodes, known_run_number
from runvitals.server.artifacts.storage.dependents import Dependents
from runvitals.server.artifacts.storage.rows import (
    ArtifactConflict,
    Collection,
    LinkedVersions,
)
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.router import Router
from runvitals.server.runs.routes.parameters import CheckedRunId, RunNumber
from runvitals.server.service_parameters import TheAccess, TheRequester


class DependentsSchema(ResponseBody):
    """What depends on versions of artifacts: at most 100 of each are shown.

    What the requester may not read is counted and not shown.
    """

    used_by: list[RunNodeSchema] = Field(description="The runs that used it, the newest first.")
    used_by_total: int
    made_from: list[VersionNodeSchema] = Field(description="The versions that these runs made.")
    made_from_total: int
    links: list[VersionName] = Field(description="Where it is linked: it must be unlinked there first.")
    links_total: int = Field(description="100: as many, or more.")
    aliases: list[str] = Field(description="Those that go with it.")
    deletable: bool = Field(description="It is not linked.")
    may: list[str] = Field(description="`artifact:delete` if the requester may delete it.")


_DELETES: Final = [needs("artifact:delete")]
_ACTIONS: Final = frozenset((Action.ARTIFACT_DELETE, Action.ARTIFACT_UPDATE))

router = Router()


@router.get(
    "/entities/{entity}/projects/{project}/artifact-dependents", *READS, response_model=DependentsSchema
)
@router.get("/projects/{project:path}/artifact-dependents", *READS, response_model=DependentsSchema)
def dependents(
    request: Request,
    project: TheProjectNumber,
    access: TheAccess,
    name: Annotated[
        str | None,
        Query(description="The name of an artifact; without it the whole project.", max_length=256),
    ] = None,
    alias: Annotated[
        str | None,
        Query(description="An alias, or a version such as `v3`; without it all versions.", max_length=256),
    ] = None,
) -> Any:
    """Say what breaks if a version, an artifact with all its versions, or the project is deleted."""
    store = access.metadata_store.artifacts
    if name is None:
        return _to_response(access, request, project, store.dependents.of_project(project), ())
    if alias is not None:
        version = the_version(project, name, alias, access)
        return _to_response(
            access, request, project, store.dependents.of_version(version.version.id), version.aliases
        )
    collection = known_collection(access, project, name)
    if collection.kind == "portfolio":
        return _to_response(
            access, request, project, Dependents((), 0, (), 0, ()), store.collections.aliases(collection.id)
        )
    aliases = store.collections.aliases(collection.id)
    return _to_response(access, request, project, store.dependents.of_collection(collection.id), aliases)


@router.get("/runs/{run}/artifact-dependents", needs("run:read"), response_model=DependentsSchema)
def run_dependents(request: Request, run: CheckedRunId, number: RunNumber, access: TheAccess) -> Any:
    """Say what was made from the versions that a run made. They stay when it is deleted."""
    number = known_run_number(run, number, access)
    row = access.metadata_store.runs.place(number)
    if row is None or row.deleted:
        raise HTTPException(404, f"there is no run {run!r}, or it is in the trash")
    dependents = access.metadata_store.artifacts.dependents.of_run(number)
    return {**_to_response(access, request, row.project_id, dependents, ()), "deletable": True}


@router.delete(OWNED + "/{name}/{alias}", *_DELETES, status_code=204)
@router.delete(PLAIN + "/{name}/{alias}", *_DELETES, status_code=204)
def delete_version(
    version: TheVersion,
    access: TheAccess,
    requester: TheRequester,
    with_aliases: Annotated[bool, Query(description="Also if it has aliases, such as `latest`.")] = False,
) -> None:
    """Delete a version for good. One that is linked must be unlinked first: 409 says where it is."""
    row, now_ms = version.version, access.clock()
    if version.collection.kind == "portfolio":
        raise HTTPException(409, "a linked version is unlinked, or deleted where it was logged")
    try:
        access.metadata_store.artifacts.versions.delete(row.id, now_ms, with_aliases)
    except LinkedVersions as error:
        raise refusal(access, requester, "the artifact", error) from None
    except ArtifactConflict as error:
        raise HTTPException(409, str(error)) from None
    name = f"{version.collection.name}:v{version.number}"
    record(access, requester, version.collection, "artifact.delete", {"artifact": name})


@router.delete(OWNED + "/{name}", *_DELETES, status_code=204)
@router.delete(PLAIN + "/{name}", *_DELETES, status_code=204)
def delete_collection(
    project: TheProjectNumber, name: Name, access: TheAccess, requester: TheRequester
) -> None:
    """Delete an artifact with all its versions, none of which may be linked: 409 says which are."""
    collection = known_collection(access, project, name)
    try:
        access.metadata_store.artifacts.collections.delete(collection.id)
    except LinkedVersions as error:
        raise refusal(access, requester, "the artifact", error) from None
    record(access, requester, collection, "artifact.delete", {"artifact": collection.name})


def known_collection(access: AccessControl, project: int, name: str) -> Collection:
    """Return a collection of a project by its name.

    Raises:
        HTTPException: 404 if there is none.
    """
    collection = access.metadata_store.artifacts.collections.named(project, name)
    if collection is None:
        raise HTTPException(404, f"there is no artifact {name!r} in the project")
    return collection


def _to_response(
    access: AccessControl, request: Request, project: int, dependents: Dependents, aliases: Iterable[str]
) -> dict[str, Any]:
    nodes = ReadableNodes(access, request)
    readable = nodes.readable_of(
        [
            *(NodeKey("run", number) for number in dependents.runs),
            *(NodeKey("version", number) for number in dependents.versions),
        ]
    )
    links = readable_links(access, requester_of(request), dependents.links)
    return {
        "used_by": [nodes.run(number) for number in dependents.runs if NodeKey("run", number) in readable],
        "used_by_total": dependents.run_count,
        "made_from": [
            nodes.version(number) for number in dependents.versions if NodeKey("version", number) in readable
        ],
        "made_from_total": dependents.version_count,
        "links": [link_json(link) for link in links],
        "links_total": len(dependents.links),
        "aliases": list(aliases),
        "deletable": not dependents.links,
        "may": _may(access, requester_of(request), project),
    }


def _may(access: AccessControl, requester: Requester, project: int) -> list[str]:
    if access.mode() != "accounts":
        return sorted(_ACTIONS)
    return access.may_list(requester, ProjectItem("artifact", 0, access.directory.project(project)), _ACTIONS)


def record(
    access: AccessControl,
    requester: Requester,
    collection: Collection,
    action: str,
    before: dict[str, Any],
    after: dict[str, Any] | None = None,
) -> None:
    """Record a change of an artifact in the audit log, if its project belongs to a team or user."""
    entity = collection.entity
    owner = None if entity is None else access.directory.entity_named(entity)
    if entity is not None and owner is not None:
        owner_fields: Any = {"entity": (owner.id, entity), "project": collection.project}
        access.accounts.audit.record(
            access.clock(), requester.actor, action, **owner_fields, before=before, after=after
        )
