"""`/runs/{run}/artifacts`: what a run logged and used. Those of projects are in `entities/artifacts`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from runvitals.server.access.permission import needs, route_check
from runvitals.server.artifacts.routes import artifact_models
from runvitals.server.http.listing import ThePage
from runvitals.server.http.responses import RUN_ERRORS, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import ArtifactRelation, RunArtifact, RunView
from runvitals.server.runs.routes.parameters import TheRun

router = Router(responses=RUN_ERRORS)


@router.get("/runs/{run}/artifacts", needs("run:read"), response_model=artifact_models.ArtifactsPage)
async def run_artifacts(
    request: Request,
    run: TheRun,
    page: ThePage,
    relation: Annotated[
        ArtifactRelation, Query(description="What the run logged, or what it used.")
    ] = "logged",
) -> Response:
    """List the versions of artifacts that the run logged or used, the oldest first.

    Those that the requester may not see are left out.
    """
    skip = page.after_id

    def read(view: RunView) -> tuple[list[RunArtifact], int]:
        listed = view.artifacts(relation, skip, page.limit)
        return listed.artifacts, listed.total

    artifacts, total = await run.use(read)
    readable = await run_in_threadpool(_only_readable, request, artifacts)
    end = skip + len(artifacts)
    following = str(end) if artifacts and end < total else None
    responses = [_to_response(request, artifact) for artifact in readable]
    return await json_response(
        request, json_bytes({"artifacts": responses, "total": total, "next": following})
    )


def _to_response(request: Request, artifact: RunArtifact) -> dict[str, Any]:
    """A version, without the run that made it if the requester may not read that."""
    access = route_check(request)
    readable = None if access is None or artifact.maker is None else access.readable_runs(request)
    if readable is None or readable.has(artifact.maker):
        return asdict(artifact.version)
    return {**asdict(artifact.version), "run": None}


def _only_readable(request: Request, artifacts: list[RunArtifact]) -> list[Any]:
    access = route_check(request)
    if access is None or access.mode() != "accounts":
        return artifacts
    numbers = {artifact.project_id for artifact in artifacts if artifact.project_id is not None}
    readable = access.projects_with_artifacts(request, numbers)
    return [artifact for artifact in artifacts if artifact.project_id in readable]
