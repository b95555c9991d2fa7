"""`/projects`: list, rename and delete projects."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from runvitals.server.access.permission import needs
from runvitals.server.http.router import Router
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.parameters import (
    TheLibrary,
    TheReadableRuns,
)

router = Router()


@router.get("/projects", needs("filtered run:read"), response_model=list[models.ProjectSchema])
async def projects(
    library: TheLibrary,
    readable: TheReadableRuns,
    text: Annotated[str, Query(description="Words of `entity/name`.", max_length=200)] = "",
    limit: Annotated[int | None, Query(ge=1, le=1000, description="None: all of them.")] = None,
) -> Any:
    """The projects that have runs, the one with the newest run first."""
    words = text.casefold().split()
    matching = [
        project
        for project in await library.projects(readable)
        if all(word in _address(project).casefold() for word in words)
    ]
    return matching[:limit]


def _address(project: dict[str, Any]) -> str:
    """Return `entity/name`, by which a project is searched."""
    return "/".join(part for part in (project.get("entity"), project["name"]) if part)
