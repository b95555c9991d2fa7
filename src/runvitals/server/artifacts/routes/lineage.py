"""`/runs/{run}/lineage` and `/projects/{project}/artifacts/{name}/{alias}/lineage`: what came from what."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException, Request

from runvitals.server.access.permission import needs
from runvitals.server.artifacts.lineage_walk import NodeKey
from runvitals.server.artifacts.routes import lineage_models as models
from runvitals.server.artifacts.routes.artifacts import OWNED, PLAIN, READS, TheVersion
from runvitals.server.artifacts.routes.lineage_response import Depth, lineage_response
from runvitals.server.artifacts.routes.readable_nodes import ReadableNodes, known_run_number
from runvitals.server.http.router import Router
from runvitals.server.runs.routes.parameters import CheckedRunId, RunNumber
from runvitals.server.service_parameters import TheAccess

router = Router()


@router.get(OWNED + "/{name}/{alias}/lineage", *READS, response_model=models.LineageSchema)
@router.get(PLAIN + "/{name}/{alias}/lineage", *READS, response_model=models.LineageSchema)
def version_lineage(request: Request, version: TheVersion, access: TheAccess, depth: Depth = 4) -> Any:
    """Show what a version was made from, and what was made from it."""
    start, nodes = NodeKey("version", version.version.id), ReadableNodes(access, request, version)
    nodes.readable_of([start])
    return lineage_response(access.metadata_store.artifacts.lineage_graph, nodes, start, depth)


@router.get("/runs/{run}/lineage", needs("run:read"), response_model=models.LineageSchema)
def run_lineage(
    request: Request, run: CheckedRunId, number: RunNumber, access: TheAccess, depth: Depth = 4
) -> Any:
    """Show what a run was made from, and what was made from it."""
    number = known_run_number(run, number, access)
    start, nodes = NodeKey("run", number), ReadableNodes(access, request)
    if not nodes.readable_of([start]):
        raise HTTPException(404, f"run {run!r} is in the trash")
    return lineage_response(access.metadata_store.artifacts.lineage_graph, nodes, start, depth)
