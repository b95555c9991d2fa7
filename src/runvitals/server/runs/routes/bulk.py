"""`/runs/bulk`: the same change of many runs, each as if it had been requested alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request

from runvitals.model.errors import AmbiguousName, CannotWrite, UnknownRun
from runvitals.server.access.actions import AUTHENTICATED
from runvitals.server.access.permission import needs, recording, route_check
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.responses import EDIT_ERRORS, INVALID_PARAMETER
from runvitals.server.http.router import Router
from runvitals.server.library.editable_library import EditableLibrary
from runvitals.server.runs.routes import models, runs
from runvitals.server.runs.routes.parameters import TheEditableLibrary, stopping_library

MAX_RUNS: Final = 1000
_PERMISSIONS: Final = {
    "update": "run:update",
    "delete": "run:delete",
    "restore": "run:delete",
    "stop": "run:stop",
}
_PATHS: Final = {"update": "", "delete": "", "restore": "/restore", "stop": "/stop"}
Tag = Annotated[str, Field(min_length=1, max_length=256)]

router = Router()


class NamedRunSchema(RequestBody):
    """A run of a request."""

    id: str = Field(min_length=1, max_length=128)
    entity: str | None = Field(
        None, max_length=64, description="Where several teams or users have a run of this id."
    )


class BulkRunChanges(models.RunChanges):
    """Changes of many runs."""

    add_tags: list[Tag] = Field([], max_length=100)
    remove_tags: list[Tag] = Field([], max_length=100)


class BulkChange(RequestBody):
    """A change of many runs."""

    runs: list[NamedRunSchema] = Field(min_length=1, max_length=MAX_RUNS)
    do: Literal["update", "delete", "restore", "stop"]
    changes: BulkRunChanges | None = Field(None, description="For `update`.")


class BulkResultSchema(ResponseBody):
    """The result for one run."""

    id: str
    entity: str | None
    done: Literal["update", "delete", "restore", "stop"] | None = None
    error: str | None = Field(None, description="Why it was not changed.")


class BulkResultsSchema(ResponseBody):
    """The results of a change of many runs."""

    results: list[BulkResultSchema] = Field(description="In the order of the request.")


@router.post(
    "/runs/bulk",
    needs(AUTHENTICATED),
    response_model=BulkResultsSchema,
    responses={**INVALID_PARAMETER, **EDIT_ERRORS},
)
async def change_runs(request: Request, library: TheEditableLibrary, change: BulkChange) -> Any:
    """Update, delete, restore or stop up to 1,000 runs.

    The permission is checked for each of them, and one that fails does not prevent the others.
    """
    if (change.do == "update") != (change.changes is not None):
        raise InvalidFields({"changes": f"expected with `update`, and only with it, not with {change.do!r}"})
    if change.changes is not None and change.changes.tags is not None and _changes_tags(change.changes):
        raise InvalidFields({"changes.tags": "expected `tags`, or `add_tags` and `remove_tags`"})
    results = []
    for run in change.runs:
        error = await _change_run(request, library, run, change)
        result = {"id": run.id, "entity": run.entity}
        results.append({**result, "error": error} if error else {**result, "done": change.do})
    return {"results": results}


def _changes_tags(changes: BulkRunChanges) -> bool:
    return bool(changes.add_tags or changes.remove_tags)


async def _change_run(
    request: Request, library: EditableLibrary, run: NamedRunSchema, change: BulkChange
) -> str | None:
    """Change one run; returns why it was not changed."""
    single_request = _request_for(request, run, change.do)
    try:
        access = route_check(request)
        if access is not None:
            await access.check_route(single_request, _PERMISSIONS[change.do])
        number: int | None = getattr(single_request.state, "run_number", None)
        if change.changes is not None:
            await _update(single_request, library, run.id, number, change.changes)
        else:
            await _OTHERS[change.do](single_request, library, run.id, number)
    except HTTPException as error:
        if error.status_code == 401:
            raise
        return str(error.detail)
    except (UnknownRun, AmbiguousName, CannotWrite, ValueError) as error:
        return str(error)
    return None


def _request_for(request: Request, run: NamedRunSchema, do: str) -> Request:
    """Return the request for one run, with which its permission is checked and recorded."""
    scope = {
        **request.scope,
        "method": {"update": "PATCH", "delete": "DELETE"}.get(do, "POST"),
        "path": f"/api/v1/runs/{run.id}{_PATHS[do]}",
        "path_params": {"run": run.id},
        "query_string": urlencode({"entity": run.entity}).encode() if run.entity else b"",
        "state": dict(request.scope.get("state") or {}),
    }
    return Request(scope)


async def _update(
    request: Request, library: EditableLibrary, run: str, number: int | None, changes: BulkRunChanges
) -> None:
    add, remove = changes.add_tags, changes.remove_tags
    sent = changes.model_dump(exclude_unset=True, exclude={"add_tags", "remove_tags"})
    if sent:
        await runs.edit(request, library, run, number, models.RunChanges(**sent))
    if add or remove:
        await library.tag(run, add, remove, number, recording(request, "run.update", fields=["tags"]))


async def _stop(request: Request, library: EditableLibrary, run: str, number: int | None) -> Any:
    return await runs.stop(request, stopping_library(request, library), run, number)


Route = Callable[[Request, EditableLibrary, str, int | None], Awaitable[Any]]
_OTHERS: Final[Mapping[str, Route]] = {"delete": runs.delete, "restore": runs.restore, "stop": _stop}
