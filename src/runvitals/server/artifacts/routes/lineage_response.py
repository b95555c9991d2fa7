"""The response about a lineage: nodes, edges, and where it goes on."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Final, Protocol

from fastapi import Query

from runvitals.server.artifacts.lineage_walk import (
    MAX_DEPTH,
    MAX_NODES,
    LineageEnds,
    Links,
    NodeKey,
    walk,
)

_MAX_EDGES: Final = 5 * MAX_NODES
"""Of each kind."""
_KINDS: Final = ("run", "version", "dataset", "model")

Depth = Annotated[
    int, Query(ge=1, le=MAX_DEPTH, description="How many generations back and forth: a run is one, too.")
]


class Graph(Links, Protocol):
    """What runs used and made, as a response needs it."""

    def edges(self, nodes: Collection[NodeKey], limit: int) -> Sequence[tuple[NodeKey, NodeKey]]:
        """Return which of some nodes were made from which, at most so many of each kind."""

    def ends(self, nodes: Collection[NodeKey]) -> LineageEnds:
        """Return the nodes that have neighbours besides each other."""


class Nodes(Protocol):
    """What is shown of nodes."""

    def readable_of(self, nodes: Collection[NodeKey]) -> set[NodeKey]:
        """Return those of some nodes that the requester may read."""

    def shown(self, node: NodeKey) -> dict[str, Any]:
        """Return what is shown of a node that `readable_of` returned."""


def lineage_response(graph: Graph, nodes: Nodes, start: NodeKey, depth: int) -> dict[str, Any]:
    """Return the lineage of a node that `nodes` has read: a `LineageSchema`."""
    walked = walk(start, depth, graph, nodes.readable_of, time.monotonic)
    keys = sorted(walked.generations, key=lambda key: (key != start, walked.generations[key], key))
    ends, positions = graph.ends(walked.readable), {key: index for index, key in enumerate(keys)}
    edges = graph.edges(keys, _MAX_EDGES)
    return {
        "nodes": [
            {
                "kind": key.kind,
                "generation": walked.generations[key],
                **dict.fromkeys(_KINDS),
                **({key.kind: nodes.shown(key)} if key in walked.readable else {}),
                "more_before": key in ends.before,
                "more_after": key in ends.after,
            }
            for key in keys
        ],
        "edges": [
            {"source": positions[source], "target": positions[target]}
            for source, target in edges
            if source in walked.readable or target in walked.readable
        ],
        "truncated": walked.truncated,
    }
