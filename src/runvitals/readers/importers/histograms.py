"""Histograms of other systems, with no more bars than ours have."""

from __future__ import annotations

from typing import Any

_MAX_BINS = 512


def histogram(counts: object, edges: object) -> dict[str, Any] | None:
    """Return the value of a histogram's item; None for what is none: numbers, and an edge more than counts.

    Example:
        >>> histogram([1, 2], [0.0, 1.0, 3.0])
        {'counts': [1, 2], 'edges': [0.0, 1.0, 3.0], 'count': 3}
    """
    if not isinstance(counts, list) or not isinstance(edges, list) or len(edges) != len(counts) + 1:
        return None
    if not all(isinstance(number, (int, float)) for number in (*counts, *edges)):
        return None
    counts, edges = coarse(counts, edges)
    return {"counts": counts, "edges": edges, "count": sum(counts)} if counts else None


def coarse(counts: list[float], edges: list[float]) -> tuple[list[float], list[float]]:
    """Return a histogram of at most 512 bars: neighbours are combined.

    Example:
        >>> coarse([1, 2], [0.0, 1.0, 3.0])
        ([1, 2], [0.0, 1.0, 3.0])
    """
    width = -(-len(counts) // _MAX_BINS) or 1
    if width == 1:
        return counts, edges
    combined = [sum(counts[at : at + width]) for at in range(0, len(counts), width)]
    return combined, [*edges[:-1:width], edges[-1]]
