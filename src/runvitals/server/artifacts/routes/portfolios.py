"""`POST /projects/{project}/artifacts/{name}`: links a version to a portfolio, a collection of a project."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from fastapi import HTTPException

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import Operator
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import ProjectItem
from runvitals.server.artifacts.routes.artifact_models import ArtifactSchema
from runvitals.server.artifacts.routes.artifacts import OWNED, PLAIN, Name, TheProjectNumber
from runvitals.server.artifacts.storage.rows import ArtifactConflict, CollectionVersion, UnknownArtifact
from runvitals.server.http.errors import checking
from runvitals.server.http.router import Router
from runvitals.server.registry.rights import changer_of, check_source
from runvitals.server.registry.routes.registry_models import NewRegistryLink
from runvitals.server.service_parameters import TheAccess, TheRequester

_CREATES: Final = needs("artifact:create")

router = Router()


@router.post(OWNED + "/{name}", _CREATES, response_model=ArtifactSchema, status_code=201)
@router.post(PLAIN + "/{name}", _CREATES, response_model=ArtifactSchema, status_code=201)
def link(
    body: NewRegistryLink, project: TheProjectNumber, name: Name, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Link a version of an artifact to a portfolio of the project; the first one makes it."""
    operator = isinstance(requester.principal, Operator)
    owner_id = None if operator else access.directory.project(project).entity.id
    source = source_of(access, requester, body, owner_id)
    check_source(access, requester, source.version.collection, project)
    links, by = access.metadata_store.artifacts.links, changer_of(access, requester, project)
    try:
        with checking("name"):
            member = links.link(source.version.id, project, name, body.aliases, access.clock(), by)
    except UnknownArtifact as error:
        raise HTTPException(404, str(error)) from None
    except ArtifactConflict as error:
        raise HTTPException(409, str(error)) from None
    return asdict(member.as_read())


def source_of(
    access: AccessControl, requester: Requester, body: NewRegistryLink, owner_id: int | None
) -> CollectionVersion:
    """Return the version of an artifact that a link names.

    Args:
        owner_id: the team or user whose project is meant if the link names none.

    Raises:
        HTTPException: 404 if there is none; 401 or 403 if the requester may not read it.
    """
    what = f"artifact {f'{body.artifact}:{body.version}'!r}"
    path, _, name = body.artifact.rpartition("/")
    if not path:
        raise HTTPException(404, f"there is no {what}; expected project/name or team/project/name")
    projects = access.metadata_store.projects
    if isinstance(requester.principal, Operator):  # there are no accounts, so no teams
        numbers = [number for _, number in projects.named(path) or projects.named(path.partition("/")[2])]
    else:
        entity, slash, rest = path.partition("/")
        if slash:
            owner, path = access.directory.entity_named(entity), rest
            owner_id = None if owner is None else owner.id
        project = None if owner_id is None else access.directory.project_named(owner_id, path)
        if project is None or project.deleted:
            access.hide(requester, what)
        item = ProjectItem("artifact", 0, project)
        access.require(requester, Action.ARTIFACT_READ, item, what, changes=False)
        numbers = [project.id]
    for number in numbers:
        member = access.metadata_store.artifacts.collections.member(number, f"{name}:{body.version}")
        if member is not None:
            return member
    raise HTTPException(404, f"there is no {what}")
