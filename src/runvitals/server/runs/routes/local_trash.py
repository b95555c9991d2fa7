"""`/trash/remove`: deletes runs of this machine for good, on its own page only.

The trash of a shared server empties by itself.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import HTTPException, Request
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.router import Router
from runvitals.server.library.local.journal_changes import JournalChanges
from runvitals.server.runs.routes.parameters import TheEditableLibrary

router = Router(prefix="/api/v1")


class RunsToRemove(RequestBody):
    """Runs in the trash."""

    runs: list[Annotated[str, Field(max_length=128)]] = Field(min_length=1, max_length=1000)


class RemovedRuns(ResponseBody):
    """What was deleted for good."""

    removed: list[str]
    kept: dict[str, str] = Field(description="By run id: why it was not deleted.")


@router.post("/trash/remove", needs("run:delete"), response_model=RemovedRuns)
async def remove_runs(request: Request, library: TheEditableLibrary, body: RunsToRemove) -> RemovedRuns:
    """Delete the folders of runs that are in the trash and no longer running. This cannot be undone."""
    if not isinstance(library, JournalChanges):
        raise HTTPException(405, f"{request.method} {request.url.path}: only on the page of a machine")
    removed, problems = await library.remove(body.runs)
    return RemovedRuns(removed=removed, kept=problems)
