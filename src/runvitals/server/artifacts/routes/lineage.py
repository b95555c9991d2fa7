"""`/runs/{run}/lineage` and `/projects/{project}/artifacts/{name}/{alias}/lineage`: what came from what."""

from __future__ import annotations

import time
from typing import Annotated, Any, Final

from fastapi import HTTPException, Query, Request

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.artifacts.lineage_walk import MAX_DEPTH, MAX_NODES, NodeKey, Walk, walk
from runvitals.server.artifacts.routes import lineage_models as models
from runvitals.server.artifacts.routes.artifacts import OWNED, PLAIN, READS, TheVersion
from runvitals.server.artifacts.routes.readable_nodes import ReadableNodes
from runvitals.server.http.router import Router
from runvitals.server.runs.routes.parameters import CheckedRunId, RunNumber
from runvitals.server.service_parameters import TheAccess

_MAX_EDGES: Final = 5 * MAX_NODES
"""Of each of both kinds."""

router = Router()
Depth = Annotated[
    int, Query(ge=1, le=MAX_DEPTH, description="How many generations back and forth: a run is one, too.")
]


@router.get(OWNED + "/{name}/{alias}/lineage", response_model=models.LineageSchema, dependencies=READS)
@router.get(PLAIN + "/{name}/{alias}/lineage", response_model=models.LineageSchema, dependencies=READS)
def version_lineage(request: Request, version: TheVersion, access: TheAccess, depth: Depth = 4) -> Any:
    """Show what a version was made from, and what was made from it."""
    start, nodes = NodeKey("version", version.version.id), ReadableNodes(access, request, version)
    nodes.readable_of([start])
    return _graph(access, nodes, start, depth)


@router.get("/runs/{run}/lineage", response_model=models.LineageSchema, dependencies=[needs("run:read")])
def run_lineage(
    request: Request, run: CheckedRunId, number: RunNumber, access: TheAccess, depth: Depth = 4
) -> Any:
    """Show what a run was made from, and what was made from it."""
    if number is None:  # on a server without accounts, where no right is checked
        row = access.metadata_store.runs.find(run, access.clock())
        number = None if row is None else row.id
    if number is None:
        raise HTTPException(404, f"there is no run {run!r}")
    start, nodes = NodeKey("run", number), ReadableNodes(access, request)
    if not nodes.readable_of([start]):
        raise HTTPException(404, f"run {run!r} is in the trash")
    return _graph(access, nodes, start, depth)


def _graph(access: AccessControl, nodes: ReadableNodes, start: NodeKey, depth: int) -> dict[str, Any]:
    """Return the graph around a node that `nodes` has read."""
    table = access.metadata_store.artifacts.lineage_graph
    walked = walk(start, depth, table, nodes.readable_of, time.monotonic)
    keys = sorted(walked.generations, key=lambda key: (key != start, walked.generations[key], key))
    ends, places = table.ends(walked.readable), {key: index for index, key in enumerate(keys)}
    edges = table.edges(keys, _MAX_EDGES)
    return {
        "nodes": [
            {
                "kind": key.kind,
                "generation": walked.generations[key],
                **_shown(nodes, walked, key),
                "more_before": key in ends.before,
                "more_after": key in ends.after,
            }
            for key in keys
        ],
        "edges": [
            {"source": places[source], "target": places[target]}
            for source, target in edges
            if source in walked.readable or target in walked.readable
        ],
        "truncated": walked.truncated,
    }


def _shown(nodes: ReadableNodes, walked: Walk, key: NodeKey) -> dict[str, Any]:
    readable = key in walked.readable
    return {
        "run": nodes.run(key.id) if readable and key.kind == "run" else None,
        "version": nodes.version(key.id) if readable and key.kind == "version" else None,
    }
