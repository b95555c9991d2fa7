"""`/views`: saved views of the table of runs and of workspaces. For shared servers only."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import HTTPException, Path, Query
from pydantic import Field

from runvitals.model.errors import UnknownProject
from runvitals.model.json_values import damage_of
from runvitals.server.access.actions import AUTHENTICATED, Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import KeyScope, Operator, Principal, ServiceAccount, User
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Project, ProjectItem
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import DetailedError, InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.projects.storage.saved_views import MAX_NAME, SavedView, SavedViewTable, ViewChanged
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.store.errors import NotFound

Kind = Literal["runs", "workspace"]
ViewName = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
ViewData = dict[str, Any]

router = Router()
ViewId = Annotated[int, Path(ge=1, le=2**31 - 1)]


class NewView(RequestBody):
    """A view to be saved."""

    kind: Kind
    name: ViewName
    project: str = Field(min_length=1, max_length=256)
    entity: str | None = Field(None, max_length=64)
    data: ViewData = Field(description="What the page shows: a JSON object of at most 256 KiB.")
    published: bool = Field(False, description="For everyone who sees the project; otherwise your own.")


class ViewChanges(RequestBody):
    """Changes of a view; what is left out does not change."""

    revision: int = Field(ge=1, le=2**31 - 1, description="Of the view that you saw.")
    name: ViewName | None = None
    data: ViewData | None = None
    published: bool | None = None


class ViewSchema(ResponseBody):
    """A saved view."""

    id: int
    kind: Kind
    name: str
    project: str
    entity: str | None
    owner: str | None = Field(description="Whose view it is; None: published for the project.")
    data: ViewData
    revision: int
    changed_ms: int
    damaged: str | None = Field(
        None, description="Why what was stored cannot be read; then there is nothing else in `data`."
    )
    may: list[str] = Field(description="`workspace:update` if you may change and delete it.")


class ViewsSchema(ResponseBody):
    """Saved views."""

    views: list[ViewSchema]
    total: int
    next: str | None = Field(None, description="Always None: a project has few views.")


@router.get("/views", needs("filtered workspace:read"), response_model=ViewsSchema)
def list_views(
    access: TheAccess,
    requester: TheRequester,
    project: Annotated[str, Query(min_length=1, max_length=256)],
    entity: Annotated[str | None, Query(max_length=64)] = None,
    kind: Kind | None = None,
) -> dict[str, Any]:
    """The published views of a project and your own, by name."""
    owner_project = _project(access, requester, project, entity)
    number = owner_project if isinstance(owner_project, int) else owner_project.id
    rows = _views(access).of_project(number, kind, requester.user_id)
    return {
        "views": [_to_response(access, requester, view, owner_project) for view in rows],
        "total": len(rows),
        "next": None,
    }


@router.post("/views", needs(AUTHENTICATED), response_model=ViewSchema, status_code=201)
def create_view(access: TheAccess, requester: TheRequester, view: NewView) -> dict[str, Any]:
    """Save a view of a project."""
    _check_writes(requester)
    owner_project = _project(access, requester, view.project, view.entity)
    number = owner_project if isinstance(owner_project, int) else owner_project.id
    owner_id = None if view.published else _owner_id(requester)
    if view.published:
        _require_update(access, requester, owner_project)
    try:
        created = _views(access).create(number, view.kind, view.name, owner_id, view.data, access.clock())
    except ValueError as error:
        raise _invalid(error) from None
    return _to_response(access, requester, created, owner_project)


@router.patch("/views/{view}", needs(AUTHENTICATED), response_model=ViewSchema)
def change_view(
    access: TheAccess, requester: TheRequester, view: ViewId, changes: ViewChanges
) -> dict[str, Any]:
    """Rename, replace, publish or take back a view. 409 if someone else has changed it since `revision`."""
    _check_writes(requester)
    row, owner_project = _view_with_project(access, requester, view)
    move_to: tuple[int | None] | None = None
    if changes.published is not None and changes.published != (row.user_id is None):
        _require_update(access, requester, owner_project)
        move_to = (None if changes.published else _owner_id(requester),)
    if row.user_id is None:
        _require_update(access, requester, owner_project)
    try:
        changed = _views(access).change(
            view, changes.revision, access.clock(), changes.name, changes.data, move_to
        )
    except ViewChanged as error:
        current = _to_response(access, requester, error.current, owner_project)
        raise DetailedError(409, str(error), {"view": current}) from None
    except ValueError as error:
        raise _invalid(error) from None
    return _to_response(access, requester, changed, owner_project)


@router.delete("/views/{view}", needs(AUTHENTICATED), status_code=204)
def delete_view(access: TheAccess, requester: TheRequester, view: ViewId) -> None:
    """Delete a view."""
    _check_writes(requester)
    row, owner_project = _view_with_project(access, requester, view)
    if row.user_id is None:
        _require_update(access, requester, owner_project)
    _views(access).delete(view)


def _views(access: AccessControl) -> SavedViewTable:
    return access.accounts.saved_views


def _invalid(error: ValueError) -> Exception:
    field, colon, _ = str(error).partition(":")
    if str(error).startswith("invalid name"):
        return InvalidFields({"name": str(error)})
    return InvalidFields({field: str(error)}) if colon and field in ("data", "kind") else error


def _project(access: AccessControl, requester: Requester, name: str, entity: str | None) -> Project | int:
    """The project whose views the requester may read; its number on a server without accounts.

    Raises:
        HTTPException: 401, 403, 404, or 409 if several projects have the name.
        UnknownProject: there is none, on a server without accounts.
    """
    if isinstance(requester.principal, Operator):
        for _, number in access.metadata_store.projects.named(name):
            return number
        raise UnknownProject(f"there is no project {name!r}")
    return access.named_project(requester, Action.WORKSPACE_READ, name, entity)


def _view_with_project(
    access: AccessControl, requester: Requester, number: int
) -> tuple[SavedView, Project | int]:
    """A view that the requester may see, and its project.

    Raises:
        HTTPException: 404 for any other.
    """
    what = f"view {number}"
    try:
        view = _views(access).get(number)
        if isinstance(requester.principal, Operator):
            return view, view.project_id
        project = access.directory.project(view.project_id)
    except (NotFound, UnknownProject):
        access.hide(requester, what)
    if view.user_id is not None and view.user_id != requester.user_id:
        access.hide(requester, what)
    if project.deleted or not access.may(requester, Action.WORKSPACE_READ, _item(project, view)):
        access.hide(requester, what)
    return view, project


def _item(project: Project, view: SavedView | None = None) -> ProjectItem:
    return ProjectItem("workspace", 0 if view is None else view.id, project)


def _require_update(access: AccessControl, requester: Requester, project: Project | int) -> None:
    if isinstance(project, Project):
        access.require(requester, Action.WORKSPACE_UPDATE, _item(project), "the views of this project")


def _owner_id(requester: Requester) -> int | None:
    """Whose a view that is not published becomes; None on a server without accounts, where all are.

    Raises:
        HTTPException: 422 for a service account, which has no views of its own.
    """
    if isinstance(requester.principal, Operator):
        return None
    if requester.user_id is None:
        raise InvalidFields({"published": "only users have views of their own; expected true"})
    return requester.user_id


def _check_writes(requester: Requester) -> None:
    """Raise HTTPException 403 for a key that may only read."""
    principal: Principal = requester.principal
    key = principal.key if isinstance(principal, (User, ServiceAccount)) else None
    if key is not None and key.scope is KeyScope.READ:
        raise HTTPException(403, "this key may only read: saving a view needs one that may write")


def _to_response(
    access: AccessControl, requester: Requester, view: SavedView, project: Project | int
) -> dict[str, Any]:
    may, damage = True, damage_of(view.data)
    if view.user_id is None and isinstance(project, Project):
        may = access.may(requester, Action.WORKSPACE_UPDATE, _item(project, view))
    return {
        "id": view.id,
        "kind": view.kind,
        "name": view.name,
        "project": view.project,
        "entity": view.entity,
        "owner": view.owner,
        "data": view.data if damage is None else {},
        "damaged": damage,
        "revision": view.revision,
        "changed_ms": view.changed_ms,
        "may": [Action.WORKSPACE_UPDATE.value] if may else [],
    }
