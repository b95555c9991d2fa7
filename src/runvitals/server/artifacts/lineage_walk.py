"""Walks from a run or a version to what it was made from and what was made from it, in SQL or in journals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol

MAX_DEPTH: Final = 50
MAX_NODES: Final = 1000
"""The nearest ones: further ones are left out."""
TIME_LIMIT_S: Final = 2.0
"""After this no further generation is read."""


NodeKind = Literal["run", "version", "dataset", "model"]
"""A run, a version of an artifact, and as MLflow's clients log them: a dataset, a model."""


class NodeKey(NamedTuple):
    """A node, by its number where the links are stored."""

    kind: NodeKind
    id: int


@dataclass(frozen=True, slots=True)
class LineageEnds:
    """The nodes that something comes before, or after, besides those of the graph."""

    before: frozenset[NodeKey]
    after: frozenset[NodeKey]


class Links(Protocol):
    """What runs used and made, as the walk reads it."""

    def before(self, nodes: Collection[NodeKey], limit: int) -> Sequence[NodeKey]:
        """Return what some nodes were made from: of a version its run, of a run what it used."""

    def after(self, nodes: Collection[NodeKey], limit: int) -> Sequence[NodeKey]:
        """Return what was made from some nodes: of a version the runs that used it, of a run its versions."""


@dataclass(slots=True)
class Walk:
    """What a walk came to.

    Args:
        generations: how many steps each node is away from the first one; negative: it was made from it.
        readable: those of them that the requester may read.
        truncated: whether some were left out because there are too many or it took too long.
    """

    generations: dict[NodeKey, int]
    readable: set[NodeKey] = field(default_factory=set)
    truncated: bool = False


def walk(
    start: NodeKey,
    depth: int,
    links: Links,
    readable_of: Callable[[Collection[NodeKey]], set[NodeKey]],
    clock: Callable[[], float],
    most: int = MAX_NODES,
) -> Walk:
    """Walk some generations back and forth from a node, which the requester may read.

    It ends at what the requester may not read: that is a node, and nothing behind it is.

    Args:
        readable_of: returns those of some nodes that the requester may read.
        clock: seconds, as `time.monotonic`.

    Example:
        >>> walk(NodeKey("run", 1), 2, store.lineage_graph, readable_of, time.monotonic).generations
        {NodeKey('run', 1): 0, NodeKey('version', 7): -1, NodeKey('version', 8): 1}
    """
    walked = Walk({start: 0}, {start})
    until = clock() + TIME_LIMIT_S
    edges = {-1: [start], 1: [start]}
    for generation in range(1, depth + 1):
        for sign, step in ((-1, links.before), (1, links.after)):
            if not edges[sign]:
                continue
            if clock() > until or len(walked.generations) >= most:
                walked.truncated = True
                return walked
            reached = step(edges[sign], most + 1)
            fresh = _fresh(reached, walked.generations, most)
            walked.truncated = walked.truncated or len(reached) > most or fresh.left_out
            readable = readable_of(fresh.nodes)
            walked.generations |= dict.fromkeys(fresh.nodes, sign * generation)
            walked.readable |= readable
            edges[sign] = [node for node in fresh.nodes if node in readable]
    return walked


class _Fresh(NamedTuple):
    nodes: list[NodeKey]
    left_out: bool


def _fresh(reached: Iterable[NodeKey], walked: dict[NodeKey, int], most: int) -> _Fresh:
    """Return the nodes that are new, as many as there is room for."""
    fresh = [node for node in dict.fromkeys(reached) if node not in walked]
    room = most - len(walked)
    return _Fresh(fresh[:room], len(fresh) > room)
